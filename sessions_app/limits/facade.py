"""Public face of the limits: what other packages may use."""

from sessions_app.limits.answer_limits import (
    CHAT_NOT_BLOCKED,
    MeteredChatModel,
    answer_check,
    can_be_blocked,
    day_notice_due,
    model_refusal,
    notice_for,
    spent_on,
)
from sessions_app.limits.figures import (
    FILTERS,
    Used,
    chats_with_access,
    clients_day,
    used_by_chat,
    used_by_day,
)
from sessions_app.limits.intake import (
    ANSWERED,
    Entry,
    access_of,
    change_count,
    entry_count,
    entry_decide,
)
from sessions_app.limits.priority import is_known, known_chats_waiting
from sessions_app.limits.standing import access_join, access_merge, standing_set
from sessions_app.limits.usage_limits import (
    BLOCKED,
    DAY_CODES,
    NOT_OWNERS,
    REASONS,
    LimitReachedError,
    UsageLimits,
    word_for,
)
from sessions_app.limits.usage_store import usage_drop, usage_merge

__all__ = [
    "ANSWERED",
    "BLOCKED",
    "CHAT_NOT_BLOCKED",
    "DAY_CODES",
    "Entry",
    "FILTERS",
    "LimitReachedError",
    "MeteredChatModel",
    "NOT_OWNERS",
    "REASONS",
    "UsageLimits",
    "Used",
    "access_join",
    "access_merge",
    "access_of",
    "answer_check",
    "can_be_blocked",
    "change_count",
    "chats_with_access",
    "clients_day",
    "day_notice_due",
    "entry_count",
    "entry_decide",
    "is_known",
    "known_chats_waiting",
    "model_refusal",
    "notice_for",
    "spent_on",
    "standing_set",
    "usage_drop",
    "used_by_chat",
    "used_by_day",
    "usage_merge",
    "word_for",
]
