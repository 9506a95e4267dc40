"""The limits of clients' chats, the reasons why a message isn't answered, and stop words. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm.base import ChatModelError
from memoryproject.foundation.integrations.llm.prices import model_tokens

# Codes of the error catalogue. A refused turn carries one of them.
BLOCKED = "chat_blocked"
OPTED_OUT = "chat_opted_out"
NOT_ALLOWED = "chat_not_allowed"
NOT_OWNERS = "chat_not_owners"
MESSAGES = "limit_messages"
COMMANDS = "limit_commands"
MODEL_CALLS = "limit_model_calls"
TOKENS = "limit_tokens"
BUDGET = "limit_budget"
HOUR_CODES = (MESSAGES, COMMANDS)
DAY_CODES = (MODEL_CALLS, TOKENS, BUDGET)
REASONS = (BLOCKED, OPTED_OUT, NOT_ALLOWED, NOT_OWNERS, *HOUR_CODES, *DAY_CODES)

# The message was past WhatsApp's window when it came; no limit.
TOO_OLD = "too_old"

# Commands need no model. The owner of a number may still look something up in a busy hour.
COMMANDS_A_MESSAGE = 2

# No stop word is longer; a longer message is not looked at.
MAX_LENGTH = 64


class LimitReachedError(ChatModelError):
    """The chat model isn't asked: a limit is reached, or the chat isn't answered.

    ``code`` is one of REASONS. ``until``: when the model may be asked again, None where that isn't
    known.
    """

    def __init__(self, code: str, *, until: datetime | None = None) -> None:
        super().__init__(ErrorText(code), permanent=True)
        self.code = code
        self.until = until


@dataclass(frozen=True)
class UsageLimits:
    """The settings that limit clients' chats. 0 means: no limit. The owner is never limited.

    ``prices`` are those of MODEL_PRICES. ``model``: the model that is asked, whose price counts
    where a server reports a name without a price. ``stop_words`` and ``start_words`` are folded as
    by ``folded``.
    """

    messages_per_hour: int = 0
    model_calls_per_day: int = 0
    tokens_per_day: int = 0
    daily_budget: Decimal = Decimal(0)
    allow_list_only: bool = False
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    model: str = ""
    time_zone: str = "UTC"
    stop_words: Sequence[str] = ("stop", "unsubscribe", "הסר", "עצור")
    start_words: Sequence[str] = ("start", "התחל")

    @property
    def commands_per_hour(self) -> int:
        return self.messages_per_hour * COMMANDS_A_MESSAGE

    def cost_of(self, model: str, prompt: int, completion: int) -> float | None:
        """Return the cost of these tokens, or None where the model has no price."""
        for name in (model, self.model) if self.prices else ():
            cost = model_tokens(name, prompt, completion, self.prices).cost
            if cost is not None:
                return cost
        return None

    def day_of(self, now: datetime) -> date:
        """Return the business's day."""
        return now.astimezone(ZoneInfo(self.time_zone)).date()

    def day_ends(self, now: datetime) -> datetime:
        """Return when the business's next day begins."""
        tomorrow = self.day_of(now) + timedelta(days=1)
        return datetime.combine(tomorrow, time(), ZoneInfo(self.time_zone))


def folded(text: str) -> str:
    """Return the text in lower case, without the marks and spaces around it.

    Returns "" for a text that is too long to be a stop word.
    """
    if len(text) > MAX_LENGTH:
        return ""
    normal = unicodedata.normalize("NFKC", text).casefold()
    inside = [place for place, character in enumerate(normal) if character.isalnum()]
    if not inside:
        return ""
    return " ".join(normal[inside[0] : inside[-1] + 1].split())


def word_for(language: str, words: Iterable[str]) -> str:
    """Return the first word in the language's script, or else the first of all."""
    found = list(words)
    fitting = [word for word in found if word.isascii() == (language != "he")]
    return (fitting or found or [""])[0]
