"""Public face of the limits: what other packages may use."""

from sessions_app.limits.answer_limits import (
    CHAT_NOT_BLOCKED,
    MeteredChatModel,
    answer_check,
    can_be_blocked,
    day_notice_due,
    known_chat,
    model_refusal,
    notice_for,
    spent_on,
    usage_drop,
    usage_merge,
)
from sessions_app.limits.figures import (
    FILTERS,
    Used,
    access_join,
    access_merge,
    chats_with_access,
    clients_day,
    marketing_set,
    standing_set,
    used_by_chat,
    used_by_day,
)
from sessions_app.limits.intake import (
    ANSWERED,
    BLOCKED,
    DAY_CODES,
    NOT_OWNERS,
    REASONS,
    Entry,
    LimitReachedError,
    UsageLimits,
    access_of,
    change_count,
    entry_count,
    entry_decide,
    word_for,
)
