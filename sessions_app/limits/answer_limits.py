"""Check the limits before the chat model is asked, count what it used, and add the privacy notice.

The counters are raised by conditional updates, so that several workers never pass a limit on calls
together. Tokens and cost are known only after a call: calls that are under way when the limit is
reached are finished.
"""

import logging
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.utils import timezone

from memoryproject.foundation.integrations.llm import base as llm
from memoryproject.foundation.integrations.retry import do_nothing
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import all_forms
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.conversations.buttons import command_in_turn
from sessions_app.limits import intake
from sessions_app.models import Broadcast, Chat, ChatAccess, ChatAddress, Turn, UsageDay
from sessions_app.models.chats import GODFATHER, Provider
from sessions_app.models.limits import Standing
from sessions_app.models.profile import AssistantProfile
from sessions_app.models.takeover import BroadcastState
from sessions_app.models.turns import BROADCAST, TurnState

logger = logging.getLogger(__name__)

# The chat of a turn, or NULL where staff have blocked it. Equality with it is no join, in which a
# turn that is moved to another chat meanwhile would not be found.
CHAT_NOT_BLOCKED = Subquery(
    Chat.objects.filter(pk=OuterRef("chat"))
    .exclude(access__standing=Standing.BLOCKED)
    .order_by()
    .values("pk")
)

# Turns that ended without an answer: a notice that was meant for one was not sent.
UNSENT = (TurnState.CANCELLED, TurnState.MISSED, TurnState.REFUSED, TurnState.MERGED)


def answer_check(*, turn: Turn, limits: intake.UsageLimits, now: datetime) -> None:
    """Check whether the turn may be answered at this moment, by what was read of its chat.

    Notices and commands need no model: no limit of the day holds for them. Raises
    LimitReachedError.
    """
    if turn.user_role == GODFATHER:
        return
    command = command_in_turn(turn)
    notice = turn.context.get("notice")
    code = _access_refusal(intake.access_of(turn.chat), limits)
    may_pass = notice or (command is not None and command.name in intake.OPTED_OUT_COMMANDS)
    if code and not (code == intake.OPTED_OUT and may_pass):
        raise intake.LimitReachedError(code)
    if command is None and not notice:
        _day_check(turn.chat_id, limits, now)


def access_check(chat: Chat, limits: intake.UsageLimits) -> None:
    """Raise LimitReachedError where a client's chat isn't answered at all."""
    if code := _access_refusal(intake.access_of(chat), limits):
        raise intake.LimitReachedError(code)


def broadcast_refusal(turn: Turn) -> str:
    """Return the code of why a message of a broadcast must not go out any more, or ""."""
    if BROADCAST not in turn.context:
        return ""
    access = intake.access_of(turn.chat)
    if access.opted_out_at or access.marketing_stopped:
        return "broadcast_stopped"
    ended = Broadcast.objects.filter(recipients__turn=turn, state=BroadcastState.CANCELLED)
    if ended.exists():
        return "broadcast_cancelled"
    return intake.BLOCKED if access.standing == Standing.BLOCKED else ""


def can_be_blocked(turn: Turn, *, is_owners: bool) -> bool:
    """Return whether a block holds for the turn: not for replies of staff, nor for the owner.

    ``is_owners``: whether the chat is the owner's now.
    """
    return not turn.by_hand and not is_owners


def day_notice_due(*, turn: Turn, code: str, limits: intake.UsageLimits, now: datetime) -> bool:
    """Record that the turn reached a limit of the day; return whether its answer says so.

    That is the case once a day and chat, however often the turn is tried; and always where a
    caller in the terminal or at the API waits for an answer.
    """
    this_day = intake.reached_mark(chat_id=turn.chat_id, code=code, limits=limits, now=now)
    if turn.provider == str(Provider.CONSOLE):
        return True
    untold = this_day.filter(Q(told_turn=None) | Q(told_turn=turn.pk))
    return bool(untold.update(told_turn=turn.pk))


