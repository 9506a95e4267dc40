"""Plan a save of checked files: find the stored ones and the first message to add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from memories_app.store.facade import keyed_hash
from sessions_app.models import TranscriptBatch
from sessions_app.models.sessions import SessionStatus
from sessions_app.transcript_files.facade import (
    BatchFile,
    BatchFolder,
    ChangedError,
    Check,
    Kind,
    Problem,
    Standing,
    batch_name,
    messages_again,
    standing,
)
from sessions_app.transcripts.conversation_queries import (
    Conversation,
    Signs,
    batches_by_number,
    conversation_signs,
    is_answering,
    last_batch_number,
)


@dataclass
class Plan:
    """The plan of a save.

    ``saved``: the files at the beginning that an earlier run saved and didn't clean up, with
    their rows. ``rest``: the others, whose first ``overlap`` messages are stored already and
    whose next ``add`` messages are to add. ``stored_in``: the session of the overlap;
    ``conversation``: None if the chat is new.
    """

    conversation: Conversation | None
    saved: list[tuple[BatchFile, TranscriptBatch]] = field(default_factory=list)
    rest: Sequence[BatchFile] = ()
    overlap: int = 0
    add: int = 0
    stored_in: UUID | None = None
    stored_messages: int = 0
    problems: list[Problem] = field(default_factory=list)


def digest_of(file: BatchFile) -> str:
    """Return a keyed hash, from which the file's content can't be guessed by trying."""
    return keyed_hash(file.sha256, purpose="transcript")


def plan_make(
    *, check: Check, conversation: Conversation | None, folder: BatchFolder, append: bool
) -> Plan:
    """Plan the save.

    ``append``: add messages even if they repeat the stored end.
    """
    plan = Plan(conversation, rest=check.files)
    if not check.files:
        return plan
    records: dict[int, TranscriptBatch] = {}
    last = 0
    stored = Signs()
    if conversation is not None:
        first, final = check.files[0].number, check.files[-1].number
        records = batches_by_number(conversation=conversation, first=first, last=final)
        last = last_batch_number(conversation=conversation)
        stored = conversation_signs(conversation=conversation)
    plan.stored_messages = len(stored.signs)
    _leave_out_saved(plan, check, records)
    if not plan.rest:
        return plan
    plan.problems += _number_problems(plan, records, last)
    batch = check.signs[sum(file.messages for file, _ in plan.saved) :]
    if not plan.problems:
        _place(plan, stored, batch, folder, append=append)
    if conversation is not None and plan.add and not plan.problems:
        plan.problems += _conversation_problems(conversation, plan.rest[0].name)
    return plan


def _leave_out_saved(plan: Plan, check: Check, records: dict[int, TranscriptBatch]) -> None:
    for file in check.files:
        record = records.get(file.number)
        if record is None or record.cleaned_at is not None or record.digest != digest_of(file):
            break
        plan.saved.append((file, record))
    plan.rest = check.files[len(plan.saved) :]


def _number_problems(plan: Plan, records: dict[int, TranscriptBatch], last: int) -> list[Problem]:
    """Check that the first unsaved file follows the last saved one."""
    first = plan.rest[0]
    record = records.get(first.number)
    is_first = first.number == 1 and not plan.saved
    if first.number == last + 1 or is_first:
        return []
    if first.number > last:
        missing = batch_name(last + 1)
        if first.number - last > 2:
            missing += f" to {batch_name(first.number - 1)}"
        after = f"The last batch saved is {batch_name(last)}" if last else "None is saved yet"
        what = f"{after}: {missing} would be missing."
        mend = "Put what is missing there, or give the files the numbers that follow."
        return [Problem("gap", first.name, what, mend)]
    if record is not None and record.digest == digest_of(first):
        return []
    return [
        Problem(
            "not_exact",
            first.name,
            f"A batch {first.number} was saved already, with another content.",
            f"Put back what was saved, or number what is new from {batch_name(last + 1)} "
            "(or, all of it, from 001).",
        )
    ]


def _place(
    plan: Plan, stored: Signs, batch: Sequence[bytes], folder: BatchFolder, *, append: bool
) -> None:
    found = standing(stored=() if append else stored.signs, batch=batch)
    if found.kind in (Kind.STORED, Kind.OVERLAP):
        plan.overlap = found.position
        plan.stored_in = stored.places[found.stored][0]
    elif found.kind is not Kind.NEW:
        plan.problems.append(_standing_problem(found, plan.rest, stored, folder))
    plan.add = len(batch) - plan.overlap


def _standing_problem(
    found: Standing, files: Sequence[BatchFile], stored: Signs, folder: BatchFolder
) -> Problem:
    session_id, order_num = stored.places[found.stored]
    there = f"message {order_num} of session {session_id}"
    if found.kind is Kind.AMBIGUOUS:
        file, _, line = _locate(folder, files, 0)
        return Problem(
            "ambiguous",
            file,
            f"This exchange is stored already, at {there}, and other messages follow it there.",
            "Was it said again, save it with --append; else remove the files.",
            line,
        )
    if found.kind is Kind.EARLIER:
        file, number, line = _locate(folder, files, found.position)
        return Problem(
            "earlier",
            file,
            f"The conversation begins with this message (number {number} of the file; {there}): "
            "what the files tell before it can't be put in front.",
            "Remove what is before it, or save the files into a chat of their own.",
            line,
        )
    file, number, line = _locate(folder, files, found.position)
    return Problem(
        "not_exact",
        file,
        f"Message {number} of the file is not the same as {there}, although those around it are.",
        "Put the exact message there. If all of it was really said anew, save it with --append.",
        line,
    )


def _locate(
    folder: BatchFolder, files: Sequence[BatchFile], place: int
) -> tuple[str, int | None, int | None]:
    """Return the file of a message, its number in the file, and its line."""
    for file in files:
        if place < file.messages:
            try:
                for number, (_, message) in enumerate(messages_again(folder=folder, files=[file])):
                    if number == place:
                        return file.name, number + 1, message.line
            except ChangedError:
                pass
            return file.name, place + 1, None
        place -= file.messages
    raise AssertionError("a place beyond the last message")


def _conversation_problems(conversation: Conversation, file: str) -> list[Problem]:
    """Check that the conversation accepts messages now."""
    problems = []
    session, chat = conversation.session, conversation.chat
    if chat.memory_enabled is False:
        what = "Memory is switched off for this chat: nothing is stored for it."
        problems.append(Problem("memory_off", file, what, "Switch it on in the admin first."))
    if session is not None and session.status == SessionStatus.ARCHIVED:
        what = f"Session {session.pk} is archived, which makes it read-only."
        problems.append(Problem("archived", file, what, "Save into the chat, with --chat."))
    if is_answering(chat=chat):
        what = "An answer is on its way in this chat."
        problems.append(Problem("answering", file, what, "Run it again in a moment."))
    return problems
