"""Collect the messages of one session.

These are the messages that its file contains, those that it lists, and those that name it as
their session.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sessions_app.legacy_import.files.errors import LegacyError, LegacyMissing
from sessions_app.legacy_import.files.ids import session_uuid
from sessions_app.legacy_import.files.parse_sessions import (
    LegacyMessage,
    LegacySession,
    parse_message,
)
from sessions_app.legacy_import.files.report import ImportReport
from sessions_app.legacy_import.files.session_folder import LegacyFolder


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
