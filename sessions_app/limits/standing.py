"""Staff block chats and allow them."""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from sessions_app.models import Chat, ChatAccess
from sessions_app.models.limits import Standing

logger = logging.getLogger(__name__)

ACTIONS = {
    str(Standing.BLOCKED): "chat.block",
    str(Standing.ALLOWED): "chat.allow",
    str(Standing.NONE): "chat.undecide",
}


def standing_set(
    *, chat_id: UUID, standing: str, reason: str, by: int | None, actor: Actor, now: datetime
) -> bool:
    """Record what staff decided about a chat; return whether that changed anything.

    ``reason`` is one of StandingReason. ``by``: the staff member's id. Messages that wait for an
    answer are refused when their turn comes, if the chat is blocked by then; so is an answer that
    is not sent yet. Raises Chat.DoesNotExist.
    """
    action = ACTIONS[standing]
    with transaction.atomic():
        # Locked as intake locks it: a message that comes at this moment is before it or after it.
        chat = Chat.objects.select_for_update(no_key=True).get(pk=chat_id)
        access, _made = ChatAccess.objects.get_or_create(chat=chat)
        if (access.standing, access.reason) == (standing, reason):
            return False
        before, access.standing = access.standing, standing
        access.reason, access.decided_at, access.decided_by_id = reason, now, by
        access.save(update_fields=["standing", "reason", "decided_at", "decided_by"])
        audit_record(
            action=action,
            actor=actor,
            object_type="chat",
            object_id=chat.pk,
            details={"reason": reason, "before": before},
        )
    logger.info("Chat %s is %s by staff.", chat_id, standing or "no longer blocked or allowed")
    return True


def access_merge(*, old: Chat, young: Chat) -> None:
    """Merge the decisions and counters of two chats that become one.

    Call it with both chats locked, before the younger one is deleted.
    """
    other = ChatAccess.objects.filter(chat=young).first()
    if other is None:
        return
    kept, _made = ChatAccess.objects.get_or_create(chat=old)
    access_join(kept, other)
    kept.save()


def access_join(kept: ChatAccess, other: ChatAccess) -> None:
    """Put what was decided and counted in ``other`` into ``kept``, without saving it.

    Blocked wins over allowed, and a person who stopped the assistant in one chat has stopped it in
    both.
    """
    if other.standing == Standing.BLOCKED or not kept.standing:
        kept.standing, kept.reason = other.standing or kept.standing, other.reason or kept.reason
        kept.decided_at = other.decided_at or kept.decided_at
        kept.decided_by_id = other.decided_by_id or kept.decided_by_id
    kept.opted_out_at = kept.opted_out_at or other.opted_out_at
    kept.noticed_turn = kept.noticed_turn or other.noticed_turn
    begun = [each for each in (kept.hour_began_at, other.hour_began_at) if each]
    kept.hour_began_at = max(begun, default=None)
    kept.hour_messages += other.hour_messages
    kept.hour_commands += other.hour_commands
    kept.hour_told = kept.hour_told or other.hour_told
