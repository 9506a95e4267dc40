"""The bytes that files of messages use, and their limits: in one chat, and in all."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce

from sessions_app.models import Chat, MediaFile
from sessions_app.models.stored_media import MediaState

# Codes of files that are refused for lack of room.
CHAT_FULL = "chat_full"
TOTAL_FULL = "total_full"
LARGEST = 5
_LOCK = 7_130_000_012


@dataclass(frozen=True)
class MediaQuota:
    """The bytes that the files of one chat may use, and those of all. 0: no limit."""

    chat_bytes: int = 0
    total_bytes: int = 0

    def room(self, chat_id: UUID) -> tuple[int, str]:
        """Return how many bytes fit, and the code of the limit that takes no more."""
        rooms = [(sys.maxsize, "")]
        if self.total_bytes:
            rooms.append((self.total_bytes - bytes_used(), TOTAL_FULL))
        if self.chat_bytes:
            rooms.append((self.chat_bytes - bytes_used(chat_id), CHAT_FULL))
        return min(rooms)

    def room_locked(self, chat_id: UUID) -> tuple[int, str]:
        """Return the same; until the transaction ends, nobody else takes of it."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        return self.room(chat_id)


def bytes_used(chat_id: UUID | None = None) -> int:
    """Return the bytes of the files of one chat, or of all, with those that are being put.

    A file that is yet to be removed counts for all.
    """
    rows = MediaFile.objects.filter(state__in=(MediaState.STORED, MediaState.PENDING))
    if chat_id is not None:
        rows = rows.filter(Q(message__chat=chat_id) | Q(turn__chat=chat_id))
    used: int | None = rows.aggregate(all=Sum("size"))["all"]
    return used or 0


def refused_for_room(since: datetime) -> tuple[int, int]:
    """Return how many chats reached their own limit, and how many files the limit of all."""
    rows = MediaFile.objects.filter(state=MediaState.REFUSED, created_at__gte=since)
    chats = rows.filter(error_code=CHAT_FULL).aggregate(n=Count("message__chat", distinct=True))[
        "n"
    ]
    return chats, rows.filter(error_code=TOTAL_FULL).count()


def largest_chats() -> list[tuple[Chat, int]]:
    """Return the chats whose files use the most bytes."""
    of_chat = Coalesce(F("message__chat"), F("turn__chat"))
    rows = MediaFile.objects.filter(state=MediaState.STORED).annotate(of_chat=of_chat)
    rows = rows.filter(of_chat__isnull=False).order_by().values_list("of_chat")
    used = dict(rows.annotate(used=Sum("size")).order_by("-used", "of_chat")[:LARGEST])
    chats = Chat.objects.in_bulk(used)
    return [(chats[key], size) for key, size in used.items() if key in chats]
