"""Decide at intake whether a client's message is stored and answered.

Call these functions in the transaction that takes the message in, with the chat's row locked: then
two messages at once, in several processes, count as two, and a repeated delivery not at all.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm.base import ChatModelError, model_tokens
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import address_forms
from memoryproject.foundation.text.characters import fold
from sessions_app.conversations import chat_addresses, phrases
from sessions_app.conversations.plain_words import Command, bare_words
from sessions_app.limits.figures import marketing_store
from sessions_app.models import Chat, ChatAccess, Standing, UsageDay

logger = logging.getLogger(__name__)

HOUR = timedelta(hours=1)
# Where messages have no limit. A person who corrects every message makes far fewer.
CHANGES_PER_HOUR = 120

# A person who stopped the assistant can still see, take and erase what is stored.
OPTED_OUT_COMMANDS = ("memories", "export", "forget", "help")


@dataclass(frozen=True)
class Entry:
    """The decision about a message.

    ``reason``: the code of why it isn't answered by the model, or "". ``notice``: the name of the
    system text that answers it instead, or "". ``is_kept`` is false where it doesn't become part
    of the conversation: only the delivery keeps it, so that no model, embedder or summary reads it.
    """

    reason: str = ""
    notice: str = ""
    is_kept: bool = True


ANSWERED = Entry()


def access_of(chat: Chat) -> ChatAccess:
    """Return the access of a client's chat; a new one, which isn't stored, where there is none."""
    return getattr(chat, "access", None) or ChatAccess(chat=chat)


def standing_of(access: ChatAccess) -> str:
    """Return what staff decided about the chat, or about that of another form of its number."""
    if access.standing or len(address_forms(access.chat.whatsapp_chat)) == 1:
        return access.standing
    others = chat_addresses.chats_of_other_forms([access.chat]).get(access.chat_id, [])
    found = ChatAccess.objects.filter(chat__in=others).values_list("standing", flat=True)
    # "blocked" comes after "allowed", and this after no decision.
    return max(found, default="")


def entry_decide(
    *,
    chat: Chat,
    access: ChatAccess,
    text: str,
    command: Command | None,
    limits: "UsageLimits",
    now: datetime,
    actor: Actor,
    is_template_button: bool = False,
) -> Entry:
    """Return what staff and the client themselves decided about the chat's messages.

    A stop word stops the assistant, a start word starts it again. Who stops offers alone, or by a
    template's button, is still answered. In a group nobody can stop it for the others.
    """
    standing = standing_of(access)
    if standing == Standing.BLOCKED:
        return Entry(BLOCKED, is_kept=False)
    word = "" if chat.is_group else folded(text)
    if access.opted_out_at is not None:
        if word and word in limits.start_words:
            _opt(access, None, actor)
            return Entry(notice="opted_in")
        allowed = command is not None and command.name in OPTED_OUT_COMMANDS
        return ANSWERED if allowed else Entry(OPTED_OUT, is_kept=False)
    if access.marketing_stopped and word and word in limits.start_words:
        marketing_store(access, now, actor, is_stopped=False)
        return Entry(notice="marketing_resumed")
    if not word:
        text = ""
    is_stop = bool({word, bare_words(text)} & {*limits.stop_words} - {""}) or asks_to_stop(text)
    if asks_to_stop_marketing(text) or (is_stop and is_template_button):
        marketing_store(access, now, actor, is_stopped=True)
        return Entry(notice="marketing_stopped")
    if is_stop:
        _opt(access, now, actor)
        return Entry(notice="opted_out")
    if limits.allow_list_only and standing != Standing.ALLOWED:
        return Entry(NOT_ALLOWED)
    return ANSWERED


def _opt(access: ChatAccess, at: datetime | None, actor: Actor) -> None:
    """Note that the person stopped the assistant at this time, or that they started it."""
    access.opted_out_at = at
    _store(access, ["opted_out_at"])
    audit_record("chat.opt_out" if at else "chat.opt_in", actor, "chat", access.chat_id)


def _store(access: ChatAccess, fields: list[str]) -> None:
    """Store these fields alone: staff may change the others at the same time."""
    if access._state.adding:
        access.save(force_insert=True)
    else:
        access.save(update_fields=fields)


def entry_count(
    *,
    chat: Chat,
    access: ChatAccess,
    entry: Entry,
    is_command: bool,
    limits: "UsageLimits",
    now: datetime,
) -> Entry:
    """Count a client's message that would be answered; return the entry, refused over the limit.

    Commands and notices, which need no model, have a limit of their own. The first message over a
    limit in an hour carries the notice that says so.
    """
    if not limits.messages_per_hour:
        return entry
    _hour_begin(access, now)
    if is_command or entry.notice:
        access.hour_commands += 1
        code = COMMANDS if access.hour_commands > limits.commands_per_hour else ""
    else:
        access.hour_messages += 1
        code = MESSAGES if access.hour_messages > limits.messages_per_hour else ""
    if code:
        notice = "" if access.hour_told else "limit_hour"
        access.hour_told = True
        entry = Entry(code, notice)
        if notice:
            reached_mark(chat_id=chat.pk, code=code, limits=limits, now=now)
    _store(access, ["hour_began_at", "hour_told", "hour_messages", "hour_commands"])
    return entry


def change_count(*, access: ChatAccess, limits: "UsageLimits", now: datetime) -> bool:
    """Count a client's edit, revocation or reaction as a message.

    Returns whether it is within the limit of the hour, which there is always one for these.
    """
    _hour_begin(access, now)
    access.hour_messages += 1
    _store(access, ["hour_began_at", "hour_told", "hour_messages", "hour_commands"])
    return access.hour_messages <= (limits.messages_per_hour or CHANGES_PER_HOUR)


def _hour_begin(access: ChatAccess, now: datetime) -> None:
    """Begin a new hour where the last one is over."""
    if not hour_runs(access, now):
        access.hour_began_at, access.hour_told = now, False
        access.hour_messages = access.hour_commands = 0


def hour_runs(access: ChatAccess, now: datetime) -> bool:
    """Return whether the hour that is counted is still running."""
    return access.hour_began_at is not None and now - access.hour_began_at < HOUR


def reached_mark(
    *, chat_id: UUID, code: str, limits: "UsageLimits", now: datetime
) -> QuerySet[UsageDay]:
    """Record for staff that a chat reached a limit; return its usage of the day."""
    day, _made = UsageDay.objects.get_or_create(chat_id=chat_id, day=limits.day_of(now))
    this_day = UsageDay.objects.filter(pk=day.pk)
    # A limit of the day, which lasts longer, stays.
    this_day.exclude(reached__in=DAY_CODES).update(reached=code, reached_at=now)
    logger.warning("Chat %s reached a limit: %s.", chat_id, code)
    return this_day


# The limits of clients' chats, the reasons why a message isn't answered, and stop words. Pure.


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
    """Return the text in lower case and without accents, marks and spaces around it.

    Returns "" for a text that is too long to be a stop word.
    """
    if len(text) > MAX_LENGTH:
        return ""
    normal = fold(text)
    inside = [place for place, character in enumerate(normal) if character.isalnum()]
    if not inside:
        return ""
    return " ".join(normal[inside[0] : inside[-1] + 1].split())


def asks_to_stop(text: str) -> bool:
    """Return whether all of a message asks for no further messages."""
    return _is_all(text, "stop_asked")


def asks_to_stop_marketing(text: str) -> bool:
    """Return whether all of a message asks for no further offers, and for nothing else."""
    if text.rstrip().endswith(("?", "؟")):
        return False
    marketing = frozenset(phrases.words_in("marketing"))
    stops = _is_all(text, "stop_asked") and not marketing.isdisjoint(folded(text).split())
    return stops or _is_all(text, "stop_marketing")


def _is_all(text: str, kind: str) -> bool:
    # "Mas" is polite in Indonesian, but not in "no me escribas mas".
    wordings = (bare_words(text).split(), folded(text).split())
    pairs = ((words, phrases.phrases_at(words, (kind,))) for words in wordings)
    return any(each.size == len(words) > 1 for words, found in pairs for each in found)


def word_for(language: str, words: Iterable[str]) -> str:
    """Return the first word that is of the language, or else the first of all."""
    found = list(words)
    data = phrases.languages().get(language, {})
    for own in (*data.get("stop", ()), *data.get("start", ())):
        if folded(own) in found:
            return str(own)
    fitting = [word for word in found if word.isascii() == (language != "he")]
    return (fitting or found or [""])[0]
