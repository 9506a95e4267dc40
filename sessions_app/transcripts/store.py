"""Store the messages of checked files in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db import transaction

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from sessions_app.conversations.facade import NewMessage, session_open
from sessions_app.inbound.facade import IntakeRules
from sessions_app.models import Chat, ChatSession, TranscriptBatch
from sessions_app.transcript_files.facade import (
    NO_NUMBER,
    USER,
    BatchFile,
    BatchFolder,
    ChangedError,
    Check,
    Progress,
    RefusedError,
    TranscriptMessage,
    messages_again,
)
from sessions_app.transcripts.target import Target
from sessions_app.transcripts.transcript_plan import Plan, digest_of, plan_make

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
    to_back_up: list[BatchFile]


@dataclass(frozen=True)
class Storing:
    """The inputs of the transaction.

    ``backup``: the name of the backup that is made after it; ``has_copy`` returns whether an
    earlier backup holds a file.
    """

    check: Check
    target: Target
    folder: BatchFolder
    rules: IntakeRules
    overlap: int | None
    backup: str
    now: datetime
    actor: Actor
    progress: Progress

    def run(self, copies: set[tuple[str, str]]) -> Stored:
        """Store the messages.

        ``copies``: earlier backups and the files that they hold. Raises RefusedError and the
        database's errors; then nothing was stored.
        """
        try:
            with transaction.atomic():
                return self._run(copies)
        except ChangedError as error:
            raise RefusedError([error.problem]) from error

    def _run(self, copies: set[tuple[str, str]]) -> Stored:
        conversation = self.target.lock(self.now)
        plan = plan_make(
            check=self.check, conversation=conversation, folder=self.folder, overlap=self.overlap
        )
        if plan.problems:
            raise RefusedError(plan.problems)
        session = conversation.session or self._session(conversation.chat, plan)
        if plan.add:
            self._append(conversation.chat, session, plan)
        again = [(file, row) for file, row in plan.saved if (row.backup, file.name) not in copies]
        for _, row in again:
            row.backup = self.backup
            row.save(update_fields=["backup"])
        rows = self._rows(conversation.chat, session, plan.rest)
        TranscriptBatch.objects.bulk_create(rows, batch_size=BATCH)
        if plan.rest:
            self._record(conversation.chat, session, plan)
        return Stored(
            plan=plan,
            session=session,
            rows=[*(row for _, row in plan.saved), *rows],
            to_back_up=[*(file for file, _ in again), *plan.rest],
        )

    def _session(self, chat: Chat, plan: Plan) -> ChatSession:
        """Return the session to add to; without new messages, the one that holds them."""
        if plan.add:
            return session_open(
                chat=chat, now=self.now, timeout=self.rules.session_timeout, actor=self.actor
            )
        if plan.stored_in is not None:
            return ChatSession.objects.get(pk=plan.stored_in)
        return plan.saved[-1][1].session

    def _append(self, chat: Chat, session: ChatSession, plan: Plan) -> None:
        memory = self.rules.chat_memory
        role = memory.role_in(chat)
        new = islice(self._new_messages(chat, plan), plan.overlap, None)
        done = 0
        while batch := list(islice(new, BATCH)):
            self.progress(STORING, done, plan.add)
            memory.append(session=session, new=batch, role=role, now=self.now)
            done += len(batch)
        self.progress(STORING, done, plan.add)
        transaction.on_commit(lambda: memory.embed(session.pk), robust=True)

    def _new_messages(self, chat: Chat, plan: Plan) -> Iterator[NewMessage]:
        for file, message in messages_again(folder=self.folder, files=plan.rest):
            yield _new_message(chat, file, message, self.now)

    def _rows(
        self, chat: Chat, session: ChatSession, files: Sequence[BatchFile]
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

    def _record(self, chat: Chat, session: ChatSession, plan: Plan) -> None:
        audit_record(
            action="transcript.save",
            actor=self.actor,
            object_type="session",
            object_id=session.pk,
            details={"files": len(plan.rest), "added": plan.add, "overlap": plan.overlap},
            chat_id=chat.pk,
        )


def _new_message(
    chat: Chat, file: BatchFile, message: TranscriptMessage, now: datetime
) -> NewMessage:
    """Return the message to store. Transcripts have no times, so it has the time of the save."""
    people = (chat.whatsapp_chat, ASSISTANT_ADDRESS)
    sender, recipient = people if message.role == USER else people[::-1]
    return NewMessage(
        role=message.role,
        content=message.content,
        timestamp=now,
        sender=sender,
        recipient=recipient,
        metadata={} if file.number == NO_NUMBER else {"transcript_batch": file.number},
    )
