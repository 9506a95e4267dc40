"""Store one incoming message, and open a turn if it needs an answer."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, QuerySet

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.whatsapp import whatsapp_chats
from memoryproject.foundation.integrations.whatsapp.events import (
    MISSED,
    InboundMessage,
    numbers_mentioned,
)
from memoryproject.foundation.process.tracing import TRACEPARENT, current_span
from memoryproject.foundation.text.characters import shows_nothing
from sessions_app import models
from sessions_app.conversations import buttons, history_queries, plain_words, session_lifecycle
from sessions_app.conversations.chat_addresses import chat_for_group, chat_for_party
from sessions_app.conversations.redact_derived import unstored_forget
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.inbound import message_changes, message_rows
from sessions_app.limits import intake
from sessions_app.limits.answer_limits import model_refusal
from sessions_app.models.chats import GODFATHER, Provider, Speaker, actor_in, addresses_now
from sessions_app.models.deliveries import EventResult
from sessions_app.models.messages import SURVEY
from sessions_app.models.takeover import PauseCause
from sessions_app.models.turns import TurnState, turn_create
from sessions_app.turns.facade import ANSWERED_BY_PERSON, QUICK, is_own_echo, step_in, survey_answer

NOT_ANSWERED = "not answered: "
HELD = f"{NOT_ANSWERED}the assistant is paused in this chat"
CALL = "call"
# The name of the text, and of the notice, after a missed call.
MISSED_CALL = "missed_call"
TEXTED_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class IntakeRules:
    """The settings that affect an incoming message.

    ``missed_call_text``: whether the caller gets a text after a missed call. ``learn_history``: has
    a chat learned from, also from old messages; None: they aren't.
    ``speaker``: who writes in the person's place, if the message comes through the API.
    ``fetch_media`` has the file of a stored message fetched, or notes the code of why it isn't;
    None: files aren't kept. ``redact`` has a worker redact texts in a chat; None: the sweep does.
    ``pause_after_reply``: see ``owner_pause``. ``look_at`` has a worker look at a chat in which
    rules of staff may have to act; None: the sweep does. ``surveys``: people are asked whether it
    helped.
    """

    memory_enabled: bool = False
    chat_memory: ChatMemoryService = field(default_factory=ChatMemoryService)
    session_timeout: timedelta = timedelta(hours=24)
    max_answer_age: timedelta = timedelta(hours=24)
    group_policy: str = "mention"
    limits: intake.UsageLimits = field(default_factory=intake.UsageLimits)
    missed_call_text: bool = False
    learn_history: Callable[[UUID], object] | None = None
    speaker: Speaker | None = None
    fetch_media: Callable[[models.Message, str], object] | None = None
    redact: Callable[[UUID], object] | None = None
    pause_after_reply: timedelta = timedelta(hours=1)
    look_at: Callable[[UUID], object] | None = None
    surveys: bool = False

    def owner_pause(self, chat: models.Chat) -> timedelta:
        """Return how long the assistant is paused in this chat after a reply by the business."""
        own = chat.owner_pause_minutes
        return self.pause_after_reply if own is None else timedelta(minutes=own)

    def remember(self, chat: models.Chat) -> bool:
        """Return whether memory is on in this chat."""
        return self.memory_enabled if chat.memory_enabled is None else chat.memory_enabled


@dataclass(frozen=True)
class _Incoming:
    """One message on its way in, with its chat locked. ``access`` is None for who has no limits.

    ``is_own``: the words are the person's; what others wrote commands nothing.
    """

    event: InboundMessage
    chat: models.Chat
    role: str
    access: models.ChatAccess | None
    rules: IntakeRules
    now: datetime
    due: bool
    is_own: bool

    @property
    def speaker(self) -> dict[str, Any]:
        """Return the part of the turn's context that says who writes in the person's place."""
        return self.rules.speaker.as_context() if self.rules.speaker else {}

    @property
    def actor(self) -> Actor:
        return actor_in(self.chat.pk, self.speaker)

    @property
    def command(self) -> plain_words.Command | None:
        """Return the command; plain words are one only where they are said to the assistant."""
        event = self.event
        command = self.is_own and buttons.command_in(
            event.text, event.metadata, in_group=self.chat.is_group
        )
        return None if not command or (command.language and not self.due) else command


def message_take(*, event: InboundMessage, rules: IntakeRules, now: datetime) -> EventResult:
    """Store the message and, if it needs an answer, its turn.

    Call it in the transaction of its delivery: the chat's row is locked until it ends, which gives
    messages their order.
    """
    early = Exists(message_changes.early_changes(event.provider, event.provider_message_id))
    chat = _CHATS.annotate(early=early).get(pk=chat_of(event).pk)
    if has_ids(event, chat, chat.current_addresses) and (
        twin := message_changes.twin_of(event, chat)
    ):
        return EventResult("stored before, under another id", chat, subject_id=twin)
    if event.from_business and is_own_echo(event, chat):
        return EventResult("our own message: ignored", chat, is_kept=False)
    role = rules.chat_memory.role_in(chat, addresses=chat.current_addresses, warns=True)
    access = None if event.from_business or role == GODFATHER else intake.access_of(chat)
    due = not event.from_business and event.kind != CALL and _is_for_us(event, chat, rules)
    is_own = buttons.is_own_text(event.kind, event.metadata)
    if due and is_own and rules.remember(chat):
        helped = survey_answer(chat, event.text, event.metadata, typed=rules.surveys)
        if helped is not None:
            # It is evidence, and wants no answer.
            due, event = False, replace(event, metadata={**event.metadata, SURVEY: helped})
            models.SessionOutcome.objects.filter(session=helped[0]).update(rules=0)
    incoming = _Incoming(event, chat, role, access, rules, now, due, is_own)
    _let_owner_step_in(incoming)
    entry = _decide(incoming)
    texts = rules.missed_call_text and not entry.reason
    if texts and _call_is_texted(event, chat, rules, now):
        incoming, entry = replace(incoming, due=True), intake.Entry(notice=MISSED_CALL)
    if not entry.is_kept:
        # It stays in its delivery alone, where no model, embedder or summary reads it. Where
        # memory is off not even that: nothing is kept then of what isn't answered.
        return EventResult(_not_answered(entry.reason), chat, is_kept=rules.remember(chat))
    if not rules.remember(chat):
        return _take_without_memory(incoming, entry)
    if newer := message_changes.vote_replace(
        event=event, chat=chat, chat_memory=rules.chat_memory, now=now
    ):
        return newer
    return _take(incoming, entry)


def _take(incoming: _Incoming, entry: intake.Entry) -> EventResult:
    """Store the message in its session, and its turn."""
    chat, rules, now = incoming.chat, incoming.rules, incoming.now
    # A person's message opens a session by itself; who writes in their place is named.
    opener = incoming.actor if incoming.speaker else SYSTEM
    session = session_lifecycle.session_open(
        chat=chat, now=now, timeout=rules.session_timeout, actor=opener
    )
    message = _store(incoming, session)
    is_due = incoming.due and not message.revoked_at
    turn = _turn_open(incoming, entry, session=session, message=message) if is_due else None
    if message.media and rules.fetch_media is not None:
        refusal = model_refusal(turn, entry, incoming.access, rules.limits, now)
        rules.fetch_media(message, refusal)
    if turn is None:
        return EventResult("stored, not to be answered", chat, message.message_id)
    if turn.state != TurnState.PENDING:
        return EventResult(_outcome(turn), chat, message.message_id)
    _session_reset(incoming, turn, session)
    return EventResult("stored", chat, message.message_id, answer_due=True)


def has_ids(event: InboundMessage, chat: models.Chat, addresses: list[str]) -> bool:
    """Return whether the message may come under several ids, by whose addresses stand in them.

    A person without a BSUID, whose number has one form, has one id. Of a group's members not all
    addresses are known.
    """
    shown = [*addresses, *event.party.addresses()]
    return chat.is_group or any(
        address.endswith(f"@{whatsapp_chats.BSUID_DOMAIN}")
        or len(whatsapp_chats.address_forms(address)) > 1
        for address in shown
    )


def _call_is_texted(
    event: InboundMessage, chat: models.Chat, rules: IntakeRules, now: datetime
) -> bool:
    """Return whether the caller gets the text after a missed call: at most once an hour."""
    is_missed = event.metadata.get("call", {}).get("outcome") == MISSED
    if not is_missed or event.from_business or now - event.timestamp > rules.max_answer_age:
        return False
    pause = getattr(chat, "pause", None)
    if pause is not None and pause.holds(now):
        return False
    texted = models.Turn.objects.filter(chat=chat, created_at__gt=now - TEXTED_EVERY)
    return not texted.filter(context__notice=MISSED_CALL).exists()


def _let_owner_step_in(incoming: _Incoming) -> None:
    """Pause the assistant where the owner wrote. A call alone says nothing of the talk.

    In a group people talk among themselves: the assistant answers who addresses it.
    """
    event, chat = incoming.event, incoming.chat
    if event.from_business and not chat.is_group and event.kind != CALL:
        step_in(
            chat=chat,
            cause=PauseCause.OWNER,
            lasts=incoming.rules.owner_pause(chat),
            at=min(event.timestamp, incoming.now),
            actor=SYSTEM,
        )


def _session_reset(incoming: _Incoming, turn: models.Turn, session: models.ChatSession) -> None:
    """End the session if the message is the command for it.

    Not only when the answer is made, so that a message which follows at once is part of the new
    conversation.
    """
    resets = incoming.command is not None and incoming.command.name == "reset"
    if resets and "notice" not in turn.context:
        session_lifecycle.session_end(session=session, at=incoming.now, actor=incoming.actor)
        session_lifecycle.session_start(chat=incoming.chat, now=incoming.now, actor=incoming.actor)


# With all that intake needs of them. Made once: making it takes longer than reading a chat. They
# are read after the lock: a statement that waits for a lock sees other tables as they were.
_CHATS: QuerySet[Any] = models.Chat.objects.select_related("access", "pause").annotate(
    current_addresses=addresses_now("pk"), rules_act=session_lifecycle.RULES_ACT
)


def _decide(incoming: _Incoming) -> intake.Entry:
    if incoming.access is None:
        return intake.ANSWERED
    return intake.entry_decide(
        chat=incoming.chat,
        access=incoming.access,
        text=incoming.event.text if incoming.is_own else "",
        command=incoming.command,
        limits=incoming.rules.limits,
        now=incoming.now,
        actor=incoming.actor,
        is_template_button=incoming.event.kind == "button",
    )


def _not_answered(code: str) -> str:
    return f"{NOT_ANSWERED}{ErrorText(code)}"


def _outcome(turn: models.Turn) -> str:
    """Return why the new turn isn't answered, for staff."""
    if turn.state == TurnState.MISSED:
        return "stored, too old to be answered"
    return HELD if turn.state == TurnState.HELD else _not_answered(turn.error.code)


