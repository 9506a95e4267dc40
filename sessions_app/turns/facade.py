"""Public face of answering: what other packages may use."""

from sessions_app.turns.claims import sendings_settle, turns_abandoned, turns_sweep
from sessions_app.turns.model_reply import profile_for_prompt
from sessions_app.turns.outcome import turn_settle
from sessions_app.turns.pauses import (
    chat_locked,
    chat_pause,
    chat_resume,
    last_held,
    pause_in_force,
    pauses_end,
    pauses_merge,
)
from sessions_app.turns.prompt import Line, PromptParts, Recalled, build_prompt
from sessions_app.turns.queue import chat_answer
from sessions_app.turns.reply_store import parts_store
from sessions_app.turns.statuses import own_send_confirm, status_apply
from sessions_app.turns.turn_dependencies import Tools

__all__ = [
    "Line",
    "PromptParts",
    "Recalled",
    "Tools",
    "build_prompt",
    "chat_answer",
    "chat_locked",
    "chat_pause",
    "chat_resume",
    "last_held",
    "own_send_confirm",
    "parts_store",
    "pause_in_force",
    "pauses_end",
    "pauses_merge",
    "profile_for_prompt",
    "sendings_settle",
    "status_apply",
    "turn_settle",
    "turns_abandoned",
    "turns_sweep",
]
