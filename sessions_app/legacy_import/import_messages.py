"""Store the messages of an imported session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.conversations.facade import indexed_of
from sessions_app.legacy_import.files.gather import numbered
from sessions_app.legacy_import.files.session_folder import is_uuid
from sessions_app.models import ChatSession, Message

if TYPE_CHECKING:
    from sessions_app.legacy_import.files.gather import FoundMessage

BATCH = 500

TAKEN_ELSEWHERE = "message_id: another session has this message"
TAKEN_NUMBER = "order_num: another message of the session has this number"


@dataclass(frozen=True)
class Added:
    """A message that was stored, with its number and tokens."""

    found: FoundMessage
    order_num: int
    tokens: int


@dataclass
class StoredMessages:
    """The result of a session's messages.

    ``there``: how many were stored before; ``refused`` gives the reason for each message that
    has no place.
    """

    there: int = 0
    added: list[Added] = field(default_factory=list)
    refused: list[tuple[FoundMessage, str]] = field(default_factory=list)


def messages_import(
    *, session: ChatSession, fresh: bool, original_id: str, messages: Sequence[FoundMessage]
) -> StoredMessages:
    """Store those of these messages that the session lacks.

    ``fresh``: it has none yet; ``original_id``: its id in the files. The caller holds the
    session's lock.
    """
    stored = StoredMessages()
    placed = iter(_placed(session, fresh, _lacking(session, messages, stored), stored))
    while batch := list(islice(placed, BATCH)):
        rows = [_row(session, number, found, original_id) for number, found in batch]
        Message.objects.bulk_create(rows)
        stored.added += [
            Added(found, row.order_num, row.tokens)
            for (_, found), row in zip(batch, rows, strict=True)
        ]
    return stored


def _lacking(
    session: ChatSession, messages: Sequence[FoundMessage], stored: StoredMessages
) -> list[FoundMessage]:
    """Return the messages that are not stored yet; refuse those of other sessions."""
    ids = [found.message_id for found in messages]
    known: dict[UUID, UUID] = {}
    for start in range(0, len(ids), BATCH):
        there = Message.objects.filter(pk__in=ids[start : start + BATCH])
        known.update(there.values_list("message_id", "session_id"))
    lacking = []
    for found in messages:
        holder = known.get(found.message_id)
        if holder is None:
            lacking.append(found)
        elif holder == session.pk:
            stored.there += 1
        else:
            stored.refused.append((found, TAKEN_ELSEWHERE))
    return lacking


def _placed(
    session: ChatSession, fresh: bool, lacking: list[FoundMessage], stored: StoredMessages
) -> list[tuple[int, FoundMessage]]:
    """Return each message with its order_num.

    In an existing session, stored messages keep their place, and a message that claims the same
    place is refused.
    """
    placed = numbered(lacking)
    if fresh or not placed:
        return placed
    taken = set(session.messages.values_list("order_num", flat=True))
    free = []
    for _, found in placed:
        if found.legacy.order_num in taken:
            stored.refused.append((found, TAKEN_NUMBER))
        else:
            taken.add(found.legacy.order_num)
            free.append((found.legacy.order_num, found))
    return free


def _row(session: ChatSession, number: int, found: FoundMessage, original_id: str) -> Message:
    legacy = found.legacy
    indexed = indexed_of(legacy.content, {})
    return Message(
        message_id=found.message_id,
        session=session,
        chat_id=session.chat_id,
        order_num=number,
        role=legacy.role,
        content=legacy.content,
        sender=legacy.sender,
        recipient=legacy.recipient,
        timestamp=legacy.timestamp,
        received_at=legacy.received_at,
        was_received=legacy.was_received,
        tokens=estimate_tokens(legacy.content),
        image_path=legacy.image_path,
        metadata={"imported": {**legacy.unknown, **_changed(number, found, original_id)}},
        terms=indexed.terms,
        term_count=indexed.length,
    )


def _changed(number: int, found: FoundMessage, original_id: str) -> dict[str, Any]:
    """Return the original values of the fields that the import changed."""
    legacy = found.legacy
    kept: dict[str, Any] = {}
    if not is_uuid(legacy.original_id):
        kept["message_id"] = legacy.original_id
    if not is_uuid(original_id):
        kept["session_id"] = original_id
    if number != legacy.order_num:
        kept["order_num"] = legacy.order_num
    return kept
