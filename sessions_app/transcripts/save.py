"""Save a folder of batches: check, store, back up, verify the backup, then clean up.

All files are checked first and stored in one transaction. A fault at any step leaves the files
that are not cleaned up in their place. The next run continues: the rows of TranscriptBatch show
what is stored.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import COMMAND_LINE, Actor, audit_record
from sessions_app.conversations.epochs import backup_held
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.session_lifecycle import session_open
from sessions_app.history.dependencies import build_transcript_backups, transcript_retention
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.facade import IntakeRules
from sessions_app.models import Chat, ChatSession, TranscriptBatch
from sessions_app.transcript_files import parse_transcript, transcript_folder
from sessions_app.transcript_files.backups import BackupError, Backups, backup_name
from sessions_app.transcripts.export_transcripts import Target, alone_in
from sessions_app.transcripts.transcript_plan import Plan, digest_of, plan_make

logger = logging.getLogger(__name__)

CLEANING_UP = "Cleaning up"


@dataclass(frozen=True)
class SaveDependencies:
    """The dependencies of a save.

    ``backups``: the folder of copies, and ``keep`` their retention. ``progress`` is called with
    the current step and its progress.
    """

    rules: IntakeRules
    backups: Backups
    keep: timedelta
    progress: transcript_folder.Progress = transcript_folder.no_progress


def build_save_dependencies(*, progress: transcript_folder.Progress) -> SaveDependencies:
    """Return the dependencies of a save by the settings."""
    return SaveDependencies(
        rules=build_intake_rules(),
        backups=build_transcript_backups(),
        keep=transcript_retention(),
        progress=progress,
    )


@dataclass
class Saved:
    """The result of a save.

    ``overlap``: how many messages at the beginning were stored already; ``saved_before``: the
    files that an earlier run had stored.
    """

    whatsapp_chat: str = ""
    session_id: str = ""
    files: int = 0
    messages: int = 0
    added: int = 0
    overlap: int = 0
    saved_before: int = 0
    backups: list[str] = field(default_factory=list)
    cleaned: int = 0
    left_alone: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def batches_save(
    *,
    folder: transcript_folder.BatchFolder,
    target: Target,
    dependencies: SaveDependencies,
    overlap: int | None = None,
    actor: Actor = COMMAND_LINE,
    now: datetime | None = None,
) -> Saved:
    """Save the batches of the folder, all or nothing.

    ``overlap``: see plan_make. Call it outside of a transaction.

    Raises FolderError, BusyError, RefusedError (nothing was stored), FaultError (all is stored,
    and the files are in their place), ConversationNotFoundError, and the database's errors.
    """
    now = now or timezone.now()
    saving = Saving(folder, target, dependencies, overlap, actor, now, backup_name(now))
    with folder.locked(), alone_in(target):
        check = transcript_folder.folder_check(folder=folder, progress=dependencies.progress)
        if check.problems:
            raise parse_transcript.RefusedError(check.problems, check.further)
        if not check.files:
            return Saved(left_alone=check.strangers)
        saved = saving.run(check)
    saving.prune()
    logger.info(
        "%d batches were saved into session %s: %d messages added, %d there before.",
        saved.files,
        saved.session_id,
        saved.added,
        saved.messages - saved.added,
    )
    return saved


# Store the messages of checked files in one transaction.

STORING = "Storing"
BATCH = 500
# The recipient of transcript messages; transcripts name nobody.
ASSISTANT_ADDRESS = "assistant"


@dataclass(frozen=True)
class Stored:
    """The result of the transaction.

    ``rows``: one for each file of the folder. ``to_back_up``: the files without a verified
    copy.
    """

    plan: Plan
    session: ChatSession
    rows: list[TranscriptBatch]
    to_back_up: list[transcript_folder.BatchFile]


@dataclass(frozen=True)
class Saving:
    """One save of checked files. ``backup``: the name of the backup that it makes."""

    folder: transcript_folder.BatchFolder
    target: Target
    dependencies: SaveDependencies
    overlap: int | None
    actor: Actor
    now: datetime
    backup: str

    def run(self, check: transcript_folder.Check) -> Saved:
        """Store the messages, back the files up, and clean them up. Raises as batches_save."""
        known = self.target.find()
        # A forgetting waits for the backup, so that it can sweep the backup, too.
        with backup_held(self.backup, known.chat.pk if known else None):
            try:
                with transaction.atomic():
                    stored = self._store(check)
            except transcript_folder.ChangedError as error:
                raise parse_transcript.RefusedError([error.problem]) from error
            self._back_up(stored)
        saved = self._saved(check, stored)
        self._clean_up(check.files, stored.rows, saved)
        return saved

    def _store(self, check: transcript_folder.Check) -> Stored:
        """Store the messages. Raises RefusedError and the database's errors."""
        conversation = self.target.lock(self.now)
        plan = plan_make(
            check=check, conversation=conversation, folder=self.folder, overlap=self.overlap
        )
        if plan.problems:
            raise parse_transcript.RefusedError(plan.problems)
        session = conversation.session or self._session(conversation.chat, plan)
        if plan.add:
            self._append(conversation.chat, session, plan)
        # An earlier run stored these files, and was stopped before their backup was complete.
        holds = self.dependencies.backups.holds
        again = [(file, row) for file, row in plan.saved if not holds(row.backup, file)]
        for _, row in again:
            row.backup = self.backup
            row.save(update_fields=["backup"])
        rows = self._rows(conversation.chat, session, plan.rest)
        TranscriptBatch.objects.bulk_create(rows, batch_size=BATCH)
        if plan.rest:
            audit_record(
                "transcript.save",
                self.actor,
                "session",
                session.pk,
                files=len(plan.rest),
                added=plan.add,
                overlap=plan.overlap,
                chat_id=conversation.chat.pk,
            )
        return Stored(
            plan=plan,
            session=session,
            rows=[*(row for _, row in plan.saved), *rows],
            to_back_up=[*(file for file, _ in again), *plan.rest],
        )

    def _session(self, chat: Chat, plan: Plan) -> ChatSession:
        """Return the session to add to; without new messages, the one that holds them."""
        if plan.add:
            timeout = self.dependencies.rules.session_timeout
            return session_open(chat=chat, now=self.now, timeout=timeout, actor=self.actor)
        if plan.stored_in is not None:
            return ChatSession.objects.get(pk=plan.stored_in)
        return plan.saved[-1][1].session

    def _append(self, chat: Chat, session: ChatSession, plan: Plan) -> None:
        memory, progress = self.dependencies.rules.chat_memory, self.dependencies.progress
        role = memory.role_in(chat)
        messages = transcript_folder.messages_again(folder=self.folder, files=plan.rest)
        new = (
            _new_message(chat, file, message, self.now)
            for file, message in islice(messages, plan.overlap, None)
        )
        done = 0
        while batch := list(islice(new, BATCH)):
            progress(STORING, done, plan.add)
            memory.append(session=session, new=batch, role=role, now=self.now)
            done += len(batch)
        progress(STORING, done, plan.add)
        transaction.on_commit(lambda: memory.embed(session.pk), robust=True)

    def _rows(
        self, chat: Chat, session: ChatSession, files: Sequence[transcript_folder.BatchFile]
    ) -> list[TranscriptBatch]:
        return [
            TranscriptBatch(
                chat=chat,
                session=session,
                number=file.number,
                digest=digest_of(file),
                messages=file.messages,
                backup=self.backup,
                saved_at=self.now,
            )
            for file in files
        ]

    def _back_up(self, stored: Stored) -> None:
        if not stored.to_back_up:
            return
        try:
            self.dependencies.backups.write(
                name=self.backup,
                files=stored.to_back_up,
                folder=self.folder,
                progress=self.dependencies.progress,
            )
        except BackupError as error:
            logger.error("Saved transcripts were not backed up: %s", error)
            raise parse_transcript.FaultError(
                f"The messages are stored, but there is no backup. {error} The files are where "
                "they were. Mend that and run it again: nothing is stored twice."
            ) from error

    def _saved(self, check: transcript_folder.Check, stored: Stored) -> Saved:
        plan, session = stored.plan, stored.session
        names = sorted({row.backup for row in stored.rows})
        return Saved(
            whatsapp_chat=session.chat.whatsapp_chat,
            session_id=str(session.pk),
            files=len(check.files),
            messages=len(check.signs),
            added=plan.add,
            overlap=plan.overlap,
            saved_before=len(plan.saved),
            backups=[str(self.dependencies.backups.root / name) for name in names],
            left_alone=check.strangers,
            notes=[*check.notes, *plan.notes],
        )

    def _clean_up(
        self,
        files: Sequence[transcript_folder.BatchFile],
        rows: Sequence[TranscriptBatch],
        saved: Saved,
    ) -> None:
        """Remove the files that are unchanged since their backup. Raises FaultError."""
        left = []
        for done, file in enumerate(files):
            self.dependencies.progress(CLEANING_UP, done, len(files))
            try:
                if not self.folder.remove(file.name, file.stamp):
                    left.append(f"{file.name} was changed meanwhile")
            except OSError as error:
                left.append(f"{file.name} can't be removed: {error.strerror}")
        self.dependencies.progress(CLEANING_UP, len(files), len(files))
        saved.cleaned = len(files) - len(left)
        try:
            self.folder.sync()
        except OSError as error:
            left.append(f"the folder can't be synced: {error.strerror}")
        if left:
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            raise parse_transcript.FaultError(
                "The messages are stored and backed up, but not all files are cleaned up: "
                f"{left[0]}{more}. Look at what is left, mend that and run it again: nothing is "
                "stored twice."
            )
        # Include the files that an earlier run removed before it was killed.
        runs = {row.saved_at for row in rows}
        TranscriptBatch.objects.filter(
            chat_id=rows[0].chat_id, saved_at__in=runs, cleaned_at__isnull=True
        ).update(cleaned_at=timezone.now())

    def prune(self) -> None:
        try:
            self.dependencies.backups.prune(before=self.now - self.dependencies.keep)
        except OSError as error:
            logger.warning("Old backups of transcripts can't be removed: %s", error.strerror)


def _new_message(
    chat: Chat,
    file: transcript_folder.BatchFile,
    message: parse_transcript.TranscriptMessage,
    now: datetime,
) -> NewMessage:
    """Return the message to store. Transcripts have no times, so it has the time of the save."""
    people = (chat.whatsapp_chat, ASSISTANT_ADDRESS)
    sender, recipient = people if message.role == parse_transcript.USER else people[::-1]
    return NewMessage(
        role=message.role,
        content=message.content,
        timestamp=now,
        sender=sender,
        recipient=recipient,
        metadata={}
        if file.number == transcript_folder.NO_NUMBER
        else {"transcript_batch": file.number},
    )
