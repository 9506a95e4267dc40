"""Plan the import of a folder: its sessions, their order, and its unlisted message files."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

from sessions_app.legacy_import.files.parse_sessions import (
    LegacySession,
    message_session,
    parse_message,
    parse_session,
)
from sessions_app.legacy_import.files.session_folder import (
    LegacyError,
    LegacyFolder,
    SessionFile,
    is_uuid,
    session_uuid,
)

LONG_AGO = datetime.min.replace(tzinfo=timezone.utc)


@dataclass
class Unlisted:
    """Message files that their session doesn't list.

    They were pruned from it, or its own file is lost. ``original_id`` is the session that they
    name.
    """

    original_id: str
    names: list[str] = field(default_factory=list)
    last: datetime = LONG_AGO


@dataclass(frozen=True)
class Entry:
    """A readable session file.

    ``leads``: no other active session of this chat in the folder was active later.
    """

    path: Path
    status: str
    session_id: UUID
    last_active: datetime
    whatsapp_chat: str
    leads: bool = True


@dataclass
class Plan:
    """The plan of an import.

    ``entries``, the last active first; ``unlisted`` by the id of their session; ``orphans``:
    the unlisted files of sessions whose file is lost, the last active first.
    """

    entries: list[Entry]
    unlisted: dict[UUID, Unlisted]
    orphans: list[UUID]


def plan_folder(folder: LegacyFolder, report: ImportReport, *, latest: datetime) -> Plan:
    """Plan the import. Unusable files are added to ``report``."""
    entries: list[Entry] = []
    listed: set[bytes] = set()
    for file in folder.session_files():
        try:
            session = parse_session(folder.read(file.path), name=file.path.stem, latest=latest)
        except LegacyError as error:
            report.session_skip(folder.label(file.path), str(error))
            continue
        listed.update(_key(name) for name in session.message_ids)
        entries.append(_entry(file, session))
    unlisted = _unlisted(folder, listed, report, latest)
    lost = set(unlisted) - {entry.session_id for entry in entries}
    orphans = sorted(lost, key=lambda one: (unlisted[one].last, one), reverse=True)
    return Plan(_in_order(entries), unlisted, orphans)


def _in_order(entries: list[Entry]) -> list[Entry]:
    """Sort by last activity, newest first.

    The newest then stays active, also if the import is stopped half-way and run again.
    """
    ordered: list[Entry] = []
    taken: set[str] = set()
    seen: set[UUID] = set()
    # The same session twice: it was moved to the folder in which it expired.
    for entry in sorted(entries, key=lambda one: (one.last_active, one.status), reverse=True):
        active = entry.status == "active" and entry.session_id not in seen
        leads = active and entry.whatsapp_chat not in taken
        if leads:
            taken.add(entry.whatsapp_chat)
        seen.add(entry.session_id)
        ordered.append(replace(entry, leads=leads))
    return ordered


def _unlisted(
    folder: LegacyFolder, listed: set[bytes], report: ImportReport, latest: datetime
) -> dict[UUID, Unlisted]:
    found: dict[UUID, Unlisted] = {}
    for name in folder.message_names():
        if _key(name) in listed:
            continue
        try:
            path = folder.message_path(name)
            document = folder.read(path)
            original = message_session(document)
            if not original:
                raise LegacyError("session_id: missing, and no session lists it")
        except LegacyError as error:
            report.message_skip(folder.message_label(name), str(error))
            continue
        unlisted = found.setdefault(session_uuid(original), Unlisted(original))
        unlisted.names.append(name)
        unlisted.last = max(unlisted.last, _moment(document, latest))
    return found


def _moment(document: object, latest: datetime) -> datetime:
    """Return when a message was stored; a time long ago if that is unknown."""
    try:
        return parse_message(document, latest=latest).received_at
    except LegacyError:
        return LONG_AGO


def _key(name: str) -> bytes:
    """Return a compact key for a message's id: a folder may hold a million."""
    return UUID(name).bytes if is_uuid(name) else name.encode(errors="surrogateescape")


def plan_session(
    folder: LegacyFolder, report: ImportReport, *, session_id: UUID, latest: datetime
) -> tuple[Entry | None, Unlisted | None]:
    """Plan one session: its own file, if readable, and its unlisted messages.

    Reads every message file.
    """
    entry, listed = _own_file(folder, report, session_id, latest)
    names = []
    original = ""
    unreadable = 0
    for name in folder.message_names():
        if name in listed:
            continue
        try:
            ref = message_session(folder.read(folder.message_path(name)))
        except LegacyError:
            unreadable += 1
            continue
        if ref and session_uuid(ref) == session_id:
            original = ref
            names.append(name)
    if unreadable:
        text = "%d message files can't be read; some may belong to session %s."
        report.warn("unreadable_messages", text, unreadable, session_id)
    return entry, Unlisted(original, names) if names else None


def _own_file(
    folder: LegacyFolder, report: ImportReport, session_id: UUID, latest: datetime
) -> tuple[Entry | None, set[str]]:
    for file in folder.session_files():
        if session_uuid(file.path.stem) != session_id:
            continue
        try:
            session = parse_session(folder.read(file.path), name=file.path.stem, latest=latest)
        except LegacyError as error:
            # This is the case that the rebuild is for.
            text = "%s can't be used, the session is made from its messages: %s."
            report.warn("unreadable_session", text, folder.label(file.path), error)
            continue
        if session.session_id == session_id:
            return _entry(file, session), set(session.message_ids)
    return None, set()


def _entry(file: SessionFile, session: LegacySession) -> Entry:
    return Entry(
        path=file.path,
        status=file.status,
        session_id=session.session_id,
        last_active=session.last_active,
        whatsapp_chat=session.whatsapp_chat,
    )


# Report of an import: counted for the result, and logged as it happens.

logger = logging.getLogger(__name__)


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
