"""Store one session from old files with its messages, in one transaction, and report it."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from memories_app.store.memory_fields import names_lock
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.conversations.chat_addresses import chat_at_or_new, chat_of_session
from sessions_app.conversations.message_store import window_recompute
from sessions_app.conversations.message_text import indexed_of
from sessions_app.conversations.session_lifecycle import (
    activity_recount,
    cards_request,
    sessions_record,
)
from sessions_app.inbound.facade import IntakeRules
from sessions_app.legacy_import.parse_sessions import (
    LegacyMessage,
    LegacySession,
    is_uuid,
    is_whatsapp_chat,
)
from sessions_app.legacy_import.session_folder import (
    FoundMessage,
    ImportReport,
    Incoming,
    LegacyFolder,
)
from sessions_app.models import Chat, ChatSession, Message
from sessions_app.models.sessions import SessionStatus

logger = logging.getLogger(__name__)

BATCH = 500


class MemoryOffError(Exception):
    """The chat's memory is off: nothing is stored for it."""


@dataclass
class Stored:
    """The result of a session.

    ``fresh``: the session did not exist before; ``outranked``: it would be active, but the chat
    has another active session. Of its messages, ``there``: how many were stored before; ``added``:
    the new rows; ``refused`` gives the reason for each that has no place.
    """

    session: ChatSession
    fresh: bool
    outranked: bool
    token_limit: int
    there: int = 0
    added: list[tuple[FoundMessage, Message]] = field(default_factory=list)
    refused: list[tuple[FoundMessage, str]] = field(default_factory=list)


def session_import(
    *, incoming: Incoming, rules: IntakeRules, now: datetime, dry_run: bool = False
) -> Stored:
    """Store a session, or the messages that an existing session lacks.

    ``dry_run``: roll everything back. Raises MemoryOffError, and IntegrityError for what can't be
    stored. Two imports at once take their turns.
    """
    with transaction.atomic():
        names_lock(["import of old sessions"])
        chat = _chat_locked(incoming)
        if chat.memory_enabled is False:
            raise MemoryOffError
        sessions = ChatSession.objects.select_for_update(no_key=True)
        session = sessions.filter(pk=incoming.legacy.session_id).first()
        fresh = session is None
        session = session or _begin(chat, incoming, rules, now)
        session.chat = chat
        is_active = session.status == SessionStatus.ACTIVE
        outranked = fresh and not is_active and _would_be_active(incoming, rules, now)
        stored = Stored(session, fresh, outranked, token_limit(chat=chat, rules=rules))
        _messages_import(stored, incoming)
        if stored.added:
            activity_recount(chat_ids=[chat.pk])
            window_recompute(session=session, token_limit=stored.token_limit)
            session.save(update_fields=["message_counter", "total_tokens", "window_start"])
            if is_active:
                rules.chat_memory.manage_after_commit(session)
        if (stored.added or fresh) and not is_active:
            cards_request(session_ids=[session.pk])
        if dry_run:
            transaction.set_rollback(True)
    return stored


def token_limit(*, chat: Chat, rules: IntakeRules) -> int:
    """Return the limit of history tokens for the chat's role."""
    return rules.chat_memory.limits.tokens_for(rules.chat_memory.role_in(chat))


def _chat_locked(incoming: Incoming) -> Chat:
    chat = chat_of_session(incoming.legacy.session_id)
    if chat is not None:
        return chat
    # The provider is unknown; the next message sets it.
    found = chat_at_or_new(incoming.legacy.whatsapp_chat, at=incoming.legacy.last_active)
    chat = Chat.objects.select_for_update(no_key=True).get(pk=found.pk)
    if incoming.legacy.client_name and not chat.client_name:
        chat.client_name = incoming.legacy.client_name
        chat.save(update_fields=["client_name", "updated_at"])
    return chat


def _begin(chat: Chat, incoming: Incoming, rules: IntakeRules, now: datetime) -> ChatSession:
    """Create a session; it is active only if no rule prevents it."""
    status = incoming.status
    if status == SessionStatus.ACTIVE and not (
        incoming.leads
        and _would_be_active(incoming, rules, now)
        and not chat.sessions.filter(status=SessionStatus.ACTIVE).exists()
    ):
        status = str(SessionStatus.EXPIRED)
    ended = min(incoming.legacy.last_active + rules.session_timeout, now)
    session = ChatSession.objects.create(
        session_id=incoming.legacy.session_id,
        chat=chat,
        status=status,
        created_at=incoming.legacy.created_at,
        last_active=incoming.legacy.last_active,
        expired_at=None if status == SessionStatus.ACTIVE else ended,
    )
    sessions_record(action="session.create", sessions=[session], actor=COMMAND_LINE)
    return session


def _would_be_active(incoming: Incoming, rules: IntakeRules, now: datetime) -> bool:
    """Return whether its folder says active and it isn't idle for too long.

    Idle time is compared to the second (EDGE-004).
    """
    last_active = incoming.legacy.last_active.replace(microsecond=0)
    return incoming.status == SessionStatus.ACTIVE and last_active + rules.session_timeout > now