def _turn_open(incoming: _Incoming, entry: intake.Entry, **stored: Any) -> models.Turn:
    """Create the turn of the message.

    Only a message that would be answered counts for the limits. Callers of the API and the terminal
    have throttles of their own.
    """
    event, access = incoming.event, incoming.access
    state = _state(incoming, entry)
    is_counted = state == TurnState.PENDING and event.provider != str(Provider.CONSOLE)
    if is_counted and access is not None:
        entry = intake.entry_count(
            chat=incoming.chat,
            access=access,
            entry=entry,
            is_command=incoming.command is not None,
            limits=incoming.rules.limits,
            now=incoming.now,
        )
        if entry.reason and not entry.notice:
            state = str(TurnState.REFUSED)
    errors = {TurnState.REFUSED: entry.reason, TurnState.CANCELLED: ANSWERED_BY_PERSON}
    error = errors.get(TurnState(state), "")
    context: dict[str, Any] = {"kind": event.kind, **incoming.speaker}
    # Where memory is off, nothing else of the message has it.
    context |= {name: True for name in buttons.FORWARDED if name in event.metadata}
    if entry.notice:
        context |= {"notice": entry.notice, "reason": entry.reason}
    if incoming.command is not None or shows_nothing(event.text) and not event.media:
        context[QUICK] = True
    if around := current_span():
        # The answer, which another program makes, is a part of this trace.
        context[TRACEPARENT] = around.traceparent
    if event.media and "message" not in stored:
        context["media"] = event.media.as_dict()
    turn = turn_create(
        state=state,
        finished_at=None if state in (TurnState.PENDING, TurnState.HELD) else incoming.now,
        error=ErrorText(error) if error else "",
        context=context,
        chat=incoming.chat,
        provider=event.provider,
        number_id=event.number_id,
        provider_message_id=event.provider_message_id,
        user_role=incoming.role,
        asked_at=event.timestamp,
        **stored,
    )
    session_lifecycle.message_received(turn)
    return turn


