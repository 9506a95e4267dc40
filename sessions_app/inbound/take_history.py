"""Store what the owner's phone shares when it is connected: old messages, and names of contacts.

Old messages are stored once, whatever pieces they come in and in whatever order, in ended sessions
of their own. Nobody answers them, and no one is told.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import groupby
from uuid import UUID, uuid5

from django.db import connection
from django.utils.timezone import now

from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.lenient import fingerprint
from memoryproject.foundation.integrations.whatsapp.events import (
    InboundMessage,
    OldMessages,
    SavedContacts,
)
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import address_forms
from sessions_app.conversations import chat_addresses, message_store, plain_words, session_lifecycle
from sessions_app.inbound import exchanges, message_rows
from sessions_app.inbound.message_changes import early_changes_apply, twin_of
from sessions_app.inbound.take_message import IntakeRules, chat_of, has_ids
from sessions_app.inbox.read_markers import old_messages_seen
from sessions_app.limits.intake import access_of
from sessions_app.models import Chat, ChatAddress, ChatSession, InboundDelivery, Message
from sessions_app.models.deliveries import EventResult
from sessions_app.models.limits import Standing
from sessions_app.models.messages import DeliveryStatus, Role
from sessions_app.models.sessions import SessionStatus

SESSION_KEYS = UUID("6f1d2a54-5a0e-5c86-9a58-0f6f6b1a3c11")
# Of which the file is told later, in another body.
PLACEHOLDER = "media_placeholder"
STATUSES = {"error": str(DeliveryStatus.FAILED), **{each: each for each in DeliveryStatus.values}}


def history_take(*, event: OldMessages, rules: IntakeRules, now: datetime) -> EventResult:
    """Store a piece of old messages. Call it in the transaction of its delivery."""
    threads: dict[str, list[InboundMessage]] = {}
    for message in _new_ones(event):
        if addresses := message.party.addresses():
            threads.setdefault(addresses[0], []).append(message)
    # The order in which all pieces lock.
    for address in sorted(threads):
        old_thread_take(threads[address], rules, now)
    return EventResult("old messages stored", is_kept=False)


def _new_ones(event: OldMessages) -> Iterable[InboundMessage]:
    """Return the messages that were never delivered, and those whose file is told only now."""
    found = {message.delivery_key: message for message in event.read()}
    known = InboundDelivery.objects.filter(provider=event.provider, delivery_key__in=list(found))
    delivered = {row.delivery_key: row for row in known.select_related("message__chat")}
    for key, message in found.items():
        if key not in delivered:
            yield message
            continue
        earlier = delivered[key].message
        if message.media and earlier and earlier.metadata.get("provider_type") == PLACEHOLDER:
            # Of a file Meta tells less than of the message that stands for it.
            yield replace(
                message,
                party=chat_addresses.party_of(earlier.chat.whatsapp_chat),
                timestamp=earlier.timestamp,
                from_business=earlier.role == Role.ASSISTANT,
            )


def old_thread_take(
    messages: Sequence[InboundMessage], rules: IntakeRules, now: datetime
) -> list[Message] | None:
    """Store the messages of one person or group, and return those that are stored.

    None: memory is off there, or the person has stopped us. Call it in a transaction.
    """
    chat = _chat_locked(min(messages, key=lambda message: message.timestamp), rules)
    if chat is None:
        return None
    access = access_of(chat)
    if access.standing == Standing.BLOCKED or access.opted_out_at or not rules.remember(chat):
        return None
    addresses = chat.addresses.filter(left_at=None).values_list("address", flat=True)
    if not chat.is_group and has_ids(messages[0], chat, list(addresses)):
        messages = [message for message in messages if not twin_of(message, chat)]
    stored: list[Message] = []
    in_order = sorted(messages, key=lambda message: message.timestamp)
    for month, some in groupby(in_order, key=lambda message: _month(message.timestamp)):
        stored += _month_take(chat, month, list(some), rules)
    if not stored:
        return stored
    session_lifecycle.activity_recount(chat_ids=[chat.pk])
    sessions = [each for each in chat.sessions.all() if each.pk == _key(chat, each.created_at)]
    old_messages_seen(chat_id=chat.pk, sessions=sessions)
    _changes_apply(stored, messages, rules, now)
    if rules.learn_history is not None:
        exchanges.messages_learn(
            chat=chat,
            rows=stored,
            role=rules.chat_memory.role_in(chat),
            context={},
            learn=rules.learn_history,
            now=now,
        )
    return stored


def _chat_locked(first: InboundMessage, rules: IntakeRules) -> Chat | None:
    """Return the chat of a thread, which is created if memory is on; else None."""
    chat = chat_addresses.chat_known(party=first.party, group_id=first.group_id)
    if chat is None:
        return chat_of(first) if rules.memory_enabled else None
    return Chat.objects.select_for_update(no_key=True).get(pk=chat.pk)


def _month(at: datetime) -> datetime:
    return datetime(*at.astimezone(timezone.utc).timetuple()[:2], 1, tzinfo=timezone.utc)


def _key(chat: Chat, at: datetime) -> UUID:
    """Return the key of the session of a chat's old messages of a month."""
    return uuid5(SESSION_KEYS, f"{chat.pk}:{_month(at):%Y-%m}")


