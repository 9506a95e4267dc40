"""Collect the messages of one session.

These are the messages that its file contains, those that it lists, and those that name it as
their session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from sessions_app.legacy_import.files.import_plan import ImportReport
from sessions_app.legacy_import.files.parse_sessions import (
    LegacyMessage,
    LegacySession,
    parse_message,
)
from sessions_app.legacy_import.files.session_folder import (
    LegacyError,
    LegacyFolder,
    LegacyMissing,
    is_whatsapp_chat,
    session_uuid,
)


@dataclass(frozen=True)
class FoundMessage:
    """A message, and ``source``: the place where it was found, for logs and reports."""

    message_id: UUID
    legacy: LegacyMessage
    source: str


@dataclass
class Gathered:
    """The messages by id; ``missing`` are the listed ids without a file."""

    messages: dict[UUID, FoundMessage] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


class Gatherer:
    """Read the messages of one session. Unusable ones are added to ``report``."""

    def __init__(
        self, folder: LegacyFolder, report: ImportReport, *, session_id: UUID, latest: datetime
    ) -> None:
        self._folder = folder
        self._report = report
        self._session_id = session_id
        self._latest = latest
        self.found = Gathered()

    def add_session(self, session: LegacySession, label: str) -> None:
        """Add the messages that a session's file contains and lists."""
        for position, document in enumerate(session.embedded, start=1):
            source = f"{label}, message {position}"
            try:
                message = parse_message(document, latest=self._latest, position=position)
                self._check(message, session.whatsapp_chat)
            except LegacyError as error:
                self._report.message_skip(source, str(error))
                continue
            self._keep(message, source)
        for name in session.message_ids:
            self._add_listed(name, session.whatsapp_chat)

    def add_files(self, names: Iterable[str]) -> None:
        """Add message files that no session lists."""
        for name in names:
            source = self._folder.message_label(name)
            try:
                self._keep(self._read(name), source)
            except LegacyError as error:
                self._report.message_skip(source, str(error))

    def _add_listed(self, name: str, whatsapp_chat: str) -> None:
        source = self._folder.message_label(name)
        try:
            message = self._read(name)
            self._check(message, whatsapp_chat)
        except LegacyMissing:
            # The session's file may both contain and list the message.
            if not self._has(name):
                self.found.missing.append(name)
        except LegacyError as error:
            self._report.message_skip(source, str(error))
        else:
            self._keep(message, source)

    def _read(self, name: str) -> LegacyMessage:
        document = self._folder.read(self._folder.message_path(name))
        message = parse_message(document, latest=self._latest)
        if message.original_id != name:
            raise LegacyError("message_id: another one than in the file's name")
        return message

    def _check(self, message: LegacyMessage, whatsapp_chat: str) -> None:
        """Raise LegacyError if the message names another session.

        Older messages may name the session's WhatsApp chat instead.
        """
        ref = message.session_ref
        if ref and ref != whatsapp_chat and session_uuid(ref) != self._session_id:
            raise LegacyError("session_id: names another session than the one that lists it")

    def _has(self, name: str) -> bool:
        return any(found.legacy.original_id == name for found in self.found.messages.values())

    def _keep(self, message: LegacyMessage, source: str) -> None:
        message_id = message.message_id(self._session_id)
        self.found.messages[message_id] = FoundMessage(message_id, message, source)


# Number a session's messages.


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
    if len(chats) != 1:
        how_many = "several WhatsApp chats" if chats else "no WhatsApp chat"
        raise LegacyError(f"sender, recipient: its messages name {how_many}")
    return next(iter(chats))


def _chats(texts: Iterable[str]) -> set[str]:
    """Return the stored forms of the texts that are ids of chats."""
    found = set()
    for text in filter(is_whatsapp_chat, texts):
        with suppress(WhatsAppChatError):
            found.add(whatsapp_chat_normalise(text))
    return found
