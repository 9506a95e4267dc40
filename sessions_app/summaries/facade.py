"""Public face of summaries: what other packages may use."""

from sessions_app.summaries.summarize import SummaryRules, session_summarize
from sessions_app.summaries.summarizer import SKILLS, Summarizer, sizes_for, skill_named
from sessions_app.summaries.summary_claims import (
    excerpts_waiting,
    summaries_abandoned,
    summary_is_requested,
    summary_request,
)
from sessions_app.summaries.summary_store import is_due, may_be_due, summaries_retract
