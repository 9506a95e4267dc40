"""Import a folder of old sessions, session by session. Imported messages are not answered."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import DataError, IntegrityError

from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from sessions_app.embedding.facade import session_embed
from sessions_app.inbound.facade import IntakeRules
from sessions_app.legacy_import.import_plan import (
    Entry,
    Gatherer,
    Unlisted,
    plan_folder,
    whatsapp_chat_of,
)
from sessions_app.legacy_import.import_report import ImportReport, note_stored
from sessions_app.legacy_import.import_session import (
    Incoming,
    MemoryOffError,
    Stored,
    session_import,
)
from sessions_app.legacy_import.parse_sessions import LegacySession, parse_session
from sessions_app.legacy_import.session_folder import LegacyError, LegacyFolder, is_uuid, shown
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

    def run(self, only: UUID | None = None) -> ImportReport:
        """Import all sessions, or ``only`` one. Raises FolderError and OperationalError.

        Unusable files are reported and don't stop the others.
        """
        if not self.rules.chat_memory.godfather:
            logger.warning("GODFATHER_PHONE is not set: every chat has a client's token limit.")
        entries, unlisted = plan_folder(self.folder, self.report, latest=self.latest, only=only)
        lost = unlisted.keys() - {entry.session_id for entry in entries}
        steps = [
            *(partial(self._session_file, one, unlisted.get(one.session_id)) for one in entries),
            *(partial(self._orphans, key, one) for key, one in unlisted.items() if key in lost),
        ]
        for done, step in enumerate(steps):
            self.progress(done, len(steps))
            step()
        self.progress(len(steps), len(steps))
        return self.report

    def _session_file(self, entry: Entry, unlisted: Unlisted | None) -> None:
        label = self.folder.label(entry.path)
        try:
            document = self.folder.read(entry.path)
            session = parse_session(document, name=entry.path.stem, latest=self.latest)
        except LegacyError as error:
            self.report.skip(self.report.sessions, label, error)
            return
        gatherer = self._gatherer(session.session_id)
        # The unlisted messages were pruned from it: older messages, still its own.
        gatherer.add_files(unlisted.names if unlisted else [])
        gatherer.add_session(session, label)
        if gatherer.missing:
            self.report.messages["missing"] += len(gatherer.missing)
            text = "Session %s has gaps, there are no files of its messages: %s."
            names = ", ".join(map(shown, gatherer.missing))
            self.report.warn("missing_messages", text, session.session_id, names)
        messages = list(gatherer.found.values())
        self._store(Incoming(session, messages, entry.status, entry.leads), label)

    def _orphans(self, session_id: UUID, orphans: Unlisted) -> None:
        """Import the messages of a session that has no readable file."""
        there = ChatSession.objects.filter(pk=session_id).select_related("chat").first()
        if there is None and not self.rebuild_orphans:
            self.report.orphans_skip(shown(orphans.original_id), len(orphans.names))
            return
        gatherer = self._gatherer(session_id)
        gatherer.add_files(orphans.names)
        label = f"messages/ of session {shown(orphans.original_id)}"
        if not gatherer.found:
            return
        messages = list(gatherer.found.values())
        try:
            chat = there.whatsapp_chat if there else whatsapp_chat_of(messages)
        except LegacyError as error:
            self.report.skip(self.report.sessions, label, error)
            return
        # Rebuilt from its messages (RECOVERY-001).
        last = max(messages, key=lambda one: (one.legacy.order_num, one.legacy.received_at))
        session = LegacySession.model_construct(
            original_id=orphans.original_id,
            whatsapp_chat=chat,
            created_at=min(one.legacy.received_at for one in messages),
            last_active=last.legacy.received_at,
        )
        self._store(Incoming(session, messages), label)

    def _gatherer(self, session_id: UUID) -> Gatherer:
        return Gatherer(self.folder, self.report, session_id, self.latest)

    def _store(self, incoming: Incoming, label: str) -> None:
        try:
            stored = session_import(
                incoming=incoming, rules=self.rules, now=self.now, dry_run=self.dry_run
            )
        except MemoryOffError:
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
        if not is_uuid(incoming.legacy.original_id):
            self.report.renamed[incoming.legacy.original_id] = str(incoming.legacy.session_id)
        note_stored(self.report, stored, self.folder, incoming.legacy)
        self._embed(stored)

    def _embed(self, stored: Stored) -> None:
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
            text = "Messages have no vectors yet, import again to make them: %s"
            self.report.warn("no_vectors", text, error)
