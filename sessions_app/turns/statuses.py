"""Apply a provider's reports on the messages that we sent."""

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import or_
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.bulk_rows import sent_together
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.whatsapp import base as whatsapp, events, registry
from memoryproject.foundation.outside_services.models import service_well_since, services_try_again
from memoryproject.foundation.process.storage import SharedTimes
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations import chat_addresses, chat_language, phrases
from sessions_app.conversations.message_text import row_by_token, row_of
from sessions_app.models import Chat, InboundDelivery, Message, OutboundPart, Turn
from sessions_app.models.deliveries import EventResult, PartState
from sessions_app.models.messages import DeliveryStatus, has_token_of
from sessions_app.models.turns import TurnState
from sessions_app.turns.turn_claims import turn_update_state

RANK = {
    "": 0,
    DeliveryStatus.SENT: 1,
    DeliveryStatus.DELIVERED: 2,
    DeliveryStatus.READ: 3,
    DeliveryStatus.PLAYED: 4,
    DeliveryStatus.FAILED: 5,
}
# After the quick retries: the provider is down or limits us. The chat waits in its order.
LATER = timedelta(minutes=1)
# So long an answer may be on its way to be put off when the provider is well again.
AT_THAT_MOMENT = timedelta(seconds=10)
ARRIVED = (DeliveryStatus.DELIVERED, DeliveryStatus.READ, DeliveryStatus.PLAYED)


def status_apply(*, event: events.StatusUpdate) -> EventResult:
    """Raise the status of the message that the event is about.

    A status never falls, and ``failed`` is final. Call it in a transaction.

    A status may come before our own commit of the provider's answer, or in its place when that
    answer was lost: then our own id in the status identifies the part.
    """
    chat = None
    party = event.party
    if party and party.addresses():
        chat = chat_addresses.chat_of_party(
            provider=event.provider, number_id=event.number_id, party=party, at=event.timestamp
        )
    found = _part_of(event, chat)
    if found is None:
        return _status_of_unknown(event, chat)
    part, parts = parts_locked(found)
    before = _reported(part)
    if part.provider_message_id is None:
        part.provider_message_id = event.provider_message_id
        part.state = PartState.SENT
        part.content = ""
    _raise(part, event.status)
    if event.error_text and part.delivery_status == DeliveryStatus.FAILED:
        part.error = event.error_text
    # Mostly we know of the first status already, that it was sent.
    due = _reported(part) != before and part_update(part, parts)
    return EventResult(
        f"status {event.status}",
        part.turn.chat,
        answer_due=due,
        subject_id=part.provider_message_id or "",
    )


def own_send_confirm(*, event: events.OwnSend) -> EventResult:
    """Confirm a part whose answer was lost, by the provider's echo of our own send.

    The echo's text belongs to an answer that is stored already, or must not be stored.
    """
    if OutboundPart.objects.filter(
        provider=event.provider, provider_message_id=event.provider_message_id
    ).exists():
        return EventResult("our own message: ignored", is_kept=False)
    chat = chat_addresses.chat_find(event.whatsapp_chat)
    unsure = OutboundPart.objects.filter(
        turn__chat=chat,
        provider=event.provider,
        state__in=[PartState.SENDING, PartState.UNCONFIRMED],
        provider_message_id__isnull=True,
        content=event.text,
    )
    # Of two equal texts the one whose last attempt is newer is the likelier.
    likeliest = unsure.order_by("-started_at").first()
    if chat is None or likeliest is None:
        return EventResult("our own message: ignored", chat, is_kept=False)
    part, parts = parts_locked(likeliest)
    part.provider_message_id = event.provider_message_id
    part.state = PartState.SENT
    part.delivery_status = part.delivery_status or DeliveryStatus.SENT
    part.content = ""
    early_statuses_take(part=part)
    due = part_update(part, parts)
    return EventResult("our own message: confirmed", chat, answer_due=due, is_kept=False)


def early_statuses_take(*, part: OutboundPart) -> None:
    """Take the statuses that came before we had the provider's id; ``part`` is not saved."""
    message_id = part.provider_message_id or ""
    early = InboundDelivery.objects.filter(
        # Empty ids are not in the index.
        (Q(subject_id=message_id) & ~Q(subject_id=""))
        | (Q(chat=part.turn.chat_id) & has_token_of("subject_id", message_id)),
        provider=part.provider,
        event="StatusUpdate",
    )
    for key in early.values_list("delivery_key", flat=True):
        # In a group the participant follows in the key.
        for status in RANK.keys() & set(key.split(":")):
            _raise(part, status)


