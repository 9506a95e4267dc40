"""Build the limits of clients' chats from the settings."""

from decimal import Decimal

from django.conf import settings

from sessions_app.conversations.phrases import words_in
from sessions_app.limits.intake import UsageLimits, folded
from sessions_app.models import Chat
from sessions_app.models.chats import GODFATHER, chat_role


def build_usage_limits() -> UsageLimits:
    """Build the limits of clients' chats from the settings."""
    return UsageLimits(
        messages_per_hour=settings.CLIENT_MESSAGES_PER_HOUR,
        model_calls_per_day=settings.CLIENT_MODEL_CALLS_PER_DAY,
        tokens_per_day=settings.CLIENT_TOKENS_PER_DAY,
        daily_budget=settings.CLIENTS_DAILY_BUDGET or Decimal(0),
        allow_list_only=settings.ALLOW_LIST_ONLY,
        prices=settings.MODEL_PRICES,
        model=settings.OPENAI_MODEL,
        time_zone=settings.BUSINESS_TIME_ZONE,
        stop_words=[folded(word) for word in settings.STOP_WORDS or words_in("stop")],
        start_words=[folded(word) for word in settings.START_WORDS or words_in("start")],
    )


def is_owners(chat: Chat) -> bool:
    """Return whether the chat is the owner's, who is never limited."""
    return chat_role(chat, godfather=settings.GODFATHER_PHONE) == GODFATHER