def _state(incoming: _Incoming, entry: intake.Entry) -> str:
    """Return the first state of the turn, before its message is counted.

    Commands and notices are never held where staff have paused the assistant.
    """
    if incoming.now - incoming.event.timestamp > incoming.rules.max_answer_age:
        return str(TurnState.MISSED)
    if entry.notice or (not entry.reason and incoming.command is not None):
        return str(TurnState.PENDING)
    if entry.reason:
        return str(TurnState.REFUSED)
    pause = getattr(incoming.chat, "pause", None)
    if pause is None or not pause.holds(incoming.now):
        return str(TurnState.PENDING)
    # Deliveries overtake one another: the owner may have answered it on the phone already.
    lasts = incoming.rules.owner_pause(incoming.chat)
    is_settled = (
        pause.cause == PauseCause.OWNER
        and pause.until is not None
        and pause.until - lasts > incoming.event.timestamp
    )
    return str(TurnState.CANCELLED if is_settled else TurnState.HELD)


def chat_of(event: InboundMessage) -> models.Chat:
    """Return the chat of the message, locked."""
    if event.group_id:
        return chat_for_group(
            provider=event.provider,
            number_id=event.number_id,
            group_id=event.group_id,
            name=event.group_name,
        )
    return chat_for_party(
        provider=event.provider, number_id=event.number_id, party=event.party, at=event.timestamp
    )