# Store the messages of an imported session.

TAKEN_ELSEWHERE = "message_id: another session has this message"
TAKEN_NUMBER = "order_num: another message of the session has this number"


def _messages_import(stored: Stored, incoming: Incoming) -> None:
    """Store those of the messages that the session lacks. The caller holds the session's lock."""
    placed = _placed(stored, _lacking(stored, incoming.messages))
    original_id = incoming.legacy.original_id
    stored.added = [
        (found, _row(stored.session, number, found, original_id)) for number, found in placed
    ]
    Message.objects.bulk_create([row for _, row in stored.added], batch_size=BATCH)


def _lacking(stored: Stored, messages: Sequence[FoundMessage]) -> list[FoundMessage]:
    """Return the messages that are not stored yet; refuse those of other sessions."""
    there = Message.objects.filter(pk__in=[found.message_id for found in messages])
    known = dict(there.values_list("message_id", "session_id"))
    lacking = []
    for found in messages:
        holder = known.get(found.message_id)
        if holder is None:
            lacking.append(found)
        elif holder == stored.session.pk:
            stored.there += 1
        else:
            stored.refused.append((found, TAKEN_ELSEWHERE))
    return lacking


def _placed(stored: Stored, lacking: list[FoundMessage]) -> list[tuple[int, FoundMessage]]:
    """Return each message with its order_num.

    In an existing session, stored messages keep their place, and a message that claims the same
    place is refused.
    """
    if stored.fresh:
        return numbered(lacking)
    taken = set(stored.session.messages.values_list("order_num", flat=True)) if lacking else set()
    free = []
    for found in sorted(lacking, key=_order):
        number = found.legacy.order_num
        if number in taken:
            stored.refused.append((found, TAKEN_NUMBER))
        else:
            taken.add(number)
            free.append((number, found))
    return free


def numbered(messages: Iterable[FoundMessage]) -> list[tuple[int, FoundMessage]]:
    """Return the messages in order, each with its number.

    If two claim the same number, the later one moves up, and so do those after it as far as
    necessary; gaps stay.
    """
    placed: list[tuple[int, FoundMessage]] = []
    last = 0
    for found in sorted(messages, key=_order):
        last = max(found.legacy.order_num, last + 1)
        placed.append((last, found))
    return placed


def _order(found: FoundMessage) -> tuple[object, ...]:
    legacy = found.legacy
    return legacy.order_num, legacy.timestamp, found.message_id


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


# Report an imported session: counts and warnings.


def note_stored(
    report: ImportReport, stored: Stored, folder: LegacyFolder, legacy: LegacySession
) -> None:
    """Report the newly stored messages and their unusual values.

    Messages from before are not reported. ``legacy``: the session as its file has it.
    """
    session = stored.session
    report.messages["already_there"] += stored.there
    report.messages["imported"] += len(stored.added)
    for found, reason in stored.refused:
        report.skip(report.messages, found.source, reason)
    for found, row in stored.added:
        _note_message(report, stored, found.legacy, row, folder)
    # Told once for a session, however many messages have it.
    if any(found.legacy.naive for found, _ in stored.added) or (stored.fresh and legacy.naive):
        report.warn("naive_times", session.pk)
    moved = sum(row.order_num != found.legacy.order_num for found, row in stored.added)
    if moved:
        report.warn("repeated_order_num", session.pk, moved)
    if not stored.fresh:
        report.sessions["already_there"] += 1
        return
    report.sessions["imported"] += 1
    report.sessions["expired"] += session.status != SessionStatus.ACTIVE
    if stored.outranked:
        report.warn("another_session_active", session.pk)
    _note_file(report, session, legacy)
    if not report.dry_run:
        text = "Session %s of chat %s was imported as %s."
        logger.info(text, session.pk, session.chat_id, session.status)


def _note_message(
    report: ImportReport, stored: Stored, legacy: LegacyMessage, row: Message, folder: LegacyFolder
) -> None:
    session_id, message_id = stored.session.pk, row.message_id
    if not legacy.content.strip():
        report.warn("empty_content", message_id, session_id)
    if legacy.image_path and not folder.has_file(legacy.image_path):
        report.warn("missing_image", message_id, session_id)
    if row.tokens > stored.token_limit:
        report.warn("long_message", message_id, session_id, stored.token_limit)


def _note_file(report: ImportReport, session: ChatSession, legacy: LegacySession) -> None:
    if not is_whatsapp_chat(legacy.whatsapp_chat):
        report.warn("unusual_chat_id", session.pk, legacy.whatsapp_chat)
    if legacy.unknown:
        names = ", ".join(map(ascii, sorted(legacy.unknown)))
        report.warn("unknown_session_fields", session.pk, names)
    if legacy.original_id != str(session.pk):
        text = "Session %s was called %s in its file."
        logger.info(text, session.pk, ascii(legacy.original_id))
    if legacy.total_tokens is not None and legacy.total_tokens != session.total_tokens:
        text = "Session %s has %d tokens in its window; its file said %d."
        logger.debug(text, session.pk, session.total_tokens, legacy.total_tokens)
