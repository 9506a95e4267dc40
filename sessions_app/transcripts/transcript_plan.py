"""Plan a save of checked files: find the stored ones and the first message to add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from memories_app.store.facade import keyed_hash
from sessions_app.models import TranscriptBatch
from sessions_app.models.sessions import SessionStatus
from sessions_app.transcript_files.facade import (
    NO_NUMBER,
    BatchFile,
    BatchFolder,
    Check,
    Kind,
    Problem,
    Signs,
    batch_name,
    batch_position,
    standing_as_given,
)
from sessions_app.transcripts.continuity_problems import FORM, boundary_problems, standing_problem
from sessions_app.transcripts.conversation_queries import (
    Conversation,
    StoredSigns,
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
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def digest_of(file: BatchFile) -> str:
    """Return a keyed hash, from which the file's content can't be guessed by trying."""
    return keyed_hash(file.sha256, purpose="transcript")


def plan_make(
    *, check: Check, conversation: Conversation | None, folder: BatchFolder, overlap: int | None
) -> Plan:
    """Plan the save.

    ``overlap``: how many messages at the beginning are the stored end, as the caller says; 0:
    all of them were said anew. None: find out, and refuse what allows two readings.
    """
    plan = Plan(conversation, rest=check.files)
    if not check.files:
        return plan
    records: dict[int, TranscriptBatch] = {}
    last = 0
    stored = StoredSigns()
    if conversation is not None:
        first, final = check.files[0].number, check.files[-1].number
        records = batches_by_number(conversation=conversation, first=first, last=final)
        last = last_batch_number(conversation=conversation)
        stored = conversation_signs(conversation=conversation)
    _leave_out_saved(plan, check, records)
    if not plan.rest:
        return plan
    plan.problems += _number_problems(plan, records, last)
    batch = check.signs.part(sum(file.messages for file, _ in plan.saved))
    if overlap is None and not plan.problems:
        plan.problems += boundary_problems(check, plan.rest, plan.notes)
    if not plan.problems:
        follows = 0 < last == plan.rest[0].number - 1
        _place(plan, stored, batch, folder, overlap=overlap, follows=follows)
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
    is_first = first.number in (NO_NUMBER, 1) and not plan.saved
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
    plan: Plan,
    stored: StoredSigns,
    batch: Signs,
    folder: BatchFolder,
    *,
    overlap: int | None,
    follows: bool,
) -> None:
    found = (
        batch_position(stored=stored.signs, batch=batch, follows=follows)
        if overlap is None
        else standing_as_given(stored=stored.signs, batch=batch, overlap=overlap)
    )
    if found.kind in (Kind.STORED, Kind.OVERLAP):
        plan.overlap = found.position
        plan.stored_in = stored.places[found.stored][0]
        _note_form(plan, stored.signs.part(found.stored), batch)
    elif found.kind is not Kind.NEW:
        plan.problems.append(standing_problem(found, plan.rest, stored, folder))
    plan.add = len(batch) - plan.overlap


def _note_form(plan: Plan, stored: Signs, batch: Signs) -> None:
    """Note the messages of a given overlap that differ in form: the stored ones stay."""
    pairs = zip(stored.exact[: plan.overlap], batch.exact[: plan.overlap], strict=True)
    differing = sum(ours != theirs for ours, theirs in pairs)
    if differing:
        plan.notes.append(
            f"{differing} of the overlapping messages differ from the stored ones in {FORM}: what "
            "is stored stays as it is."
        )


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
