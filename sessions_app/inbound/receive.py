"""Store what a webhook delivered.

Deduplication, chat, session, message and turn are one transaction. Nothing is answered here; the
turn is left to a worker.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import (
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.utils import timezone
from psycopg.errors import DeadlockDetected
from psycopg.types.json import Jsonb

from memoryproject.foundation.integrations.whatsapp import events
from memoryproject.foundation.integrations.whatsapp.events import Event
from sessions_app.conversations.facade import (
    address_change,
    chat_known,
    damaged_session_end,
    unstored_forget,
)
from sessions_app.inbound import message_changes, take_message
from sessions_app.inbound.chat_gate import ChatBusyError, ChatGate, addresses_of, waited_for_a_lock
from sessions_app.inbound.take_message import IntakeRules
from sessions_app.models import Chat, InboundDelivery, Turn
from sessions_app.models.deliveries import UNPROCESSED
from sessions_app.turns.facade import own_send_confirm, status_apply

logger = logging.getLogger(__name__)

KEY_LENGTH = 512
TRIES = 3
Enqueue = Callable[[UUID], object]
FIRST_RETRY = timedelta(minutes=1)

# One statement: whether there is one already, and if not, the new one, with a limit for the locks
# of its transaction.
ADD = f"""
INSERT INTO {InboundDelivery._meta.db_table}
    (provider, delivery_key, event, subject_id, raw, outcome, attempts, received_at)
VALUES (%s, %s, %s, %s, %s, '', 0, clock_timestamp())
ON CONFLICT (provider, delivery_key) DO NOTHING
RETURNING id, received_at, set_config('lock_timeout', %s, true)
"""  # noqa: S608 constants only

NOTICE_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "critical": logging.CRITICAL}


@dataclass(frozen=True)
class Outcome:
    """The result of an event: words for staff, and the chat in which a turn waits now.

    ``has_to_redact``: a worker has still to redact texts in the chat. ``subject_id``: the id under
    which the message is stored, if the event names it by another one.
    """

    text: str
    chat: Chat | None = None
    message_id: UUID | None = None
    answer_due: bool = False
    has_to_redact: bool = False
    subject_id: str = ""


def events_receive(
    *,
    received: Sequence[Event],
    rules: IntakeRules,
    enqueue: Enqueue,
    gate: ChatGate | None = None,
    now: datetime | None = None,
) -> None:
    """Store every event in its own transaction; enqueue the chats that now wait for an answer.

    ``enqueue`` is called in the event's transaction.

    An event that can't be processed is kept as it came, with the reason, and doesn't stop the
    others. Raises OperationalError or InterfaceError when the database is out of reach or full, so
    that the provider delivers again.

    With a ``gate``, an event whose chat is busy for too long isn't stored, nor are later ones of
    this chat, so that their order stays. The others are; then ChatBusyError is raised.
    """
    busy: set[str] = set()
    for event in received:
        addresses = addresses_of(event)
        if not busy.isdisjoint(addresses):
            continue
        try:
            with gate.passed(addresses) if gate else nullcontext():
                _receive_with_retry(event, rules, enqueue, gate, now or timezone.now())
        except OperationalError as error:
            if gate is None or not waited_for_a_lock(error):
                raise
            busy |= addresses or {event.delivery_key}
        except InterfaceError:
            raise
        except Exception as error:
            logger.exception("A delivery of %s could not be processed.", event.provider)
            _keep_unprocessed(event, error, now or timezone.now())
    if busy:
        raise ChatBusyError("Not all events could be stored in time.")


def _receive_with_retry(
    event: Event, rules: IntakeRules, enqueue: Enqueue, gate: ChatGate | None, now: datetime
) -> None:
    for _ in range(TRIES - 1):
        try:
            return _receive_one(event, rules, enqueue, gate, now)
        except IntegrityError:
            # Another delivery created the same row at the same moment: the next attempt finds it.
            continue
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected):
                raise
    try:
        return _receive_one(event, rules, enqueue, gate, now)
    except IntegrityError:
        # ERR-SESSION-001: a damaged session is left alone, and the message begins a new one.
        if not _damaged_session_ended(event, now):
            raise
    return _receive_one(event, rules, enqueue, gate, now)


def _damaged_session_ended(event: Event, now: datetime) -> bool:
    if not isinstance(event, events.InboundMessage):
        return False
    chat = chat_known(party=event.party, group_id=event.group_id)
    return chat is not None and damaged_session_end(chat=chat, at=now)


def _receive_one(
    event: Event, rules: IntakeRules, enqueue: Enqueue, gate: ChatGate | None, now: datetime
) -> None:
    with transaction.atomic():
        delivery = _delivery_add(event, longest_wait=gate.patience if gate else 0)
        if delivery is not None:
            outcome = process(event, delivery, rules, now)
            if outcome.answer_due and outcome.chat:
                enqueue(outcome.chat.pk)


def _delivery_add(event: Event, *, longest_wait: float) -> InboundDelivery | None:
    """Store the delivery of the event; return None if there is one already.

    Of two that come at the same moment, the later one waits here until the first is committed.
    ``longest_wait``: the seconds that the transaction waits for a lock at most; 0: for ever.
    """
    delivery = InboundDelivery(
        provider=event.provider,
        delivery_key=_key(event),
        event=type(event).__name__,
        subject_id=_subject(event),
        raw=event.raw,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            ADD,
            [
                delivery.provider,
                delivery.delivery_key,
                delivery.event,
                delivery.subject_id,
                Jsonb(delivery.raw),
                f"{longest_wait:.3f}s",
            ],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    delivery.pk, delivery.received_at, _ = row
    delivery._state.adding = False
    return delivery


def process(event: Event, delivery: InboundDelivery, rules: IntakeRules, now: datetime) -> Outcome:
    """Process the event in the current transaction and note the outcome on its delivery.

    The caller enqueues the chat if an answer is due.
    """
    outcome = _process(event, delivery, rules, now)
    delivery.outcome = outcome.text[:255]
    delivery.chat = outcome.chat
    delivery.message_id = outcome.message_id
    delivery.retry_at = now if outcome.has_to_redact else None
    if outcome.has_to_redact and outcome.chat and rules.redact is not None:
        rules.redact(outcome.chat.pk)
    delivery.subject_id = outcome.subject_id or delivery.subject_id
    delivery.save(update_fields=["outcome", "chat", "message_id", "retry_at", "subject_id"])
    return outcome


def _process(event: Event, delivery: InboundDelivery, rules: IntakeRules, now: datetime) -> Outcome:
    """Process the event by its kind; each kind has exactly one case."""
    if isinstance(event, events.InboundMessage):
        taken = take_message.message_take(event=event, delivery=delivery, rules=rules, now=now)
        return Outcome(
            taken.text, taken.chat, taken.message_id, taken.answer_due, subject_id=taken.known_as
        )
    if isinstance(event, events.StatusUpdate):
        due = status_apply(event=event)
        return Outcome(
            due.text, due.chat, answer_due=due.answer_due, subject_id=due.provider_message_id
        )
    if isinstance(event, events.OwnSend):
        due = own_send_confirm(event=event)
        # Its text belongs to an answer that is stored already, or must not be stored.
        delivery.raw = None
        delivery.save(update_fields=["raw"])
        return Outcome(due.text, due.chat, answer_due=due.answer_due)
    if isinstance(event, events.MessageEdited | events.MessageRevoked | events.Reaction):
        return _change(event, delivery, rules, now)
    if isinstance(event, events.AddressChanged):
        chat = address_change(
            provider=event.provider,
            number_id=event.number_id,
            old=event.old,
            new=event.new,
            at=event.timestamp,
        )
        return Outcome("address changed", chat)
    if isinstance(event, events.Notice):
        logger.log(NOTICE_LEVELS.get(event.level, logging.WARNING), "%s", event.summary)
        return Outcome(event.summary)
    reason = event.reason if isinstance(event, events.Ignored) else "nothing to do"
    return Outcome(f"ignored: {reason}")


def _change(
    event: message_changes.Change, delivery: InboundDelivery, rules: IntakeRules, now: datetime
) -> Outcome:
    chat = chat_known(party=event.party, group_id=event.group_id)
    override = chat.memory_enabled if chat else None
    changed = message_changes.change_apply(
        event=event,
        chat=chat,
        chat_memory=rules.chat_memory,
        memory_enabled=rules.memory_enabled if override is None else override,
        limits=rules.limits,
        now=now,
    )
    delivery.change = changed.rest
    delivery.raw = None if changed.forget else delivery.raw
    delivery.save(update_fields=["change", "raw"])
    message = changed.message
    return Outcome(
        changed.text,
        message.chat if message else chat,
        has_to_redact=changed.has_to_redact,
        subject_id=(message.provider_message_id or "") if message else "",
    )


def _subject(event: Event) -> str:
    """Return the provider's id of the message that the event is about."""
    if isinstance(event, events.StatusUpdate | events.OwnSend | events.InboundMessage):
        return event.provider_message_id[:255]
    if isinstance(event, events.MessageEdited | events.MessageRevoked):
        return event.original_id[:255]
    return event.target_id[:255] if isinstance(event, events.Reaction) else ""