def reply_refresh(*, part: OutboundPart, parts: Iterable[OutboundPart]) -> None:
    """Bring the stored answer in line with its parts, of which ``part`` was changed and saved.

    It has the lowest status of its parts, or failed if one failed, and the provider's id of its
    first part.
    """
    turn = part.turn
    if turn.reply_id is None:
        return
    statuses = [each.delivery_status for each in parts]
    if DeliveryStatus.FAILED in statuses:
        lowest = str(DeliveryStatus.FAILED)
    else:
        lowest = min(statuses, key=lambda status: RANK[status], default="")
    changes: dict[str, Any] = {"delivery_status": lowest, "was_received": lowest in ARRIVED}
    if part.number == 1 and part.provider_message_id is not None:
        names = ("provider", "number_id", "provider_message_id")
        changes |= {name: getattr(part, name) for name in names}
    Message.objects.filter(pk=turn.reply_id).update(**changes)


def _reported(part: OutboundPart) -> dict[str, Any]:
    names = ("provider_message_id", "state", "content", "delivery_status", "error")
    return {name: getattr(part, name) for name in names}


def part_update(part: OutboundPart, parts: Iterable[OutboundPart], *, more: bool = False) -> bool:
    """Store what is known of a part by now; return whether a worker is to send the others.

    ``parts``: all of its turn's, locked. ``more``: the caller sends the next one.
    """
    with sent_together():
        OutboundPart.objects.filter(pk=part.pk).update(**_reported(part))
        reply_refresh(part=part, parts=parts)
        return not more and turn_update_state(turn=part.turn, parts=parts)


def _part_of(event: events.StatusUpdate, chat: Chat | None) -> OutboundPart | None:
    parts = OutboundPart.objects.filter(provider=event.provider)
    found = parts.filter(provider_message_id=event.provider_message_id).first()
    callback = uuid_or_none(event.callback_id)
    if found is None and callback is not None:
        found = parts.filter(id=callback, provider_message_id__isnull=True).first()
    return found or row_by_token(
        parts, event.provider_message_id, chat_id=chat.pk if chat else None, chat="turn__chat"
    )


def parts_locked(part: OutboundPart) -> tuple[OutboundPart, list[OutboundPart]]:
    """Return the part as it is now, and all the parts of its turn: locked, and the turn with them.

    The turn comes first: the order in which all code locks. Raises Turn.DoesNotExist.
    """
    rows = OutboundPart.objects.filter(turn=part.turn_id).select_related("turn")
    locked = rows.select_for_update(no_key=True, of=("turn", "self")).order_by("number")
    parts = {each.pk: each for each in locked}
    if part.pk not in parts:
        raise Turn.DoesNotExist
    return parts[part.pk], list(parts.values())


def _status_of_unknown(event: events.StatusUpdate, chat: Chat | None) -> EventResult:
    """Handle the status of a message that no turn sent, such as one typed on the owner's phone."""
    messages = Message.objects.select_for_update(no_key=True).filter(provider=event.provider)
    message = row_of(messages, event.provider_message_id, chat_id=chat.pk if chat else None)
    if message is None:
        return EventResult(f"status {event.status} of a message that is not here", chat)
    if RANK.get(event.status, 0) > RANK[message.delivery_status]:
        message.delivery_status = event.status
        message.was_received = event.status in ARRIVED
        message.save(update_fields=["delivery_status", "was_received"])
    return EventResult(
        f"status {event.status}", message.chat, subject_id=message.provider_message_id or ""
    )


def _raise(part: OutboundPart, status: str) -> None:
    if RANK.get(status, 0) > RANK[part.delivery_status]:
        part.delivery_status = status
    if part.delivery_status == DeliveryStatus.FAILED and part.state == PartState.SENT:
        part.error = part.error or ErrorText("not_delivered")


# Answers that are held because a provider refuses our account, until it accepts it again.


HELD, PAUSED = "send_held", "service_paused"
# The sweep takes up the others.
MAX_AT_ONCE = 50


def postponed_error(turn: Turn, error: whatsapp.SendError) -> str:
    """Return the error of a turn whose answer is sent later."""
    if error.is_paused and is_held(turn):
        # The provider wasn't called: what it said before still counts.
        return turn.error
    return ErrorText(HELD, why=error_text(error)) if error.alert else error_text(error)


def is_held(turn: Turn) -> bool:
    """Return whether the provider refused our account when the answer was to be sent."""
    return getattr(turn.error, "code", "") == HELD


def is_put_off(turn: Turn) -> bool:
    """Return whether the answer wasn't sent because of the provider's state, not for itself."""
    is_waiting = turn.state == TurnState.REPLIED and turn.not_before is not None
    return is_waiting and getattr(turn.error, "code", "") in (HELD, PAUSED)