@dataclass(frozen=True)
class MeteredChatModel:
    """A chat model that counts a chat's calls and tokens, and isn't asked beyond its limits.

    ``in_background``: for summaries and extraction, which also stop while the chat writes more than
    is answered.
    """

    chat_model: llm.ChatModel
    chat_id: UUID
    is_owner: bool
    limits: intake.UsageLimits
    in_background: bool = False

    @property
    def name(self) -> str:
        return self.chat_model.name

    def complete(
        self, request: llm.ChatRequest, *, before_attempt: Callable[[], None] = do_nothing
    ) -> llm.Completion:
        """See ChatModel.complete. Raises LimitReachedError."""
        now = timezone.now()
        if self.in_background and not self.is_owner:
            _background_check(self.chat_id, self.limits, now)
        day = self.count_call(now)
        try:
            completion = self.chat_model.complete(request, before_attempt=before_attempt)
        except llm.ChatModelError as error:
            if error.is_outside:
                # It gave nothing, and is made again: an outage uses up nobody's day.
                self._usage(day).update(model_calls=F("model_calls") - 1)
            raise
        if not completion.is_recital:
            self.count_tokens(day, request, completion)
        return completion

    def _usage(self, day: date) -> QuerySet[UsageDay]:
        return UsageDay.objects.filter(chat_id=self.chat_id, day=day)

    def count_call(self, now: datetime) -> date:
        """Count a call within the limits; return the day that it counts for.

        Raises LimitReachedError.
        """
        today = self.limits.day_of(now)
        while not self._count_within(today):
            # The first call of the day, or one too many. Other calls may reach a limit meanwhile:
            # the check names it.
            if not self.is_owner:
                _day_check(self.chat_id, self.limits, now)
            UsageDay.objects.get_or_create(chat_id=self.chat_id, day=today)
        return today

    def _count_within(self, today: date) -> bool:
        """Count a call; return False where a limit forbids it or the day has no row yet."""
        limits = self.limits
        used = self._usage(today)
        if not self.is_owner:
            if limits.daily_budget and spent_on(today) >= limits.daily_budget:
                return False
            if limits.model_calls_per_day:
                used = used.filter(model_calls__lt=limits.model_calls_per_day)
            if limits.tokens_per_day:
                prompt_tokens_left = Value(limits.tokens_per_day) - F("completion_tokens")
                used = used.filter(prompt_tokens__lt=prompt_tokens_left)
        return bool(used.update(model_calls=F("model_calls") + 1, is_owner=self.is_owner))

    def count_tokens(self, day: date, request: llm.ChatRequest, completion: llm.Completion) -> None:
        """Add the tokens and their cost; tokens that the server didn't report are estimated."""
        prompt, answer = completion.prompt_tokens, completion.completion_tokens
        if prompt is None:
            prompt = sum(message.tokens for message in request.messages)
        if answer is None:
            answer = estimate_tokens(completion.text)
        cost = self.limits.cost_of(completion.model, prompt, answer) or 0.0
        self._usage(day).update(
            prompt_tokens=F("prompt_tokens") + prompt,
            completion_tokens=F("completion_tokens") + answer,
            cost=F("cost") + Decimal(f"{cost:.8f}"),
        )


def spent_on(day: object) -> Decimal:
    """Return what all clients' chats cost on a day."""
    clients = UsageDay.objects.filter(day=day, is_owner=False)
    return clients.aggregate(cost=Sum("cost"))["cost"] or Decimal(0)


def notice_for(*, turn: Turn, profile: AssistantProfile) -> str:
    """Return the privacy notice if the turn's answer is the first to this chat, or "".

    The turn that carries it is recorded first: tried again, it carries it again, and no other does
    unless this one ends without an answer.
    """
    # The English one, and after lines such as [es] those in further languages.
    english, *further = re.split(r"^\[(\w\w)\]\s*$", profile.privacy_notice_en, flags=re.MULTILINE)
    notices = {
        "he": profile.privacy_notice_he,
        **dict(zip(further[::2], further[1::2], strict=True)),
    }
    notice = notices.get(turn.chat.language, "").strip() or english.strip()
    if not notice or turn.user_role == GODFATHER:
        return ""
    access, _made = ChatAccess.objects.get_or_create(chat_id=turn.chat_id)
    before = access.noticed_turn
    if before not in (None, turn.pk):
        went_out = not Turn.objects.filter(pk=before, state__in=UNSENT).exists()
        if went_out:
            return ""
    unchanged = ChatAccess.objects.filter(pk=access.pk, noticed_turn=before)
    return notice if unchanged.update(noticed_turn=turn.pk) else ""


def _access_refusal(access: ChatAccess, limits: intake.UsageLimits) -> str:
    """Return the code of why the chat isn't answered at all, or ""."""
    standing = intake.standing_of(access)
    if standing == Standing.BLOCKED:
        return intake.BLOCKED
    if access.opted_out_at is not None:
        return intake.OPTED_OUT
    return intake.NOT_ALLOWED if limits.allow_list_only and standing != Standing.ALLOWED else ""


