"""Public face of answering: what other packages may use."""

from sessions_app.turns.accounts import account_reported, accounts_refused
from sessions_app.turns.answer_review import turn_audit
from sessions_app.turns.bursts import QUICK
from sessions_app.turns.compose_prompt import hit_label, hit_text, profile_for_prompt, recall_today
from sessions_app.turns.message_files import (
    pictures_gone,
    pictures_named,
    pictures_of,
    pictures_of_record,
    sent_document_name,
)
from sessions_app.turns.model_reply import model_reply
from sessions_app.turns.open_questions import questions_resume
from sessions_app.turns.prompt import (
    RECALLED_LABELS,
    PromptParts,
    Recalled,
    fence_split,
    fenced_text,
    system_text,
    without_introduction,
)
from sessions_app.turns.prompt_budget import build_prompt
from sessions_app.turns.prompt_context import memory_beside
from sessions_app.turns.questions import has_buttons, survey_answer, survey_question
from sessions_app.turns.queue import (
    Heartbeat,
    answer_soon,
    chat_answer,
    heartbeats,
    next_needs_model,
)
from sessions_app.turns.reply_store import parts_store, recital
from sessions_app.turns.statuses import own_send_confirm, sends_resume, status_apply
from sessions_app.turns.stepping_in import ANSWERED_BY_PERSON, is_own_echo, pauses_merge, step_in
from sessions_app.turns.turn_claims import (
    chat_locked,
    chat_pause,
    chat_resume,
    last_held,
    longest_pause,
    pause_in_force,
    pauses_end,
    turn_update_state,
    turns_sweep,
)
from sessions_app.turns.turn_dependencies import Dependencies, TurnWork
from sessions_app.turns.unknown_questions import likeness, message_questions, questions_group
