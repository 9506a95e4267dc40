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


@dataclass
class ImportReport:
    """The counts of an import. ``skipped`` are [{file, reason}].

    ``sessions["expired"]``: the imported sessions with the status expired or archived;
    ``renamed`` maps ids that are no UUIDs to their UUIDs.
    """

    dry_run: bool = False
    sessions: Counter[str] = field(
        default_factory=lambda: Counter(imported=0, expired=0, already_there=0, skipped=0)
    )
    messages: Counter[str] = field(
        default_factory=lambda: Counter(imported=0, already_there=0, missing=0, skipped=0)
    )
    vectors: int = 0
    warnings: Counter[str] = field(default_factory=Counter)
    skipped: list[dict[str, str]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def skip(self, what: Counter[str], file: str, reason: object) -> None:
        """Skip a file, or a message in a file, and continue with the rest.

        ``what``: the report's sessions (ERR-SESSION-001) or messages (ERR-SESSION-003).
        """
        what["skipped"] += 1
        self.skipped.append({"file": file, "reason": str(reason)})
        logger.error("%s was skipped: %s.", file, reason)

    def orphans_skip(self, session: str, count: int) -> None:
        """Skip messages whose session has no readable file, unless a rebuild is requested."""
        self.messages["skipped"] += count
        reason = (
            "the file of their session is missing or can't be used; "
            "--orphans rebuild makes the session from them"
        )
        file = f"messages/: {count} files of session {session}"
        self.skipped.append({"file": file, "reason": reason})
        text = "%d message files of session %s were left: %s."
        self.warn("orphans", text, count, session, reason)

    def warn(self, kind: str, text: str, *values: object) -> None:
        """Log a WARNING and count it under its kind."""
        self.warnings[kind] += 1
        logger.warning(text, *values)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for --json."""
        return {**vars(self), "warnings": dict(sorted(self.warnings.items()))}


def as_text(report: ImportReport) -> str:
    """Return the report as text."""
    sessions, messages = report.sessions, report.messages
    lines = ["Nothing was stored (--dry-run). It would be:"] if report.dry_run else []
    lines += [
        f"sessions: {sessions['imported']} imported "
        f"({sessions['expired']} of them as expired or archived), "
        f"{sessions['already_there']} already there, {sessions['skipped']} skipped",
        f"messages: {messages['imported']} imported, {messages['already_there']} already there, "
        f"{messages['missing']} missing, {messages['skipped']} skipped",
        f"vectors: {report.vectors} made",
    ]
    warnings = sorted(report.warnings.items())
    lists = {
        "warnings (the log has each)": [f"{kind.replace('_', ' ')}: {n}" for kind, n in warnings],
        "skipped": [f"{one['file']}: {one['reason']}" for one in report.skipped],
        "ids that were no UUIDs": [f"{shown(old)} is {new}" for old, new in report.renamed.items()],
    }
    for title, members in lists.items():
        if members:
            lines += [f"{title}:", *(f"  {one}" for one in members[:SHOWN])]
        if len(members) > SHOWN:
            where = "the log and --json have them" if title == "skipped" else "--json has them"
            lines.append(f"  and {len(members) - SHOWN} more: {where}")
    return "\n".join(lines)


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
        text = "Session %s has times without a time zone: taken for UTC."
        report.warn("naive_times", text, session.pk)
    moved = sum(row.order_num != found.legacy.order_num for found, row in stored.added)
    if moved:
        text = "Session %s has the same order_num more than once: %d messages got another."
        report.warn("repeated_order_num", text, session.pk, moved)
    if not stored.fresh:
        report.sessions["already_there"] += 1
        return
    report.sessions["imported"] += 1
    report.sessions["expired"] += session.status != SessionStatus.ACTIVE
    if stored.outranked:
        text = "Session %s came in as expired: another session of its chat is active."
        report.warn("another_session_active", text, session.pk)
    _note_file(report, session, legacy)
    if not report.dry_run:
        text = "Session %s of chat %s was imported as %s."
        logger.info(text, session.pk, session.chat_id, session.status)


def _note_message(
    report: ImportReport, stored: Stored, legacy: LegacyMessage, row: Message, folder: LegacyFolder
) -> None:
    session_id, message_id = stored.session.pk, row.message_id
    if not legacy.content.strip():
        text = "Message %s of session %s is without text."
        report.warn("empty_content", text, message_id, session_id)
    if legacy.image_path and not folder.has_file(legacy.image_path):
        text = "The image of message %s of session %s is not there; its path is kept."
        report.warn("missing_image", text, message_id, session_id)
    if row.tokens > stored.token_limit:
        text = "Message %s of session %s exceeds the limit of %d tokens: it is kept whole."
        report.warn("long_message", text, message_id, session_id, stored.token_limit)


def _note_file(report: ImportReport, session: ChatSession, legacy: LegacySession) -> None:
    if not is_whatsapp_chat(legacy.whatsapp_chat):
        text = "Session %s has an unusual WhatsApp chat id, accepted as it is: %s."
        report.warn("unusual_chat_id", text, session.pk, legacy.whatsapp_chat)
    if legacy.unknown:
        text = "Session %s has fields that are not kept: %s."
        names = ", ".join(map(ascii, sorted(legacy.unknown)))
        report.warn("unknown_session_fields", text, session.pk, names)
    if legacy.original_id != str(session.pk):
        text = "Session %s was called %s in its file."
        logger.info(text, session.pk, ascii(legacy.original_id))
    if legacy.total_tokens is not None and legacy.total_tokens != session.total_tokens:
        text = "Session %s has %d tokens in its window; its file said %d."
        logger.debug(text, session.pk, session.total_tokens, legacy.total_tokens)
