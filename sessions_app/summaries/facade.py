"""Public face of summaries: what other packages may use."""

from sessions_app.summaries.summarize import SummaryRules, session_summarize
from sessions_app.summaries.summarizer import SKILLS, Summarizer, sizes_for, skill_named
from sessions_app.summaries.summary_store import (
    excerpts_waiting,
    is_due,
    may_be_due,
    summaries_abandoned,
    summaries_retract,
    summary_is_requested,
    summary_request,
)
