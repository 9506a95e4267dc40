"""Report on an imported session: counts and warnings."""

from __future__ import annotations

import logging

from sessions_app.legacy_import.files.gather import Gathered
from sessions_app.legacy_import.files.ids import is_whatsapp_chat
from sessions_app.legacy_import.files.parse_sessions import LegacySession
from sessions_app.legacy_import.files.report import ImportReport
from sessions_app.legacy_import.files.session_folder import LegacyFolder, shown
from sessions_app.legacy_import.import_messages import Added
from sessions_app.legacy_import.import_session import Stored
from sessions_app.models import ChatSession
from sessions_app.models.sessions import SessionStatus

logger = logging.getLogger(__name__)


def note_session(report: ImportReport, session: LegacySession, found: Gathered) -> None:
    """Report the faults of the session's files, at each read."""
    if found.missing:
        report.messages_missing += len(found.missing)
        report.warn(
            "missing_messages",
            "Session %s has gaps, there are no files of its messages: %s.",
            session.session_id,
            ", ".join(map(shown, found.missing)),
        )


def note_stored(
    report: ImportReport, stored: Stored, folder: LegacyFolder, legacy: LegacySession | None
) -> None:
    """Report the newly stored messages and their unusual values.

    Messages from before are not reported. ``legacy``: the session's file, if there is one.
    """
    report.messages_there += stored.messages.there
    report.messages_imported += len(stored.messages.added)
    for found, reason in stored.messages.refused:
        report.message_skip(found.source, reason)
    for added in stored.messages.added:
        _note_message(report, stored, added, folder)
    _note_session_wide(report, stored, legacy)
    if not stored.fresh:
        report.sessions_there += 1
        return
    report.sessions_imported += 1
    report.sessions_expired += stored.session.status != SessionStatus.ACTIVE
    _note_fresh(report, stored, legacy)


def _note_message(report: ImportReport, stored: Stored, added: Added, folder: LegacyFolder) -> None:
    legacy, session_id = added.found.legacy, stored.session.session_id
    message_id = added.found.message_id
    if not legacy.content.strip():
        text = "Message %s of session %s is without text."
        report.warn("empty_content", text, message_id, session_id)
    if legacy.image_path and not folder.has_file(legacy.image_path):
        text = "The image of message %s of session %s is not there; its path is kept."
        report.warn("missing_image", text, message_id, session_id)
    if added.tokens > stored.token_limit:
        text = "Message %s of session %s exceeds the limit of %d tokens: it is kept whole."
        report.warn("long_message", text, message_id, session_id, stored.token_limit)


def _note_session_wide(report: ImportReport, stored: Stored, legacy: LegacySession | None) -> None:
    """Report a fault once for a session, however many messages have it."""
    session_id = stored.session.session_id
    naive = any(added.found.legacy.naive for added in stored.messages.added)
    if naive or (stored.fresh and legacy is not None and legacy.naive):
        text = "Session %s has times without a time zone: taken for UTC."
        report.warn("naive_times", text, session_id)
    moved = sum(added.order_num != added.found.legacy.order_num for added in stored.messages.added)
    if moved:
        text = "Session %s has the same order_num more than once: %d messages got another."
        report.warn("repeated_order_num", text, session_id, moved)


def _note_fresh(report: ImportReport, stored: Stored, legacy: LegacySession | None) -> None:
    session = stored.session
    if stored.outranked:
        text = "Session %s came in as expired: another session of its chat is active."
        report.warn("another_session_active", text, session.session_id)
    if legacy is not None:
        _note_file(report, session, legacy)
    if not report.dry_run:
        logger.info(
            "Session %s of chat %s was imported as %s.",
            session.session_id,
            session.chat_id,
            session.status,
        )


def _note_file(report: ImportReport, session: ChatSession, legacy: LegacySession) -> None:
    if not is_whatsapp_chat(legacy.whatsapp_chat):
        text = "Session %s has an unusual WhatsApp chat id, accepted as it is: %s."
        report.warn("unusual_chat_id", text, session.session_id, legacy.whatsapp_chat)
    if legacy.unknown:
        text = "Session %s has fields that are not kept: %s."
        names = ", ".join(map(ascii, legacy.unknown))
        report.warn("unknown_session_fields", text, session.session_id, names)
    if legacy.original_id != str(session.session_id):
        text = "Session %s was called %s in its file."
        logger.info(text, session.session_id, ascii(legacy.original_id))
    if legacy.total_tokens is not None and legacy.total_tokens != session.total_tokens:
        logger.debug(
            "Session %s has %d tokens in its window; its file said %d.",
            session.session_id,
            session.total_tokens,
            legacy.total_tokens,
        )