def sends_resume(*, enqueue: Callable[[UUID], object], now: datetime) -> int:
    """Have the answers sent now that were put off before their provider was well again.

    Each answer that is sent after all lets the others follow, but not those that another thread was
    putting off at that moment, nor any where a new answer was the first to be sent.

    Returns how many.
    """
    waiting = put_off().filter(not_before__gt=now)
    released = 0
    for provider in set(waiting.values_list("provider", flat=True)) & set(registry.PROVIDERS):
        well_since = service_well_since(registry.PROVIDERS[provider].service)
        if well_since is not None:
            before = well_since + LATER + AT_THAT_MOMENT
            released += _release(waiting.filter(provider=provider, not_before__lt=before), enqueue)
    return released


def _release(waiting: QuerySet[Turn], enqueue: Callable[[UUID], object]) -> int:
    with transaction.atomic():
        chats = list(dict.fromkeys(waiting.order_by("id").values_list("chat_id", flat=True)))
        released = waiting.update(not_before=timezone.now())

        def hand_over() -> None:
            for chat_id in chats[:MAX_AT_ONCE]:
                enqueue(chat_id)

        transaction.on_commit(hand_over, robust=True)
    return released


def held_send_now(*, actor: Actor, enqueue: Callable[[UUID], object]) -> int:
    """Send what is held, as staff ask for; return how many answers."""
    with transaction.atomic():
        services_try_again([record.service for record in registry.PROVIDERS.values()])
        # What a colleague has just released is on its way.
        waiting = put_off().filter(not_before__gt=timezone.now())
        released = _release(waiting.filter(provider__in=registry.PROVIDERS), enqueue)
        audit_record("turn.send_held", actor, answers=released)
    return released


def send_followed_up(*, turn: Turn, enqueue: Callable[[UUID], object] | None) -> None:
    """Let the other answers follow one that was sent after all. ``turn``: as it was begun."""
    if not is_put_off(turn):
        return
    if Turn.objects.filter(pk=turn.pk, state=TurnState.SENT).update(error="") and enqueue:
        by_same = put_off().filter(provider=turn.provider, number_id=turn.number_id)
        _release(by_same, enqueue)


def too_late(turn: Turn, max_age: timedelta) -> bool:
    """Return whether an answer that was put off is too old by now to be sent."""
    return is_put_off(turn) and timezone.now() - turn.asked_at > max_age


def put_off() -> QuerySet[Turn]:
    """Return the turns whose answers wait because of the provider's state."""
    codes = (Q(error__startswith=f'{{"code": "{code}"') for code in (HELD, PAUSED))
    return Turn.objects.filter(or_(*codes), state=TurnState.REPLIED, not_before__isnull=False)


# Notify people that nothing can be stored (ERR-SESSION-002).

logger = logging.getLogger(__name__)

EVERY_SECONDS = 15 * 60


@dataclass(frozen=True)
class StorageNotices:
    """Notify each chat at most once in fifteen minutes.

    The limit holds however often the chat's message is delivered again, and across processes.

    ``executor`` sends outside the caller's thread, since the caller may be a webhook. ``notified``
    stores when each chat was notified.
    """

    providers: Callable[[], Mapping[str, whatsapp.WhatsAppProvider]]
    executor: Executor
    notified: SharedTimes
    clock: Callable[[], float] = time.time

    def notify_sender(self, event: events.Event) -> None:
        """Notify the sender of a message; other events need no notice."""
        if not isinstance(event, events.InboundMessage) or event.from_business:
            return
        if event.group_id and not (event.mentions_us or event.replies_to_us):
            return
        language = chat_language.language_of(event.text)
        self.notify(provider=event.provider, to=_sender(event), language=language)

    def notify(self, *, provider: str, to: whatsapp.Recipient, language: str) -> None:
        """Send the notice, unless this chat was notified a short while ago."""
        sender = self.providers().get(provider)
        if sender is None:
            return
        chat = f"{provider}:{to.whatsapp_chat}"
        if self.notified.claim(chat, now=self.clock(), every=EVERY_SECONDS):
            self.executor.submit(self._send, sender, to, phrases.text_for("storage_full", language))

    def _send(self, sender: whatsapp.WhatsAppProvider, to: whatsapp.Recipient, text: str) -> None:
        try:
            sender.send_text(to=to, text=text, callback_id=str(uuid.uuid4()))
        except whatsapp.SendError as error:
            logger.error("Nobody could be told that the storage is full: %s", error)


def _sender(event: events.InboundMessage) -> whatsapp.Recipient:
    if event.group_id:
        group_id = event.group_id.removesuffix("@g.us")
        return whatsapp.Recipient(event.group_id, group_id=group_id, by_number=event.number_id)
    party = event.party
    address = next(iter(party.addresses()), "")
    return whatsapp.Recipient(address, party.phone, party.bsuid, by_number=event.number_id)
