"""Decide which memories a person may see, and list them. No other module decides this."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from memories_app.models import Memory, MemoryRevision, MemoryStatus, Visibility

# Not the name of one scope: the memories of all.
EVERY_SCOPE = "*"


def memories_visible(
    *,
    is_owner: bool,
    is_staff: bool,
    chat_id: UUID | None,
    now: datetime | None = None,
    as_of: datetime | None = None,
) -> QuerySet[Memory]:
    """Return the memories that may be recalled for a person.

    The owner and staff get all memories, others the public ones and those of the same chat.
    Only active memories that haven't expired are included; with ``as_of`` those that were then.
    """
    current = Memory.objects.filter(
        is_current(as_of or now or timezone.now()),
        Q(status=MemoryStatus.ACTIVE) if as_of is None else _was_believed(as_of),
    )
    if is_owner or is_staff:
        return current
    visible = Q(visibility=Visibility.PUBLIC)
    if chat_id is not None:
        visible |= Q(visibility=Visibility.CHAT, chat_id=chat_id)
    return current.filter(visible)


def _was_believed(at: datetime) -> Q:
    """Return a filter for memories that had been said by then, and not been replaced."""
    known = Q(said_at__lte=at) | Q(created_at__lte=at)
    later = Q(status=MemoryStatus.SUPERSEDED, superseded_at__gt=at)
    return known & (Q(status=MemoryStatus.ACTIVE) | later)


def contents_then(memory_ids: Sequence[UUID], at: datetime) -> dict[UUID, str]:
    """Return what those of the memories said then that were changed since."""
    later = MemoryRevision.objects.filter(memory__in=memory_ids, changed_at__gt=at)
    return dict(later.order_by("-number").values_list("memory_id", "content"))


def scopes_visible(*, is_owner: bool, is_staff: bool, chat_id: UUID | None) -> list[str]:
    """Return the scopes that together hold the memories of ``memories_visible``."""
    if is_owner or is_staff:
        return [EVERY_SCOPE]
    own = [] if chat_id is None else [scope_of(str(Visibility.CHAT), chat_id)]
    return [str(Visibility.PUBLIC), *own]


def memories_for_staff() -> QuerySet[Memory]:
    """Return all memories, including superseded, proposed and expired ones."""
    return Memory.objects.all()


def is_current(now: datetime) -> Q:
    """Return a filter for memories that have not expired."""
    return Q(expires_at__isnull=True) | Q(expires_at__gt=now)


def memories_in_order(memories: QuerySet[Memory]) -> QuerySet[Memory]:
    """Return the memories as people read them: pinned ones first, then the newest.

    The order is total: a page begins where the one before ended.
    """
    return memories.order_by("-pinned", "-created_at", "memory_id")


def tags_in_use() -> list[str]:
    """Return the tags of the newest memories: reading all memories would take too long."""
    rows = Memory.objects.order_by("-created_at").values_list("tags", flat=True)[:1_000]
    return sorted({tag for tags in rows for tag in tags})[:50]


def scope_of(visibility: str, chat_id: UUID | None) -> str:
    """Return the same value that the database generates for ``Memory.scope``."""
    return f"chat:{chat_id}" if visibility == str(Visibility.CHAT) else str(visibility)