def _background_check(chat_id: UUID, limits: intake.UsageLimits, now: datetime) -> None:
    chat = Chat.objects.select_related("access").filter(pk=chat_id).first()
    access = intake.access_of(chat or Chat(pk=chat_id))
    if code := _access_refusal(access, limits):
        raise intake.LimitReachedError(code)
    if not limits.messages_per_hour or access.hour_began_at is None:
        return
    if intake.hour_runs(access, now) and access.hour_messages > limits.messages_per_hour:
        raise intake.LimitReachedError(intake.MESSAGES, until=access.hour_began_at + intake.HOUR)


def model_refusal(
    turn: Turn | None,
    entry: intake.Entry,
    access: ChatAccess | None,
    limits: intake.UsageLimits,
    now: datetime,
) -> str:
    """Return the code of why the model isn't going to answer a new message, or "".

    ``turn``: None for a message that asks for no answer. ``access``: None for who has no limits.
    A turn that waits as the assistant is paused isn't refused: staff read its message.
    """
    if turn is None:
        return entry.reason
    if turn.state == TurnState.MISSED:
        return intake.TOO_OLD
    refused = turn.state == TurnState.REFUSED
    reason: str = turn.error.code if refused else turn.context.get("reason", "")
    if reason or access is None or turn.state != TurnState.PENDING:
        return reason
    try:
        _day_check(turn.chat_id, limits, now)
    except intake.LimitReachedError as error:
        return error.code
    return ""


def _day_check(chat_id: UUID, limits: intake.UsageLimits, now: datetime) -> None:
    """Check today's usage of the chat. Raises LimitReachedError."""
    today = limits.day_of(now)
    used = UsageDay()
    if limits.model_calls_per_day or limits.tokens_per_day:
        used = UsageDay.objects.filter(chat_id=chat_id, day=today).first() or used
    code = ""
    if limits.model_calls_per_day and used.model_calls >= limits.model_calls_per_day:
        code = intake.MODEL_CALLS
    elif limits.tokens_per_day and used.tokens >= limits.tokens_per_day:
        code = intake.TOKENS
    elif limits.daily_budget and spent_on(today) >= limits.daily_budget:
        code = intake.BUDGET
    if code:
        raise intake.LimitReachedError(code, until=limits.day_ends(now))


# Move and drop the usage of chats.


# Longer than a year, so that one can be compared with the one before.
KEEP_DAYS = 400
DROPPED_AT_ONCE = 5_000


def usage_merge(*, old: Chat, young: Chat) -> None:
    """Add the younger chat's usage to that of the older one, with which it becomes one."""
    for used in UsageDay.objects.filter(chat=young):
        there = UsageDay.objects.filter(chat=old, day=used.day)
        added = there.update(
            model_calls=F("model_calls") + used.model_calls,
            prompt_tokens=F("prompt_tokens") + used.prompt_tokens,
            completion_tokens=F("completion_tokens") + used.completion_tokens,
            cost=F("cost") + used.cost,
        )
        if not added:
            UsageDay.objects.filter(pk=used.pk).update(chat=old)
        elif used.reached:
            there.filter(reached="").update(reached=used.reached, reached_at=used.reached_at)


def usage_drop(*, today: date) -> int:
    """Delete the usage of days that are long past; return how many rows."""
    old = UsageDay.objects.filter(day__lt=today - timedelta(days=KEEP_DAYS))
    dropped = 0
    while keys := list(old.values_list("pk", flat=True)[:DROPPED_AT_ONCE]):
        dropped += UsageDay.objects.filter(pk__in=keys).delete()[0]
    return dropped


# A chat that was answered so long ago is known; strangers of a flood begin now.
KNOWN_AFTER = timedelta(hours=3)


def known_chat(*, godfather: Collection[str], now: datetime) -> Q:
    """Return the condition on a turn that its chat goes ahead of strangers.

    It is the owner's, or known: a chat that staff allow, and one that had an answer some hours ago.
    """
    answered = Turn.objects.filter(
        chat=OuterRef("chat"), state=TurnState.SENT, created_at__lt=now - KNOWN_AFTER
    )
    allowed = ChatAccess.objects.filter(chat=OuterRef("chat"), standing=Standing.ALLOWED)
    owners = ChatAddress.objects.filter(
        chat=OuterRef("chat"),
        left_at=None,
        chat__is_group=False,
        address__in=sorted(all_forms(godfather)),
    )
    return Q(Exists(owners)) | Q(Exists(allowed)) | Q(Exists(answered))