def _month_take(
    chat: Chat, month: datetime, events: Sequence[InboundMessage], rules: IntakeRules
) -> list[Message]:
    at = events[0].timestamp
    session, is_new = ChatSession.objects.select_for_update(no_key=True).get_or_create(
        session_id=_key(chat, month),
        defaults={
            "chat": chat,
            "status": SessionStatus.EXPIRED,
            "created_at": at,
            "last_active": at,
            "expired_at": at,
        },
    )
    if is_new:
        session_lifecycle.sessions_record(action="session.create", sessions=[session], actor=SYSTEM)
    rows = [
        _row(session, chat, event, number)
        for number, event in enumerate(events, session.message_counter + 1)
    ]
    _placeholders_replace(rows)
    limit = rules.chat_memory.limits.tokens_for(rules.chat_memory.role_in(chat))
    old_messages_add(session=session, rows=rows, token_limit=limit)
    # As if each had been delivered alone: what is erased doesn't come back with a later piece.
    deliveries = {
        event.delivery_key: InboundDelivery(
            provider=event.provider,
            delivery_key=event.delivery_key,
            event="InboundMessage",
            subject_id=event.provider_message_id,
            outcome="old messages stored",
            chat=chat,
            message=row,
        )
        for event, row in zip(events, rows, strict=True)
    }
    keys = {"provider": events[0].provider, "delivery_key__in": list(deliveries)}
    known = list(InboundDelivery.objects.filter(**keys))
    for earlier in known:
        earlier.message = deliveries.pop(earlier.delivery_key).message
    InboundDelivery.objects.bulk_update(known, ["message"])
    InboundDelivery.objects.bulk_create(deliveries.values(), ignore_conflicts=True)
    return rows


# Old messages come in any order. Numbers above all others are free in between.
_RAISE = f"""
UPDATE {Message._meta.db_table} SET order_num = order_num + %(above)s WHERE session_id = %(session)s
"""  # noqa: S608 constants only
_PLACE = f"""
UPDATE {Message._meta.db_table} AS said SET order_num = placed.number FROM (
    SELECT message_id, row_number() OVER (ORDER BY timestamp, order_num) AS number
    FROM {Message._meta.db_table} WHERE session_id = %(session)s
) AS placed WHERE said.message_id = placed.message_id
"""  # noqa: S608 constants only


def old_messages_add(*, session: ChatSession, rows: Sequence[Message], token_limit: int) -> None:
    """Store old messages in their session, and number all its messages by their times.

    ``rows`` are in the order of their times, with the session's next numbers. ``session``, which is
    ended and locked, is saved.
    """
    last = session.messages.order_by("-order_num").values_list("timestamp", flat=True).first()
    Message.objects.bulk_create(rows)
    if last is not None and last > rows[0].timestamp:
        highest = max(row.order_num for row in rows)
        with connection.cursor() as cursor:
            for statement in (_RAISE, _PLACE):
                cursor.execute(statement, {"session": session.pk, "above": highest})
    message_store.window_recompute(session=session, token_limit=token_limit)
    times = [row.timestamp for row in rows]
    session.created_at = min(session.created_at, *times)
    session.last_active = session.expired_at = max(session.last_active, *times)
    session.vectors_requested_at = session.vectors_requested_at or now()
    session.save()


def _row(session: ChatSession, chat: Chat, event: InboundMessage, number: int) -> Message:
    command = None if event.from_business else plain_words.parse_command(event.text, in_group=False)
    new = message_rows.new_message(event, chat, command)
    row = message_store.message_row(session, new, number, event.timestamp)
    if event.from_business:
        row.delivery_status = STATUSES.get(event.metadata.get("history", ""), "")
    return row


def _placeholders_replace(rows: Sequence[Message]) -> None:
    """Let rows with a file take the place of the messages that stand for them."""
    with_files = {row.provider_message_id: row for row in rows if row.media}
    standing = Message.objects.filter(
        provider=rows[0].provider,
        number_id=rows[0].number_id,
        provider_message_id__in=list(with_files),
    )
    for message in standing:
        with_files[message.provider_message_id].delivery_status = message.delivery_status
        message.delete()


def _changes_apply(
    rows: Sequence[Message], events: Sequence[InboundMessage], rules: IntakeRules, now: datetime
) -> None:
    """Apply the changes that came before their old messages."""
    by_id = {row.provider_message_id: row for row in rows}
    early = InboundDelivery.objects.filter(subject_id__in=list(by_id), change__isnull=False)
    for subject in set(early.values_list("subject_id", flat=True)):
        message = Message.objects.get(pk=by_id[subject].pk)
        party = events[0].party
        early_changes_apply(message=message, party=party, chat_memory=rules.chat_memory, now=now)


def contacts_take(*, event: SavedContacts) -> EventResult:
    """Give chats the names that the owner saved, but for those that staff named.

    The others are kept until the person writes, as long as raw deliveries are.
    """
    forms = {form: address for address in event.names for form in address_forms(address)}
    links = ChatAddress.objects.filter(address__in=list(forms), left_at__isnull=True)
    known = {forms[link.address]: link.chat for link in links.select_related("chat")}
    named = [chat for chat in known.values() if not chat.staff_name]
    for address, chat in known.items():
        if not chat.staff_name:
            chat.staff_name = event.names[address][:255]
    Chat.objects.bulk_update(named, ["staff_name"], batch_size=500)
    later = {address: name for address, name in event.names.items() if address not in known}
    rows = [
        InboundDelivery(
            provider=event.provider,
            delivery_key=f"{event.number_id}:contact:{fingerprint({address: name})}",
            event="SavedContacts",
            subject_id=address,
            outcome="names stored",
            change={"name": name[:255]},
            # What isn't empty is emptied in time.
            raw={},
        )
        for address, name in later.items()
    ]
    InboundDelivery.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
    return EventResult("names stored", is_kept=False)
