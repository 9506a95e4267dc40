"""A person of the business takes part in a chat: by phone, by a reply of staff, or on request.

The assistant then holds back: what it has not sent yet is cancelled where the person has answered,
and it is paused for a while, which begins anew with each reply.
"""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.whatsapp.events import InboundMessage
from memoryproject.foundation.leases import RELEASED
from sessions_app.conversations.redact_derived import unstored_forget
from sessions_app.models import Chat, ChatMark, ChatPause, Message, OutboundPart, Turn
from sessions_app.models.deliveries import PartState
from sessions_app.models.messages import APOLOGY, DeliveryStatus
from sessions_app.models.takeover import PauseCause
from sessions_app.models.turns import TurnState, turns_move
from sessions_app.turns import turn_claims

# The code of the error of a turn that a person answered.
ANSWERED_BY_PERSON = "answered_by_person"


def step_in(
    *, chat: Chat, cause: str, lasts: timedelta, at: datetime, actor: Actor, by: int | None = None
) -> ChatPause | None:
    """Cancel what a person of the business has answered, and pause the assistant.

    ``at``: when the person wrote, by the provider's clock. ``lasts``: how long the pause lasts from
    then on; a pause that staff have set themselves stays as it is. ``by``: the staff member's id.
    Call it in a transaction with the chat locked.

    Returns the pause that was begun or made longer, or None.
    """
    now = timezone.now()
    unsent_cancel(chat, at=at)
    # What rules said is dealt with.
    ChatMark.objects.filter(chat=chat).delete()
    until = at + lasts
    before = turn_claims.pause_in_force(chat.pk, now)
    if until <= now or (before is not None and not before.is_sliding):
        return None
    is_longer = before is None or before.until is None or before.until < until
    if not is_longer and before is not None and before.cause != PauseCause.PERSON:
        return None
    return turn_claims.chat_pause(
        chat_id=chat.pk, until=until, by=by, actor=actor, now=now, cause=cause
    )


def unsent_cancel(chat: Chat, *, at: datetime) -> int:
    """Cancel the answers to what was asked until then and that aren't sent; return how many.

    What needs no model, such as a request to forget something, is carried out all the same.
    """
    unsent = Turn.objects.filter(
        ~Exists(OutboundPart.objects.filter(turn=OuterRef("pk")).exclude(state=PartState.WAITING)),
        chat=chat,
        asked_at__lte=at,
        by_hand=False,
        state__in=[*turn_claims.NOT_ANSWERED, TurnState.HELD, TurnState.REPLIED],
        finished_at__isnull=True,
    )
    settled = 0
    for turn in unsent.select_related("message", "chat").order_by("id"):
        if turn_claims.is_command(turn):
            continue
        same = Turn.objects.filter(pk=turn.pk, state=turn.state)
        ended = {"error": ErrorText(ANSWERED_BY_PERSON), "finished_at": timezone.now(), **RELEASED}
        if not turns_move(same, TurnState.CANCELLED, **ended):
            continue
        settled += 1
        OutboundPart.objects.filter(turn=turn).update(
            state=PartState.FAILED, delivery_status=DeliveryStatus.FAILED, content=""
        )
        if turn.reply_id is not None:
            _unsay(turn.reply_id)
        if turn.session_id is None:
            unstored_forget(turn)
    return settled


def _unsay(message_id: object) -> None:
    """Mark a stored answer that was never sent: no prompt, summary or recall takes it for said."""
    message = Message.objects.get(pk=message_id)
    message.metadata |= {"system_text": True, APOLOGY: True}
    message.delivery_status = DeliveryStatus.FAILED
    message.save(update_fields=["metadata", "delivery_status"])


def is_own_echo(event: InboundMessage, chat: Chat) -> bool:
    """Return whether a message "by the business" is one that our own call sends or has sent."""
    parts = OutboundPart.objects.filter(provider=event.provider)
    if parts.filter(provider_message_id=event.provider_message_id).exists():
        return True
    on_its_way = parts.filter(turn__chat=chat, state=PartState.SENDING, content=event.text)
    return bool(event.text) and on_its_way.exists()


def pauses_merge(*, old: Chat, young: Chat, now: datetime) -> None:
    """Merge the pauses of two chats that become one; the longer pause counts.

    Call it when the turns have moved, with both chats locked.
    """
    found = list(ChatPause.objects.filter(chat__in=[old, young]))
    if not found:
        return
    longest = turn_claims.longest_pause(found)
    ChatPause.objects.update_or_create(
        chat=old,
        defaults={
            "since": min(pause.since for pause in found),
            "until": longest.until,
            "paused_by_id": longest.paused_by_id,
            "cause": longest.cause,
        },
    )
    if longest.holds(now):
        turn_claims.paused_turns_hold(old.pk, now)
