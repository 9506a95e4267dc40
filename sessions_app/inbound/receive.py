"""Store what a webhook delivered.

Deduplication, chat, session, message and turn are one transaction. Nothing is answered here; the
turn is left to a worker.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.db import (
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.utils import timezone
from psycopg.errors import DeadlockDetected, LockNotAvailable
from psycopg.types.json import Jsonb

from memoryproject.foundation.bulk_rows import sent_together
from memoryproject.foundation.integrations.whatsapp import events
from memoryproject.foundation.integrations.whatsapp.events import Event
from sessions_app.conversations import chat_addresses, redact_derived, session_lifecycle
from sessions_app.inbound import message_changes, message_rows, take_history, take_message
from sessions_app.inbound.take_message import IntakeRules
from sessions_app.limits.figures import marketing_set
from sessions_app.models import InboundDelivery, Turn
from sessions_app.models.deliveries import UNPROCESSED, EventResult
from sessions_app.turns.facade import account_reported, own_send_confirm, status_apply

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
ON CONFLICT DO NOTHING
RETURNING id, set_config('lock_timeout', %s, true)
"""  # noqa: S608 constants only

# The keys of the notices of numbers that aren't ours begin so.
FOREIGN = "foreign:"
NOTICE_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "critical": logging.CRITICAL}


class ChatBusyError(OperationalError):
    """Events of a chat could not be stored in time: the provider delivers them again."""


def addresses_of(event: Event) -> frozenset[str]:
    """Return the addresses that name the chat of an event; none for an event of no chat."""
    group_id = getattr(event, "group_id", None)
    if group_id:
        return frozenset({group_id})
    if isinstance(event, events.AddressChanged):
        return frozenset([*event.old.addresses(), *event.new.addresses()])
    party = getattr(event, "party", None)
    return frozenset(party.addresses() if party else [])


def events_receive(
    *,
    received: Sequence[Event],
    rules: IntakeRules,
    enqueue: Enqueue,
    longest_wait: float = 0,
    now: datetime | None = None,
) -> None:
    """Store every event in its own transaction; enqueue the chats that now wait for an answer.

    ``enqueue`` is called in the event's transaction.

    An event that can't be processed is kept as it came, with the reason, and doesn't stop the
    others. Raises OperationalError or InterfaceError when the database is out of reach or full, so
    that the provider delivers again.

    ``longest_wait``: for so many seconds an event waits for its chat's lock; 0: as long as it
    takes. One that has waited so long isn't stored, nor are later ones of this chat, so that their
    order stays. The others are; then ChatBusyError is raised. So a chat in which something is slow
    doesn't hold the threads that others' webhooks need.
    """
    busy: set[str] = set()
    for event in received:
        addresses = addresses_of(event)
        if not busy.isdisjoint(addresses):
            continue
        try:
            _receive_with_retry(event, rules, enqueue, longest_wait, now or timezone.now())
        except OperationalError as error:
            if not longest_wait or not isinstance(error.__cause__, LockNotAvailable):
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
    event: Event, rules: IntakeRules, enqueue: Enqueue, longest_wait: float, now: datetime
) -> None:
    for tries_left in range(TRIES, -1, -1):
        try:
            _receive_one(event, rules, enqueue, longest_wait, now)
        except IntegrityError:
            # Another delivery created the same row at the same moment: the next attempt finds it.
            # ERR-SESSION-001: a damaged session is left alone, and the message begins a new one.
            if tries_left < 2 and not (tries_left and _damaged_session_ended(event, now)):
                raise
        except OperationalError as error:
            if not (tries_left and isinstance(error.__cause__, DeadlockDetected)):
                raise
        else:
            return


def _damaged_session_ended(event: Event, now: datetime) -> bool:
    if not isinstance(event, events.InboundMessage):
        return False
    chat = chat_addresses.chat_known(party=event.party, group_id=event.group_id)
    return chat is not None and session_lifecycle.damaged_session_end(chat=chat, at=now)


