"""Plan a save of checked files: find the stored ones and the first message to add."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from memories_app.store.retract import keyed_hash
from sessions_app.models import TranscriptBatch
from sessions_app.models.sessions import SessionStatus
from sessions_app.transcript_files import continuity
from sessions_app.transcript_files.parse_transcript import Problem
from sessions_app.transcript_files.transcript_folder import (
    NO_NUMBER,
    BatchFile,
    BatchFolder,
    ChangedError,
    Check,
    batch_name,
    messages_again,
)
from sessions_app.transcripts.export_transcripts import (
    Conversation,
    StoredSigns,
    conversation_signs,
    is_answering,
    last_batch,
)

FORM = "white space, line ends or the Unicode form of characters"


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
        rows = conversation.batches.filter(number__range=(first, final)).order_by("id")
        records = {batch.number: batch for batch in rows}
        newest = last_batch(conversation=conversation)
        last = newest.number if newest else 0
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
        return [Problem.of("gap", first.name, after=after, missing=missing)]
    if record is not None and record.digest == digest_of(first):
        return []
    next_one = batch_name(last + 1)
    return [Problem.of("other_content", first.name, number=first.number, next=next_one)]


def _place(
    plan: Plan,
    stored: StoredSigns,
    batch: continuity.Signs,
    folder: BatchFolder,
    *,
    overlap: int | None,
    follows: bool,
) -> None:
    found = (
        continuity.batch_position(stored=stored.signs, batch=batch, follows=follows)
        if overlap is None
        else continuity.standing_as_given(stored=stored.signs, batch=batch, overlap=overlap)
    )
    if found.kind in (continuity.Kind.STORED, continuity.Kind.OVERLAP):
        plan.overlap = found.position
        plan.stored_in = stored.places[found.stored][0]
        _note_form(plan, stored.signs.part(found.stored), batch)
    elif found.kind is not continuity.Kind.NEW:
        plan.problems.append(standing_problem(found, plan.rest, stored, folder))
    plan.add = len(batch) - plan.overlap


def _note_form(plan: Plan, stored: continuity.Signs, batch: continuity.Signs) -> None:
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
        problems.append(Problem.of("memory_off", file))
    if session is not None and session.status == SessionStatus.ARCHIVED:
        problems.append(Problem.of("archived", file, session=session.pk))
    if is_answering(chat=chat):
        problems.append(Problem.of("answering", file))
    return problems


# Why files don't continue a stored conversation, and how the caller can decide.


def standing_problem(
    found: continuity.Standing, files: Sequence[BatchFile], stored: StoredSigns, folder: BatchFolder
) -> Problem:
    """Return the reason to refuse the files, with the place of the message and the way out."""
    if found.kind is continuity.Kind.NOT_THERE:
        return _not_there(found, files, stored, folder)
    there = _stored_place(stored, found.stored)
    first = 0 if found.kind is continuity.Kind.AMBIGUOUS else found.position
    file, number, line = _locate(folder, files, first)
    values = {"there": there, "nth": _nth(number), "form": FORM, "decide": _decide(found)}
    name = {
        continuity.Kind.AMBIGUOUS: "ambiguous",
        continuity.Kind.EARLIER: "earlier",
        continuity.Kind.FORM: "other_form",
    }.get(found.kind, "differs")
    return Problem.of(name, file, line, messages=_messages(found.position), **values)


def _decide(found: continuity.Standing) -> str:
    """Return how the caller decides whether something was said again."""
    again = "Was all of it said again, save it with --append."
    if found.overlap:
        return (
            f"If the first {_messages(found.overlap)} are the end of what is stored, save with "
            f"--overlap {found.overlap}: then they aren't stored again. {again}"
        )
    return f"If it is stored already, there is nothing to save. {again}"


def _not_there(
    found: continuity.Standing, files: Sequence[BatchFile], stored: StoredSigns, folder: BatchFolder
) -> Problem:
    file, number, line = _locate(folder, files, max(found.position, 0))
    name, values = "no_overlap", {"messages": _messages(len(stored.signs))}
    if found.overlap <= min(len(stored.signs), sum(each.messages for each in files)):
        there = _stored_place(stored, found.stored)
        name, values = "other_overlap", {"nth": _nth(number), "there": there}
    return Problem.of(name, file, line, overlap=found.overlap, **values)


def boundary_problems(
    check: Check, files: Sequence[BatchFile], notes: list[str]
) -> Iterator[Problem]:
    """Check that no file begins with the end of the one before it.

    ``files``: the last ones of the check. By their numbers each holds what was said next. One
    exchange that is repeated there counts as said again, with a note; more are left to people.
    """
    signs = check.signs.loose[len(check.signs) - sum(file.messages for file in files) :]
    end = 0
    for before, file in zip((None, *files), files, strict=False):
        start, end = end, end + file.messages
        reach = max(start - file.messages, 0)
        again = (
            continuity.repeated_end(before=signs[reach:start], batch=signs[start:end])
            if before
            else 0
        )
        if before is None or not again:
            continue
        what = f"The first {_messages(again)} repeat the end of {before.name}"
        if not continuity.holds_different_exchanges(signs[start : start + again]):
            notes.append(f"{file.name}: {what[0].lower()}{what[1:]}; they count as said again.")
            continue
        yield Problem.of("told_twice", file.name, 1, again=what)


def _stored_place(stored: StoredSigns, place: int) -> str:
    session_id, order_num = stored.places[place]
    return f"message {order_num} of session {session_id}"


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _nth(number: int | None) -> str:
    number = number or 1
    ends = {1: "st", 2: "nd", 3: "rd"}
    end = "th" if number % 100 in (11, 12, 13) else ends.get(number % 10, "th")
    return f"{number}{end}"


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
