"""Read what one contact holds, for the preview of a merge or of a split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cards_app.models import MemoryCard
from memories_app.models import Memory, MemoryStatus, SourceDocument
from memoryproject.foundation.admin_kit.stamped_form import digest_of
from sessions_app.history.facade import ChatMemoryService
from sessions_app.inbox.facade import later_assignment
from sessions_app.models import (
    Assignment,
    Chat,
    ChatAccess,
    ChatActivity,
    ChatAddress,
    ChatPause,
    ChatSession,
    Label,
    Message,
    Note,
)
from sessions_app.models.sessions import SessionStatus

COUNTED = ("sessions", "messages", "memories", "documents", "cards", "notes")


@dataclass(frozen=True)
class ContactSide:
    """One contact. ``counts``: how many of each name in COUNTED it has.

    ``role``: client or godfather. ``talking``: its session is active.
    """

    chat: Chat
    addresses: Sequence[ChatAddress]
    counts: dict[str, int]
    role: str
    last_at: datetime | None = None
    talking: bool = False
    labels: Sequence[Label] = field(default=())
    assignment: Assignment | None = None
    pause: ChatPause | None = None
    access: ChatAccess | None = None

    @property
    def names(self) -> list[str]:
        return [name for name in (self.chat.staff_name, self.chat.client_name) if name]

    def stamp_values(self) -> list[Any]:
        """Return what was seen of this contact, as plain values."""
        chat, access, pause = self.chat, self.access, self.pause
        decided = (access.standing, access.opted_out_at is not None) if access else ("", False)
        return [
            str(chat.pk),
            [chat.whatsapp_chat, chat.client_name, chat.staff_name, str(chat.memory_enabled)],
            [(link.pk, link.address, link.left_at is None) for link in self.addresses],
            self.counts,
            self.talking,
            [label.pk for label in self.labels],
            self.assignment.assignee_id if self.assignment else None,
            (pause.since.isoformat(), str(pause.until)) if pause else None,
            decided,
        ]


def side_read(chat: Chat, *, chat_memory: ChatMemoryService) -> ContactSide:
    """Return what the contact holds now."""
    addresses = list(chat.addresses.all())
    current = [link.address for link in addresses if link.left_at is None]
    key = chat.pk
    memories = Memory.objects.filter(chat_id=key).exclude(status=MemoryStatus.SUPERSEDED)
    sessions = ChatSession.objects.filter(chat=key)
    activity = ChatActivity.objects.filter(chat=key).first()
    return ContactSide(
        chat=chat,
        addresses=addresses,
        counts={
            "sessions": sessions.count(),
            "messages": Message.objects.filter(chat=key).count(),
            "memories": memories.count(),
            "documents": SourceDocument.objects.filter(chat_id=key).count(),
            "cards": MemoryCard.objects.filter(chat_id=key).count(),
            "notes": Note.objects.filter(chat=key).count(),
        },
        role=chat_memory.role_in(chat, addresses=current),
        last_at=activity.last_at if activity else None,
        talking=sessions.filter(status=SessionStatus.ACTIVE).exists(),
        labels=list(Label.objects.filter(chat_labels__chat=key)),
        assignment=later_assignment(key),
        pause=ChatPause.objects.filter(chat=key).first(),
        access=ChatAccess.objects.filter(chat=key).first(),
    )


def stamp_seen(*seen: object) -> str:
    """Return a digest of what a page showed, to find out whether it changed since."""
    return digest_of(seen)
