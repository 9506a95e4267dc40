"""Import a folder of old sessions, session by session. Imported messages are not answered."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import DataError, IntegrityError

from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.whatsapp import whatsapp_chats
from sessions_app.embedding.facade import session_embed
from sessions_app.inbound.facade import IntakeRules
from sessions_app.legacy_import import import_session, parse_sessions, session_folder
from sessions_app.models import ChatSession

logger = logging.getLogger(__name__)

# The other clock may be ahead of ours; a time beyond this is invalid.
CLOCK_SLACK = timedelta(days=1)


@dataclass
class FolderImport:
    """One run over a folder.

    ``embedder``: None leaves the messages without vectors. ``rebuild_orphans``: sessions whose
    own file is lost are rebuilt from their messages. ``progress`` is called with the number of
    finished sessions and the total.
    """

    folder: session_folder.LegacyFolder
    rules: IntakeRules
    now: datetime
    embedder: Embedder | None = None
    rebuild_orphans: bool = False
    dry_run: bool = False
    progress: Callable[[int, int], None] = lambda _done, _total: None

    def __post_init__(self) -> None:
        self.report = session_folder.ImportReport(dry_run=self.dry_run)
        self.latest = self.now + CLOCK_SLACK
        self._tried: set[UUID] = set()

    def run(self, only: UUID | None = None) -> session_folder.ImportReport:
        """Import all sessions, or ``only`` one. Raises FolderError and OperationalError.

        Unusable files are reported and don't stop the others.
        """
        if not self.rules.chat_memory.godfather:
            logger.warning("GODFATHER_PHONE is not set: every chat has a client's token limit.")
        sessions, unlisted = session_folder.plan_folder(
            self.folder, self.report, latest=self.latest, only=only
        )
        lost = unlisted.keys() - {one.legacy.session_id for one in sessions}
        steps = [
            *(partial(self._session, one, unlisted) for one in sessions),
            *(partial(self._orphans, key, one) for key, one in unlisted.items() if key in lost),
        ]
        for done, step in enumerate(steps):
            self.progress(done, len(steps))
            step()
        self.progress(len(steps), len(steps))
        return self.report

    def _session(
        self, incoming: session_folder.Incoming, unlisted: Mapping[UUID, session_folder.Unlisted]
    ) -> None:
        session = incoming.legacy
        gatherer = self._gatherer(session.session_id)
        # The unlisted messages were pruned from it: older messages, still its own.
        if session.session_id in unlisted:
            gatherer.add_files(unlisted[session.session_id].names)
        gatherer.add_session(session, incoming.label)
        if gatherer.missing:
            self.report.messages["missing"] += len(gatherer.missing)
            names = ", ".join(map(session_folder.shown, gatherer.missing))
            self.report.warn("missing_messages", session.session_id, names)
        self._store(incoming, gatherer)

    def _orphans(self, session_id: UUID, orphans: session_folder.Unlisted) -> None:
        """Import the messages of a session that has no readable file."""
        there = ChatSession.objects.filter(pk=session_id).select_related("chat").first()
        if there is None and not self.rebuild_orphans:
            self.report.orphans_skip(session_folder.shown(orphans.original_id), len(orphans.names))
            return
        gatherer = self._gatherer(session_id)
        gatherer.add_files(orphans.names)
        label = f"messages/ of session {session_folder.shown(orphans.original_id)}"
        if not gatherer.found:
            return
        messages = list(gatherer.found.values())
        try:
            chat = there.whatsapp_chat if there else whatsapp_chat_of(messages)
        except parse_sessions.LegacyError as error:
            self.report.skip(self.report.sessions, label, error)
            return
        # Rebuilt from its messages (RECOVERY-001).
        last = max(messages, key=lambda one: (one.legacy.order_num, one.legacy.received_at))
        session = parse_sessions.LegacySession.model_construct(
            original_id=orphans.original_id,
            whatsapp_chat=chat,
            created_at=min(one.legacy.received_at for one in messages),
            last_active=last.legacy.received_at,
        )
        self._store(session_folder.Incoming(session, label), gatherer)

    def _gatherer(self, session_id: UUID) -> "Gatherer":
        return Gatherer(self.folder, self.report, session_id, self.latest)

    def _store(self, incoming: session_folder.Incoming, gatherer: "Gatherer") -> None:
        label = incoming.label
        incoming.messages = list(gatherer.found.values())
        try:
            stored = import_session.session_import(
                incoming=incoming, rules=self.rules, now=self.now, dry_run=self.dry_run
            )
        except import_session.MemoryOffError:
            self.report.skip(self.report.sessions, label, "memory is switched off for its chat")
            return
        except (DataError, IntegrityError, ValueError) as error:
            reason = f"it can't be stored ({type(error).__name__})"
            self.report.skip(self.report.sessions, label, reason)
            return
        if self.dry_run:
            # What was undone would be there for a second file of the same session.
            stored.fresh = stored.fresh and incoming.legacy.session_id not in self._tried
            self._tried.add(incoming.legacy.session_id)
        if not parse_sessions.is_uuid(incoming.legacy.original_id):
            self.report.renamed[incoming.legacy.original_id] = str(incoming.legacy.session_id)
        import_session.note_stored(self.report, stored, self.folder, incoming.legacy)
        self._embed(stored)

    def _embed(self, stored: import_session.Stored) -> None:
        """Make the vectors after the transaction: the embedder may be on another machine."""
        if self.embedder is None or self.dry_run:
            return
        rest: list[int | None] = [None]
        try:
            while rest:
                self.report.vectors += session_embed(
                    session_id=stored.session.pk,
                    embedder=self.embedder,
                    before=rest.pop(),
                    go_on=lambda _session_id, before: rest.append(before),
                )
        except EmbedderError as error:
            self.embedder = None
            self.report.warn("no_vectors", error)


# Collect the messages of one session: those that its file contains, those that it lists, and those
# that name it as their session.


@dataclass
class Gatherer:
    """Read the messages of one session. Unusable ones are added to ``report``.

    ``found`` are the messages by id; ``missing`` the listed ids without a file.
    """

    folder: session_folder.LegacyFolder
    report: session_folder.ImportReport
    session_id: UUID
    latest: datetime
    found: dict[UUID, session_folder.FoundMessage] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def add_session(self, session: parse_sessions.LegacySession, label: str) -> None:
        """Add the messages that a session's file contains and lists."""
        for position, document in enumerate(session.messages, start=1):
            source = f"{label}, message {position}"
            try:
                message = parse_sessions.parse_message(
                    document, latest=self.latest, position=position
                )
                self._check(message, session.whatsapp_chat)
            except parse_sessions.LegacyError as error:
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
                message = parse_sessions.parse_message(document, latest=self.latest)
                if message.original_id != name:
                    raise parse_sessions.LegacyError(
                        "message_id: another one than in the file's name"
                    )
                self._check(message, whatsapp_chat)
            except parse_sessions.LegacyMissing:
                # The session's file may both contain and list the message.
                if all(found.legacy.original_id != name for found in self.found.values()):
                    self.missing.append(name)
            except parse_sessions.LegacyError as error:
                self.report.skip(self.report.messages, source, error)
            else:
                self._keep(message, source)

    def _check(self, message: parse_sessions.LegacyMessage, whatsapp_chat: str) -> None:
        """Raise LegacyError if the message names another session.

        Older messages may name the session's WhatsApp chat instead.
        """
        ref = message.session_ref
        if ref and ref != whatsapp_chat and parse_sessions.session_uuid(ref) != self.session_id:
            raise parse_sessions.LegacyError(
                "session_id: names another session than the one that lists it"
            )

    def _keep(self, message: parse_sessions.LegacyMessage, source: str) -> None:
        message_id = message.message_id(self.session_id)
        self.found[message_id] = session_folder.FoundMessage(message_id, message, source)


# Find the chat of a session whose file is lost (RECOVERY-001).


def whatsapp_chat_of(found: Sequence[session_folder.FoundMessage]) -> str:
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
    if len({min(whatsapp_chats.address_forms(chat)) for chat in chats}) != 1:
        how_many = "several WhatsApp chats" if chats else "no WhatsApp chat"
        raise parse_sessions.LegacyError(f"sender, recipient: its messages name {how_many}")
    return min(chats)


def _chats(texts: Iterable[str]) -> set[str]:
    """Return the stored forms of the texts that are ids of chats."""
    found = set()
    for text in filter(parse_sessions.is_whatsapp_chat, texts):
        with suppress(whatsapp_chats.WhatsAppChatError):
            found.add(whatsapp_chats.whatsapp_chat_normalise(text))
    return found
