"""Import a folder of old sessions, session by session. Imported messages are not answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import DataError, IntegrityError

from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from sessions_app.embedding.facade import session_embed
from sessions_app.inbound.facade import IntakeRules
from sessions_app.legacy_import.files.gather import (
    FoundMessage,
    Gathered,
    Gatherer,
    whatsapp_chat_of,
)
from sessions_app.legacy_import.files.import_plan import (
    Entry,
    ImportReport,
    Unlisted,
    plan_folder,
    plan_session,
)
from sessions_app.legacy_import.files.parse_sessions import LegacySession, parse_session
from sessions_app.legacy_import.files.session_folder import (
    LegacyError,
    LegacyFolder,
    is_uuid,
    is_whatsapp_chat,
    shown,
)
from sessions_app.legacy_import.import_messages import Added
from sessions_app.legacy_import.import_session import (
    Incoming,
    MemoryOffError,
    Stored,
    session_import,
)
from sessions_app.models import ChatSession
from sessions_app.models.sessions import SessionStatus

# Report on an imported session: counts and warnings.


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

    folder: LegacyFolder
    rules: IntakeRules
    now: datetime
    embedder: Embedder | None = None
    rebuild_orphans: bool = False
    dry_run: bool = False
    progress: Callable[[int, int], None] = lambda _done, _total: None

    def __post_init__(self) -> None:
        self.report = ImportReport(dry_run=self.dry_run)
        self.latest = self.now + CLOCK_SLACK
        self._tried: set[UUID] = set()

    def run(self) -> ImportReport:
        """Import all sessions. Raises FolderError and OperationalError.

        Unusable files are reported and don't stop the others.
        """
        if not self.rules.chat_memory.godfather:
            logger.warning("GODFATHER_PHONE is not set: every chat has a client's token limit.")
        plan = plan_folder(self.folder, self.report, latest=self.latest)
        total = len(plan.entries) + len(plan.orphans)
        for done, entry in enumerate(plan.entries):
            self.progress(done, total)
            self._session_file(entry, plan.unlisted.get(entry.session_id))
        for done, session_id in enumerate(plan.orphans, start=len(plan.entries)):
            self.progress(done, total)
            self._orphans(session_id, plan.unlisted[session_id])
        self.progress(total, total)
        return self.report

    def run_session(self, session_id: UUID) -> ImportReport:
        """Import one session, from its own file or from its messages if that is lost.

        Raises FolderError and OperationalError.
        """
        self.rebuild_orphans = True
        entry, unlisted = plan_session(
            self.folder, self.report, session_id=session_id, latest=self.latest
        )
        if entry is not None:
            self._session_file(entry, unlisted)
        elif unlisted is not None:
            self._orphans(session_id, unlisted)
        return self.report

    def _session_file(self, entry: Entry, unlisted: Unlisted | None) -> None:
        label = self.folder.label(entry.path)
        try:
            document = self.folder.read(entry.path)
            session = parse_session(document, name=entry.path.stem, latest=self.latest)
        except LegacyError as error:
            self.report.session_skip(label, str(error))
            return
        gatherer = self._gatherer(session.session_id)
        # The unlisted messages were pruned from it: older messages, still its own.
        gatherer.add_files(unlisted.names if unlisted else [])
        gatherer.add_session(session, label)
        note_session(self.report, session, gatherer.found)
        self._store(_incoming(session, entry, gatherer.found), label, session)

    def _orphans(self, session_id: UUID, orphans: Unlisted) -> None:
        """Return the messages whose session has no readable file."""
        there = ChatSession.objects.filter(pk=session_id).select_related("chat").first()
        if there is None and not self.rebuild_orphans:
            self.report.orphans_skip(shown(orphans.original_id), len(orphans.names))
            return
        gatherer = self._gatherer(session_id)
        gatherer.add_files(orphans.names)
        label = f"messages/ of session {shown(orphans.original_id)}"
        if not gatherer.found.messages:
            return
        try:
            messages = list(gatherer.found.messages.values())
            chat = there.whatsapp_chat if there else whatsapp_chat_of(messages)
            incoming = incoming_from_messages(session_id, orphans.original_id, chat, messages)
        except LegacyError as error:
            self.report.session_skip(label, str(error))
            return
        self._store(incoming, label)

    def _gatherer(self, session_id: UUID) -> Gatherer:
        return Gatherer(self.folder, self.report, session_id=session_id, latest=self.latest)

    def _store(self, incoming: Incoming, label: str, session: LegacySession | None = None) -> None:
        try:
            stored = session_import(
                incoming=incoming, rules=self.rules, now=self.now, dry_run=self.dry_run
            )
        except MemoryOffError:
            self.report.session_skip(label, "memory is switched off for its chat")
            return
        except (DataError, IntegrityError, ValueError) as error:
            self.report.session_skip(label, f"it can't be stored ({type(error).__name__})")
            return
        if self.dry_run:
            # What was undone would be there for a second file of the same session.
            stored.fresh = stored.fresh and incoming.session_id not in self._tried
            self._tried.add(incoming.session_id)
        if not is_uuid(incoming.original_id):
            self.report.renamed[incoming.original_id] = str(incoming.session_id)
        note_stored(self.report, stored, self.folder, session)
        self._embed(stored)

    def _embed(self, stored: Stored) -> None:
        """Make the vectors after the transaction: the embedder may be on another machine."""
        if self.embedder is None or self.dry_run:
            return
        try:
            self._embed_all(stored.session.pk, self.embedder)
        except EmbedderError as error:
            self.embedder = None
            text = "Messages have no vectors yet, import again to make them: %s"
            self.report.warn("no_vectors", text, error)

    def _embed_all(self, session_id: UUID, embedder: Embedder) -> None:
        rest: list[int | None] = [None]
        while rest:
            self.report.vectors += session_embed(
                session_id=session_id,
                embedder=embedder,
                before=rest.pop(),
                go_on=lambda _session_id, before: rest.append(before),
            )


def _incoming(session: LegacySession, entry: Entry, found: Gathered) -> Incoming:
    return Incoming(
        session_id=session.session_id,
        original_id=session.original_id,
        whatsapp_chat=session.whatsapp_chat,
        created_at=session.created_at,
        last_active=session.last_active,
        messages=list(found.messages.values()),
        client_name=session.client_name,
        status=entry.status,
        leads=entry.leads,
    )


def incoming_from_messages(
    session_id: UUID, original_id: str, whatsapp_chat: str, messages: Sequence[FoundMessage]
) -> Incoming:
    """Rebuild a session from its messages, at least one (RECOVERY-001)."""
    last = max(messages, key=lambda one: (one.legacy.order_num, one.legacy.received_at))
    return Incoming(
        session_id=session_id,
        original_id=original_id,
        whatsapp_chat=whatsapp_chat,
        created_at=min(one.legacy.received_at for one in messages),
        last_active=last.legacy.received_at,
        messages=messages,
    )