def _is_for_us(event: InboundMessage, chat: models.Chat, rules: IntakeRules) -> bool:
    """Return whether a message in a group is addressed to the assistant."""
    if not event.group_id or rules.group_policy == "always":
        return True
    if rules.group_policy == "never":
        return False
    name = history_queries.profile_current().name.casefold()
    named = bool(name) and f"@{name}" in event.text.casefold()
    return (
        event.mentions_us
        or event.replies_to_us
        or named
        or message_changes.quotes_our_message(event, chat)
        or _names_our_lid(event)
    )


def _names_our_lid(event: InboundMessage) -> bool:
    """Return whether the message mentions or quotes us by our hidden id."""
    named = {f"{digits}@{whatsapp_chats.LID_DOMAIN}" for digits in numbers_mentioned(event.text)}
    named.add(
        whatsapp_chats.whatsapp_chat_of_provider(event.metadata.get("quoted", {}).get("sender", ""))
    )
    return models.OwnAddress.objects.filter(
        provider=event.provider, number_id=event.number_id, address__in=named - {""}
    ).exists()


def _take_without_memory(incoming: _Incoming, entry: intake.Entry) -> EventResult:
    """Store the message in the delivery and the turn only, because memory is off.

    They keep it until the answer is sent.
    """
    chat = incoming.chat
    if not incoming.due:
        return EventResult("memory is off, not to be answered", chat, is_kept=False)
    turn = _turn_open(incoming, entry, unstored_text=incoming.event.text)
    if turn.finished_at is not None:
        unstored_forget(turn)
    if turn.state != TurnState.PENDING:
        return EventResult(_outcome(turn), chat)
    return EventResult("memory is off, answered from the message alone", chat, answer_due=True)


def _store(incoming: _Incoming, session: models.ChatSession) -> models.Message:
    """Store the message, and apply the changes that arrived before it."""
    event, memory, now = incoming.event, incoming.rules.chat_memory, incoming.now
    new = message_rows.new_message(event, incoming.chat, incoming.command)
    (message,) = memory.append(session=session, new=[new], role=incoming.role, now=now)
    if getattr(incoming.chat, "early", False):
        message_changes.early_changes_apply(
            message=message, party=event.party, chat_memory=memory, now=now
        )
    return message
