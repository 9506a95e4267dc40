"""The report of an import: counted for the result, and logged as it happens."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sessions_app.legacy_import.import_session import Stored
from sessions_app.legacy_import.parse_sessions import LegacyMessage, LegacySession
from sessions_app.legacy_import.session_folder import LegacyFolder, is_whatsapp_chat, shown
from sessions_app.models import ChatSession, Message
from sessions_app.models.sessions import SessionStatus

logger = logging.getLogger(__name__)

SHOWN = 50


@dataclass(frozen=True)
class Skipped:
    """A file, or a message in a file, that was not imported, and the reason."""

    file: str
    reason: str


@dataclass
class ImportReport:
    """The counts of an import.

    ``sessions_expired`` are the imported sessions with the status expired or archived;
    ``renamed`` maps ids that are no UUIDs to their UUIDs.
    """

    dry_run: bool = False
    sessions_imported: int = 0
    sessions_expired: int = 0
    sessions_there: int = 0
    sessions_skipped: int = 0
    messages_imported: int = 0
    messages_there: int = 0
    messages_missing: int = 0
    messages_skipped: int = 0
    vectors: int = 0
    warnings: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def session_skip(self, file: str, reason: str) -> None:
        """Skip the file and continue with the rest (ERR-SESSION-001)."""
        self.sessions_skipped += 1
        self._skip(file, reason)

    def message_skip(self, file: str, reason: str) -> None:
        """Skip the message and continue with its session (ERR-SESSION-003)."""
        self.messages_skipped += 1
        self._skip(file, reason)

    def orphans_skip(self, session: str, count: int) -> None:
        """Skip messages whose session has no readable file, unless a rebuild is requested."""
        self.messages_skipped += count
        reason = (
            "the file of their session is missing or can't be used; "
            "--orphans rebuild makes the session from them"
        )
        self.skipped.append(Skipped(f"messages/: {count} files of session {session}", reason))
        text = "%d message files of session %s were left: %s."
        self.warn("orphans", text, count, session, reason)

    def warn(self, kind: str, text: str, *values: object) -> None:
        """Log a WARNING and count it under its kind."""
        self.warnings[kind] += 1
        logger.warning(text, *values)

    def _skip(self, file: str, reason: str) -> None:
        self.skipped.append(Skipped(file, reason))
        logger.error("%s was skipped: %s.", file, reason)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for --json."""
        return {
            "dry_run": self.dry_run,
            "sessions": {
                "imported": self.sessions_imported,
                "expired": self.sessions_expired,
                "already_there": self.sessions_there,
                "skipped": self.sessions_skipped,
            },
            "messages": {
                "imported": self.messages_imported,
                "already_there": self.messages_there,
                "missing": self.messages_missing,
                "skipped": self.messages_skipped,
            },
            "vectors": self.vectors,
            "warnings": dict(sorted(self.warnings.items())),
            "skipped": [{"file": one.file, "reason": one.reason} for one in self.skipped],
            "renamed": self.renamed,
        }


def as_text(report: ImportReport) -> str:
    """Return the report as text."""
    lines = ["Nothing was stored (--dry-run). It would be:"] if report.dry_run else []
    lines += [
        f"sessions: {report.sessions_imported} imported "
        f"({report.sessions_expired} of them as expired or archived), "
        f"{report.sessions_there} already there, {report.sessions_skipped} skipped",
        f"messages: {report.messages_imported} imported, {report.messages_there} already there, "
        f"{report.messages_missing} missing, {report.messages_skipped} skipped",
        f"vectors: {report.vectors} made",
    ]
    if report.warnings:
        lines.append("warnings (the log has each):")
        lines += [
            f"  {kind.replace('_', ' ')}: {count}"
            for kind, count in sorted(report.warnings.items())
        ]
    if report.skipped:
        lines.append("skipped:")
        lines += [f"  {one.file}: {one.reason}" for one in report.skipped[:SHOWN]]
    if len(report.skipped) > SHOWN:
        lines.append(f"  and {len(report.skipped) - SHOWN} more: the log and --json have them")
    if report.renamed:
        lines.append("ids that were no UUIDs:")
        renamed = list(report.renamed.items())
        lines += [f"  {shown(old)} is {new}" for old, new in renamed[:SHOWN]]
        if len(renamed) > SHOWN:
            lines.append(f"  and {len(renamed) - SHOWN} more: --json has them")
    return "\n".join(lines)


# Report an imported session: counts and warnings.


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
    for found, row in stored.messages.added:
        _note_message(report, stored, found.legacy, row, folder)
    _note_session_wide(report, stored, legacy)
    if not stored.fresh:
        report.sessions_there += 1
        return
    report.sessions_imported += 1
    report.sessions_expired += stored.session.status != SessionStatus.ACTIVE
    _note_fresh(report, stored, legacy)


def _note_message(
    report: ImportReport, stored: Stored, legacy: LegacyMessage, row: Message, folder: LegacyFolder
) -> None:
    session_id, message_id = stored.session.session_id, row.message_id
    if not legacy.content.strip():
        text = "Message %s of session %s is without text."
        report.warn("empty_content", text, message_id, session_id)
    if legacy.image_path and not folder.has_file(legacy.image_path):
        text = "The image of message %s of session %s is not there; its path is kept."
        report.warn("missing_image", text, message_id, session_id)
    if row.tokens > stored.token_limit:
        text = "Message %s of session %s exceeds the limit of %d tokens: it is kept whole."
        report.warn("long_message", text, message_id, session_id, stored.token_limit)


def _note_session_wide(report: ImportReport, stored: Stored, legacy: LegacySession | None) -> None:
    """Report a fault once for a session, however many messages have it."""
    session_id = stored.session.session_id
    naive = any(found.legacy.naive for found, _ in stored.messages.added)
    if naive or (stored.fresh and legacy is not None and legacy.naive):
        text = "Session %s has times without a time zone: taken for UTC."
        report.warn("naive_times", text, session_id)
    moved = sum(row.order_num != found.legacy.order_num for found, row in stored.messages.added)
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
