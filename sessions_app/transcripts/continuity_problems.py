"""Say why files don't continue a stored conversation, and how the caller can decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessions_app.transcript_files.facade import (
    BatchFile,
    BatchFolder,
    ChangedError,
    Check,
    Kind,
    Problem,
    Standing,
    holds_different_exchanges,
    messages_again,
    repeated_end,
)
from sessions_app.transcripts.conversation_queries import StoredSigns

FORM = "white space, line ends or the Unicode form of characters"


def standing_problem(
    found: Standing, files: Sequence[BatchFile], stored: StoredSigns, folder: BatchFolder
) -> Problem:
    """Return the reason to refuse the files, with the place of the message and the way out."""
    if found.kind is Kind.NOT_THERE:
        return _not_there(found, files, stored, folder)
    session_id, order_num = stored.places[found.stored]
    there = f"message {order_num} of session {session_id}"
    first = 0 if found.kind is Kind.AMBIGUOUS else found.position
    file, number, line = _locate(folder, files, first)
    if found.kind is Kind.AMBIGUOUS:
        what = (
            f"The first {_messages(found.position)} may be stored already, from {there} on, "
            "or may have been said again."
        )
        return Problem("ambiguous", file, what, _decide(found), line)
    if found.kind is Kind.EARLIER:
        what = (
            f"The stored conversation begins like this from the {_nth(number)} message on "
            f"({there}): what stands before it can't be put in front."
        )
        mend = (
            "Remove what is before it, or save all of it into a chat of its own. If all of it was "
            "said anew, save it with --append."
        )
        return Problem("earlier", file, what, mend, line)
    if found.kind is Kind.FORM:
        what = f"The {_nth(number)} message differs from {there} only in {FORM}."
        mend = f"Put back the exact text, such as its own line ends. {_decide(found)}"
        return Problem("not_exact", file, what, mend, line)
    what = f"The {_nth(number)} message is not the same as {there}, although those around it are."
    mend = "Put the exact message there. If all of it was really said anew, save it with --append."
    return Problem("not_exact", file, what, mend, line)


def _decide(found: Standing) -> str:
    """Return how the caller decides whether something was said again."""
    again = "Was all of it said again, save it with --append."
    if found.overlap:
        return (
            f"If the first {_messages(found.overlap)} are the end of what is stored, save with "
            f"--overlap {found.overlap}: then they aren't stored again. {again}"
        )
    return f"If it is stored already, there is nothing to save. {again}"


def _not_there(
    found: Standing, files: Sequence[BatchFile], stored: StoredSigns, folder: BatchFolder
) -> Problem:
    what = (
        f"The overlap was given as {found.overlap}, but the conversation has "
        f"{_messages(len(stored.signs))} and this is shorter or not its end."
    )
    mend = "Give the number of messages at the beginning that are the end of what is stored."
    file, number, line = _locate(folder, files, max(found.position, 0))
    if found.overlap <= min(len(stored.signs), sum(each.messages for each in files)):
        session_id, order_num = stored.places[found.stored]
        what = (
            f"The overlap was given as {found.overlap}, but the {_nth(number)} message is not "
            f"message {order_num} of session {session_id}."
        )
    return Problem("no_overlap", file, what, mend, line)


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
        again = repeated_end(before=signs[reach:start], batch=signs[start:end]) if before else 0
        if before is None or not again:
            continue
        what = f"The first {_messages(again)} repeat the end of {before.name}"
        if not holds_different_exchanges(signs[start : start + again]):
            notes.append(f"{file.name}: {what[0].lower()}{what[1:]}; they count as said again.")
            continue
        mend = (
            "If they were told twice, remove them from this file. Was all of it said again, save "
            "it with --append."
        )
        yield Problem("ambiguous", file.name, f"{what}: told twice, or said again.", mend, 1)


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
