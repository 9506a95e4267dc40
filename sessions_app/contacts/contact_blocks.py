"""Read what is kept of one person, block by block; each is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from cards_app.models import MemoryCard
from memories_app.models import Memory, MemoryStatus, SourceDocument
from memories_app.search.facade import memories_for_staff
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.forgetting.facade import receipts_of
from sessions_app.models import Chat, ChatAddress, ChatSession, ForgetReceipt, Label, Note

Row = TypeVar("Row")

SHOWN = 10
SHOWN_MEMORIES = 20


@dataclass(frozen=True)
class AddressLine:
    """An address as it is displayed: the number, and the address where that reads otherwise."""

    row: ChatAddress
    number: str


@dataclass(frozen=True)
class Some(Generic[Row]):
    """The first rows of a block; ``more``: there are others, behind its link."""

    rows: Sequence[Row]
    more: bool


def addresses_of(chat: Chat) -> list[AddressLine]:
    """Return all addresses of the person, also those they left."""
    return [AddressLine(row, number_shown(row.address)) for row in chat.addresses.all()]


def labels_of(chat_id: UUID) -> list[Label]:
    return list(Label.objects.filter(chat_labels__chat=chat_id))


def sessions_of(chat_id: UUID) -> Some[ChatSession]:
    rows = ChatSession.objects.filter(chat=chat_id).order_by("-created_at")
    return _some(rows[: SHOWN + 1], SHOWN)


def memories_of(chat_id: UUID) -> Some[Memory]:
    """Return the memories that came from the person's chat and are in force or wait for staff."""
    of_chat = memories_for_staff().filter(chat_id=chat_id)
    kept = of_chat.exclude(status=MemoryStatus.SUPERSEDED).defer("terms", "likeness")
    rows = kept.order_by("-pinned", "-created_at", "memory_id")
    return _some(rows[: SHOWN_MEMORIES + 1], SHOWN_MEMORIES)


def documents_of(chat_id: UUID) -> Some[SourceDocument]:
    rows = SourceDocument.objects.filter(chat_id=chat_id).order_by("-created_at")
    return _some(rows[: SHOWN + 1], SHOWN)


def cards_of(chat_id: UUID) -> Some[MemoryCard]:
    rows = MemoryCard.objects.filter(chat_id=chat_id).order_by("-session_started_at")
    return _some(rows[: SHOWN + 1], SHOWN)


def notes_of(chat_id: UUID) -> Some[Note]:
    rows = Note.objects.filter(chat=chat_id).order_by("-created_at", "note_id")
    return _some(rows[: SHOWN + 1], SHOWN)


def receipts_of_person(chat: Chat) -> Some[ForgetReceipt]:
    rows = receipts_of(ForgetReceipt.objects.all(), chat.whatsapp_chat).order_by("-id")
    return _some(rows[: SHOWN + 1], SHOWN)


def _some(rows: Sequence[Row], most: int) -> Some[Row]:
    found = list(rows)
    return Some(found[:most], len(found) > most)