def _receive_one(
    event: Event, rules: IntakeRules, enqueue: Enqueue, longest_wait: float, now: datetime
) -> None:
    with transaction.atomic():
        delivery_id = _delivery_add(event, longest_wait)
        if isinstance(event, events.OldMessages) and not event.is_first:
            # Nobody waits for them, but the provider waits for our answer: the sweep stores them.
            later = InboundDelivery.objects.filter(pk=delivery_id)
            later.update(outcome="waits for its turn", retry_at=now)
        elif delivery_id is not None:
            process(event, delivery_id, rules, enqueue, now)


def _delivery_add(event: Event, longest_wait: float) -> int | None:
    """Store the delivery of the event and return its key; None if there is one already.

    Of two that come at the same moment, the later one waits here until the first is committed.
    ``longest_wait``: the seconds that the transaction waits for a lock at most; 0: for ever.
    """
    about = (event.provider, _key(event), type(event).__name__, _subject(event), Jsonb(event.raw))
    with connection.cursor() as cursor:
        cursor.execute(ADD, [*about, f"{longest_wait:.3f}s"])
        row = cursor.fetchone()
    return row[0] if row else None


def process(
    event: Event, delivery_id: int, rules: IntakeRules, enqueue: Enqueue, now: datetime
) -> None:
    """Process the event in the current transaction and note the result on its delivery.

    The chat is enqueued if an answer is due.
    """
    result = _process(event, rules, now)
    has_to_redact = redact_derived.REDACT in (result.change or {})
    changes: dict[str, Any] = {
        "outcome": result.text[:255],
        "chat": result.chat,
        "message_id": result.message_id,
        "retry_at": now if has_to_redact else None,
        "change": result.change,
        **({"subject_id": result.subject_id} if result.subject_id else {}),
        **({} if result.is_kept else {"raw": None}),
    }
    if has_to_redact and result.chat and rules.redact is not None:
        rules.redact(result.chat.pk)
    # Rules act on what people write.
    is_persons = not getattr(event, "from_business", True)
    if rules.look_at and is_persons and result.chat and getattr(result.chat, "rules_act", False):
        rules.look_at(result.chat.pk)
    with sent_together():
        InboundDelivery.objects.filter(pk=delivery_id).update(**changes)
        if result.answer_due and result.chat:
            enqueue(result.chat.pk)


def _process(event: Event, rules: IntakeRules, now: datetime) -> EventResult:
    """Process the event by its kind; each kind has exactly one case."""
    if isinstance(event, events.InboundMessage | events.OwnSend):
        message_rows.own_addresses_learn(event)
    if isinstance(event, events.InboundMessage):
        return take_message.message_take(event=event, rules=rules, now=now)
    if isinstance(event, events.StatusUpdate):
        if event.stops_marketing and event.party:
            _marketing_choose(event, now)
        return status_apply(event=event)
    if isinstance(event, events.OwnSend):
        return own_send_confirm(event=event)
    if isinstance(event, events.MessageEdited | events.MessageRevoked | events.Reaction):
        chat = chat_addresses.chat_known(party=event.party, group_id=event.group_id)
        return message_changes.change_apply(
            event=event,
            chat=chat,
            chat_memory=rules.chat_memory,
            memory_enabled=rules.remember(chat) if chat else rules.memory_enabled,
            limits=rules.limits,
            now=now,
        )
    if isinstance(event, events.AddressChanged):
        chat = chat_addresses.address_change(event, godfather=rules.chat_memory.godfather)
        return EventResult("address changed", chat)
    if isinstance(event, events.OldMessages):
        return take_history.history_take(event=event, rules=rules, now=now)
    if isinstance(event, events.SavedContacts):
        return take_history.contacts_take(event=event)
    if isinstance(event, events.MarketingChoice):
        return _marketing_choose(event, now)
    if isinstance(event, events.Notice):
        logger.log(NOTICE_LEVELS.get(event.level, logging.WARNING), "%s", event.summary)
        account_reported(event=event)
        return EventResult(event.summary)
    reason = event.reason if isinstance(event, events.Ignored) else "nothing to do"
    return EventResult(f"ignored: {reason}")


