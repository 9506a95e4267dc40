"""Who may see which memories: the one place where visibility is decided."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet

from memories_app.models import Memory, Visibility


def memories_visible(*, is_owner: bool, is_staff: bool, chat_id: UUID | None) -> QuerySet[Memory]:
    """The memories that may be recalled: all of them for the godfather and for staff; for
    anybody else the public ones and those of the same chat."""
    if is_owner or is_staff:
        return Memory.objects.all()
    visible = Q(visibility=Visibility.PUBLIC)
    if chat_id is not None:
        visible |= Q(visibility=Visibility.CHAT, chat_id=chat_id)
    return Memory.objects.filter(visible)
