"""Read the folder of sessions of seed 002, plan its import, and report on it.

    DIR/{session_id}.json           active sessions
    DIR/expired/{session_id}.json   and DIR/archived/
    DIR/messages/{message_id}.json

Nothing outside DIR is read, wherever a symbolic link leads. The plan: its sessions, their order,
and its unlisted message files.
"""

import json
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

from sessions_app.legacy_import import parse_sessions

logger = logging.getLogger(__name__)

MAX_BYTES = 10 * 1024 * 1024
MESSAGES = "messages"
# By the status of the sessions in it.
SESSION_FOLDERS = {"active": ".", "expired": "expired", "archived": "archived"}


class LegacyFolder:
    """The folder. Raises FolderError if it doesn't exist or can't be read."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            what = "is not a folder" if root.exists() else "is not there"
            raise FolderError(
                f"{shown(str(root))} {what}: give the folder of sessions.", usage=True
            )
        self.root = Path(os.path.realpath(root))
        if not self._names("."):
            raise FolderError(f"{shown(str(root))} is empty: it has no session files.")

    def session_files(self) -> Iterator[tuple[Path, str]]:
        """Yield the session files with the status that their place gives them, sorted."""
        for status, folder in SESSION_FOLDERS.items():
            for name in self._names(folder):
                if name.endswith(".json"):
                    yield self.root / folder / name, status

    def message_names(self) -> list[str]:
        """Return the names of all message files, without extension."""
        return [
            name.removesuffix(".json") for name in self._names(MESSAGES) if name.endswith(".json")
        ]

    def message_path(self, name: str) -> Path:
        """Return the path of a message's file.

        Raises LegacyMissing if the id can't be a file name.
        """
        is_plain = name.isprintable() and not {"/", "\\"}.intersection(name)
        if not name or name.startswith(".") or not is_plain or len(name.encode()) > 200:
            raise parse_sessions.LegacyMissing("no file can have this name")
        return self.root / MESSAGES / f"{name}.json"

    def read(self, path: Path) -> Any:
        """Return a file's JSON document. Raises LegacyError; LegacyMissing if it doesn't exist."""
        try:
            text = self._bytes(path).decode("utf-8-sig")
        except FileNotFoundError as error:
            raise parse_sessions.LegacyMissing("the file is not there") from error
        except OSError as error:
            raise parse_sessions.LegacyError(f"the file can't be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise parse_sessions.LegacyError(f"not UTF-8 at byte {error.start}") from error
        try:
            return json.loads(text, parse_constant=_no_number)
        except json.JSONDecodeError as error:
            raise parse_sessions.LegacyError(
                f"not JSON: line {error.lineno}, column {error.colno}"
            ) from error
        except RecursionError as error:
            raise parse_sessions.LegacyError("not usable JSON: nested too deep") from error
        except ValueError as error:
            raise parse_sessions.LegacyError(
                "not usable JSON: a number has too many digits"
            ) from error

    def has_file(self, path: str) -> bool:
        """Return whether a path in a message leads to a file.

        The path is absolute, or relative to this folder or to one of the two above it, where
        the old program ran. Nothing is opened.
        """
        bases = (self.root, self.root.parent, self.root.parent.parent)
        try:
            return any((base / path).is_file() for base in bases)
        except (OSError, ValueError):
            return False

    def label(self, path: Path) -> str:
        """Return the file's name for logs and reports."""
        return shown(str(path.relative_to(self.root)))

    def message_label(self, name: str) -> str:
        """Return the name of a message's file, which may not exist, for logs and reports."""
        return shown(f"{MESSAGES}/{name}.json")

    def _names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._inside(self.root / folder)))
        except FileNotFoundError:
            return []
        except OSError as error:
            where = shown(str(self.root / folder))
            raise FolderError(f"{where} can't be read: {error.strerror}.") from error

    def _inside(self, folder: Path) -> Path:
        """Return the path. Raises FolderError if a link leads out of the folder."""
        if not Path(os.path.realpath(folder)).is_relative_to(self.root):
            raise FolderError(f"{shown(str(folder))} is a link out of the folder: copy it in.")
        return folder

    def _bytes(self, path: Path) -> bytes:
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root):
            raise parse_sessions.LegacyError("a link out of the folder")
        if real.exists() and not real.is_file():
            raise parse_sessions.LegacyError("not a file")
        with real.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise parse_sessions.LegacyError(f"larger than {MAX_BYTES // 1024 // 1024} MB")
        return content