def _marketing_choose(event: Any, now: datetime) -> EventResult:
    """Store whether a person wants marketing messages, also if they never wrote.

    A status says no. Call it before the message's turn is locked: the chat comes first.
    """
    chat = chat_addresses.chat_for_party(
        provider=event.provider, number_id=event.number_id, party=event.party, at=event.timestamp
    )
    at = min(event.timestamp, now)
    is_stopped = getattr(event, "is_stopped", True)
    if not marketing_set(chat=chat, is_stopped=is_stopped, at=at):
        return EventResult("ignored: known, or older than what is known", chat)
    return EventResult(f"marketing messages {'stopped' if is_stopped else 'allowed'}", chat)


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
            kept = InboundDelivery(
                provider=event.provider,
                delivery_key=_key(event),
                event=type(event).__name__,
                raw=raw,
                outcome=unprocessed_outcome(error),
                retry_at=retry_at,
            )
            # The trigger leaves out one that is there: nothing is returned then.
            InboundDelivery.objects.bulk_create([kept], ignore_conflicts=True)
        except (DataError, ValueError):
            continue
        return


def _key(event: Event) -> str:
    """Return the event's key, in a form that fits and can be stored."""
    key = event.delivery_key
    if len(key) <= KEY_LENGTH and key.isprintable():
        return key
    return "sha256:" + hashlib.sha256(key.encode(errors="replace")).hexdigest()


def foreign_numbers(*, since: datetime) -> list[str]:
    """Return the numbers that aren't ours, and for which webhooks came."""
    notices = InboundDelivery.objects.filter(
        event="Notice", delivery_key__startswith=FOREIGN, raw__isnull=False, received_at__gte=since
    )
    return sorted({key.split(":")[1] for key in notices.values_list("delivery_key", flat=True)})


# Where the time of a provider's last handshake is kept.
HANDSHAKE = "webhook-handshake:"


def handshake_note(provider: str) -> None:
    """Note that the provider made its handshake with the token that we know, for the set-up."""
    with suppress(Error):
        cache.set(f"{HANDSHAKE}{provider}", timezone.now(), None)


def handshake_seen(provider: str) -> datetime | None:
    """Return when the provider last made its handshake."""
    found: datetime | None = cache.get(f"{HANDSHAKE}{provider}")
    return found


def last_message_from(provider: str) -> tuple[datetime, str] | None:
    """Return when the provider last delivered a message, and the end of the person's number."""
    came = InboundDelivery.objects.filter(provider=provider, event="InboundMessage")
    found = came.exclude(chat=None).select_related("chat").order_by("-id").first()
    if found is None or found.chat is None:
        return None
    number = found.chat.client_phone or found.chat.whatsapp_chat.partition("@")[0]
    return found.received_at, number[-2:]


def raw_deliveries_drop(*, now: datetime, older_than: timedelta, batch: int = 5_000) -> int:
    """Erase the raw bodies that are past their retention; return how many.

    The text of turns without memory whose answer never went out is erased, too. The ids stay.
    """
    unanswered = Turn.objects.filter(session__isnull=True, created_at__lt=now - older_than)
    for turn in unanswered.exclude(unstored_text="", unstored_reply=""):
        redact_derived.unstored_forget(turn)
    old = InboundDelivery.objects.filter(raw__isnull=False, received_at__lt=now - older_than)
    dropped = 0
    while keys := list(old.values_list("pk", flat=True)[:batch]):
        dropped += InboundDelivery.objects.filter(pk__in=keys).update(raw=None, change=None)
    return dropped
