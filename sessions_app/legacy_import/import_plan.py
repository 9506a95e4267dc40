"""Plan the import of a folder, and collect the messages of a session.

The plan: its sessions, their order, and its unlisted message files. A session's messages are those
that its file contains, those that it lists, and those that name it as their session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from uuid import UUID

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    WhatsAppChatError,
    address_forms,
    whatsapp_chat_normalise,
)
from sessions_app.legacy_import.import_report import ImportReport
from sessions_app.legacy_import.import_session import FoundMessage
from sessions_app.legacy_import.parse_sessions import (
    LegacyMessage,
    LegacySession,
    message_session,
    parse_message,
    parse_session,
)
from sessions_app.legacy_import.session_folder import (
    LegacyError,
    LegacyFolder,
    LegacyMissing,
    is_uuid,
    is_whatsapp_chat,
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


@dataclass
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


def plan_folder(
    folder: LegacyFolder, report: ImportReport, *, latest: datetime, only: UUID | None = None
) -> tuple[list[Entry], dict[UUID, Unlisted]]:
    """Plan the import, the last active sessions first. Unusable files are added to ``report``.

    Return the sessions' files, and the unlisted messages by the id of their session.
    ``only``: the one session that is planned. What is unusable may then be other sessions', and is
    only warned of.
    """
    entries: list[Entry] = []
    listed: set[bytes] = set()
    for path, status in folder.session_files():
        if only is not None and session_uuid(path.stem) != only:
            continue
        try:
            session = parse_session(folder.read(path), name=path.stem, latest=latest)
        except LegacyError as error:
            label = folder.label(path)
            if only is None:
                report.skip(report.sessions, label, error)
            else:
                # This is the case that the rebuild is for.
                text = "%s can't be used, the session is made from its messages: %s."
                report.warn("unreadable_session", text, label, error)
            continue
        if only in (None, session.session_id):
            listed.update(_key(name) for name in session.message_ids)
            entries.append(
                Entry(path, status, session.session_id, session.last_active, session.whatsapp_chat)
            )
    unlisted = _unlisted(folder, listed, report, latest, only)
    by_last = sorted(unlisted, key=lambda one: (unlisted[one].last, one), reverse=True)
    return _in_order(entries), {one: unlisted[one] for one in by_last}


def _in_order(entries: list[Entry]) -> list[Entry]:
    """Sort by last activity, newest first.

    The newest then stays active, also if the import is stopped half-way and run again.
    """
    ordered = sorted(entries, key=lambda one: (one.last_active, one.status), reverse=True)
    taken: set[str] = set()
    seen: set[UUID] = set()
    # The same session twice: it was moved to the folder in which it expired.
    for entry in ordered:
        active = entry.status == "active" and entry.session_id not in seen
        entry.leads = active and entry.whatsapp_chat not in taken
        if entry.leads:
            taken.add(entry.whatsapp_chat)
        seen.add(entry.session_id)
    return ordered


def _unlisted(
    folder: LegacyFolder,
    listed: set[bytes],
    report: ImportReport,
    latest: datetime,
    only: UUID | None,
) -> dict[UUID, Unlisted]:
    found: dict[UUID, Unlisted] = {}
    unreadable = 0
    for name in folder.message_names():
        if _key(name) in listed:
            continue
        try:
            path = folder.message_path(name)
            document = folder.read(path)
            original = message_session(document)
            if not original and only is None:
                raise LegacyError("session_id: missing, and no session lists it")
        except LegacyError as error:
            unreadable += 1
            if only is None:
                report.skip(report.messages, folder.message_label(name), error)
            continue
        if only in (None, session_uuid(original)):
            unlisted = found.setdefault(session_uuid(original), Unlisted(original))
            unlisted.names.append(name)
            with suppress(LegacyError):
                at = parse_message(document, latest=latest).received_at
                unlisted.last = max(unlisted.last, at)
    if only is not None and unreadable:
        text = "%d message files can't be read; some may belong to session %s."
        report.warn("unreadable_messages", text, unreadable, only)
    return found


def _key(name: str) -> bytes:
    """Return a compact key for a message's id: a folder may hold a million."""
    return UUID(name).bytes if is_uuid(name) else name.encode(errors="surrogateescape")


# Collect the messages of one session.


@dataclass
class Gatherer:
    """Read the messages of one session. Unusable ones are added to ``report``.

    ``found`` are the messages by id; ``missing`` the listed ids without a file.
    """

    folder: LegacyFolder
    report: ImportReport
    session_id: UUID
    latest: datetime
    found: dict[UUID, FoundMessage] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def add_session(self, session: LegacySession, label: str) -> None:
        """Add the messages that a session's file contains and lists."""
        for position, document in enumerate(session.messages, start=1):
            source = f"{label}, message {position}"
            try:
                message = parse_message(document, latest=self.latest, position=position)
                self._check(message, session.whatsapp_chat)
            except LegacyError as error:
                self.report.skip(self.report.messages, source, error)
                continue
            self._keep(message, source)
        self.add_files(session.message_ids, session.whatsapp_chat)

    def add_files(self, names: Iterable[str], whatsapp_chat: str = "") -> None:
        """Add message files: those that the session of this chat lists, or that none lists."""
        for name in names:
            source = self.folder.message_label(name)
            try:
                document = self.folder.read(self.folder.message_path(name))
                message = parse_message(document, latest=self.latest)
                if message.original_id != name:
                    raise LegacyError("message_id: another one than in the file's name")
                self._check(message, whatsapp_chat)
            except LegacyMissing:
                # The session's file may both contain and list the message.
                if all(found.legacy.original_id != name for found in self.found.values()):
                    self.missing.append(name)
            except LegacyError as error:
                self.report.skip(self.report.messages, source, error)
            else:
                self._keep(message, source)

    def _check(self, message: LegacyMessage, whatsapp_chat: str) -> None:
        """Raise LegacyError if the message names another session.

        Older messages may name the session's WhatsApp chat instead.
        """
        ref = message.session_ref
        if ref and ref != whatsapp_chat and session_uuid(ref) != self.session_id:
            raise LegacyError("session_id: names another session than the one that lists it")

    def _keep(self, message: LegacyMessage, source: str) -> None:
        message_id = message.message_id(self.session_id)
        self.found[message_id] = FoundMessage(message_id, message, source)


# Find the chat of a session whose file is lost (RECOVERY-001).


def whatsapp_chat_of(found: Sequence[FoundMessage]) -> str:
    """Return the chat that these messages of one session agree on.

    It is a group if one is named, else the person who wrote to the assistant or received its
    messages.

    Raises LegacyError if they name none or several: a guess could show one person's
    conversation to another.
    """
    messages = [one.legacy for one in found]
    named = _chats(one.session_ref for one in messages)
    asking = _chats(one.sender for one in messages if one.role == "user")
    answered = _chats(one.recipient for one in messages if one.role == "assistant")
    everybody = _chats(address for one in messages for address in (one.sender, one.recipient))
    groups = {address for address in everybody if address.endswith("@g.us")}
    chats = named or groups or asking | answered
    if len({min(address_forms(chat)) for chat in chats}) != 1:
        how_many = "several WhatsApp chats" if chats else "no WhatsApp chat"
        raise LegacyError(f"sender, recipient: its messages name {how_many}")
    return min(chats)


def _chats(texts: Iterable[str]) -> set[str]:
    """Return the stored forms of the texts that are ids of chats."""
    found = set()
    for text in filter(is_whatsapp_chat, texts):
        with suppress(WhatsAppChatError):
            found.add(whatsapp_chat_normalise(text))
    return found