def unprocessed_outcome(error: Exception) -> str:
    return f"{UNPROCESSED}{type(error).__name__}"[:255]


def _keep_unprocessed(event: Event, error: Exception, now: datetime) -> None:
    """Keep the event for a retry; for staff, as text, where even its raw form can't be stored."""
    as_text = {"unreadable": ascii(event.raw)}
    for raw, retry_at in ((event.raw, now + FIRST_RETRY), (as_text, None)):
        try:
            InboundDelivery.objects.get_or_create(
                provider=event.provider,
                delivery_key=_key(event),
                defaults={
                    "event": type(event).__name__,
                    "raw": raw,
                    "outcome": unprocessed_outcome(error),
                    "retry_at": retry_at,
                },
            )
        except (DataError, ValueError):
            continue
        return


def _key(event: Event) -> str:
    """Return the event's key, in a form that fits and can be stored."""
    key = event.delivery_key
    if len(key) <= KEY_LENGTH and key.isprintable():
        return key
    return "sha256:" + hashlib.sha256(key.encode(errors="replace")).hexdigest()


def raw_deliveries_drop(*, now: datetime, older_than: timedelta, batch: int = 5_000) -> int:
    """Erase the raw bodies that are past their retention; return how many.

    The text of turns without memory whose answer never went out is erased, too. The ids stay.
    """
    unanswered = Turn.objects.filter(session__isnull=True, created_at__lt=now - older_than)
    for turn in unanswered.exclude(unstored_text="", unstored_reply=""):
        unstored_forget(turn)
    old = InboundDelivery.objects.filter(raw__isnull=False, received_at__lt=now - older_than)
    dropped = 0
    while keys := list(old.values_list("pk", flat=True)[:batch]):
        dropped += InboundDelivery.objects.filter(pk__in=keys).update(raw=None, change=None)
    return dropped