def shown(text: str) -> str:
    """Return a printable form of a name, whatever bytes it contains."""
    return text if text.isprintable() else ascii(text)


def _no_number(name: str) -> None:
    raise parse_sessions.LegacyError(f"not JSON: {name} is no number")


class FolderError(Exception):
    """The folder can't be used. ``usage``: another one was meant."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage


# The report of an import: counted for the result, and logged as it happens.

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
        self.warn("orphans", count, session, reason)

    def warn(self, kind: str, *values: object) -> None:
        """Log a WARNING and count it under its kind."""
        self.warnings[kind] += 1
        logger.warning(parse_sessions.WORDS["warnings"][kind], *values)

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


# The plan.

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
class FoundMessage:
    """A message, and ``source``: the place where it was found, for logs and reports."""

    message_id: UUID
    legacy: parse_sessions.LegacyMessage
    source: str


@dataclass
class Incoming:
    """A session to import.

    ``legacy``: what its file says, or would say; ``label``: what reports call the file; ``status``:
    that of its folder; ``leads``: no other active session of its chat in the folder was active
    later.
    """

    legacy: parse_sessions.LegacySession
    label: str
    status: str = "active"
    leads: bool = True
    messages: Sequence[FoundMessage] = ()


def plan_folder(
    folder: LegacyFolder, report: ImportReport, *, latest: datetime, only: UUID | None = None
) -> tuple[list[Incoming], dict[UUID, Unlisted]]:
    """Plan the import, the last active sessions first. Unusable files are added to ``report``.

    Return the sessions, and the unlisted messages by the id of their session.
    ``only``: the one session that is planned. What is unusable may then be other sessions', and is
    only warned of.
    """
    sessions: list[Incoming] = []
    listed: set[str] = set()
    for path, status in folder.session_files():
        if only is not None and parse_sessions.session_uuid(path.stem) != only:
            continue
        label = folder.label(path)
        try:
            session = parse_sessions.parse_session(folder.read(path), name=path.stem, latest=latest)
        except parse_sessions.LegacyError as error:
            if only is None:
                report.skip(report.sessions, label, error)
            else:
                report.warn("unreadable_session", label, error)
            continue
        if only in (None, session.session_id):
            listed.update(session.message_ids)
            sessions.append(Incoming(session, label, status))
    unlisted = _unlisted(folder, listed, report, latest, only)
    by_last = sorted(unlisted, key=lambda one: (unlisted[one].last, one), reverse=True)
    return _in_order(sessions), {one: unlisted[one] for one in by_last}


def _in_order(sessions: list[Incoming]) -> list[Incoming]:
    """Sort by last activity, newest first.

    The newest then stays active, also if the import is stopped half-way and run again.
    """
    ordered = sorted(sessions, key=lambda one: (one.legacy.last_active, one.status), reverse=True)
    taken: set[str] = set()
    seen: set[UUID] = set()
    # The same session twice: it was moved to the folder in which it expired.
    for one in ordered:
        active = one.status == "active" and one.legacy.session_id not in seen
        one.leads = active and one.legacy.whatsapp_chat not in taken
        if one.leads:
            taken.add(one.legacy.whatsapp_chat)
        seen.add(one.legacy.session_id)
    return ordered


def _unlisted(
    folder: LegacyFolder,
    listed: set[str],
    report: ImportReport,
    latest: datetime,
    only: UUID | None,
) -> dict[UUID, Unlisted]:
    found: dict[UUID, Unlisted] = {}
    unreadable = 0
    for name in folder.message_names():
        if name in listed:
            continue
        try:
            path = folder.message_path(name)
            document = folder.read(path)
            original = parse_sessions.message_session(document)
            if not original and only is None:
                raise parse_sessions.LegacyError("session_id: missing, and no session lists it")
        except parse_sessions.LegacyError as error:
            unreadable += 1
            if only is None:
                report.skip(report.messages, folder.message_label(name), error)
            continue
        if only in (None, parse_sessions.session_uuid(original)):
            unlisted = found.setdefault(parse_sessions.session_uuid(original), Unlisted(original))
            unlisted.names.append(name)
            with suppress(parse_sessions.LegacyError):
                at = parse_sessions.parse_message(document, latest=latest).received_at
                unlisted.last = max(unlisted.last, at)
    if only is not None and unreadable:
        report.warn("unreadable_messages", unreadable, only)
    return found
