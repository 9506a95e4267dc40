"""What is new in a transcript: never guessed, and decided by the caller where it is open."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings, strategies as st

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from sessions_app.transcript_files.parse_transcript import RefusedError
from sessions_app.transcript_files.transcript_folder import OneText, batch_name
from sessions_app.transcripts.export_transcripts import Target
from sessions_app.transcripts.save import batches_save
from sessions_app.transcripts.status import folder_validate
from tests.transcripts.conftest import Batches, run, said, stored
from tests.transcripts.texts import parse, write

# `TRANSCRIPT_EXAMPLES=1000` tries as many as the issue asks for.
EXAMPLES = int(os.environ.get("TRANSCRIPT_EXAMPLES", "20"))
FOUR = ("q1 é", "a1 first\nsecond", "q2", "a2")


def crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def blank_lines(data: bytes) -> bytes:
    return data.replace(b"\nAssistant:", b"\n\nAssistant:").replace(b"\nUser:", b"\n\nUser:")


def decomposed(data: bytes) -> bytes:
    return unicodedata.normalize("NFD", data.decode()).encode()


@pytest.mark.parametrize("damage", [crlf, blank_lines, decomposed])
@pytest.mark.parametrize("number", [1, 2])
def test_another_form_is_not_stored_twice(batches: Batches, damage: object, number: int) -> None:
    """D1: it was added again, and the file removed."""
    assert callable(damage)
    data = batches.put(1, *FOUR).read_bytes()
    batches.save()
    batches.put_bytes(number, damage(data))
    problem = batches.refused_for()
    assert problem.code == ("not_exact" if number == 1 else "ambiguous")
    assert "--append" in problem.mend
    assert "--overlap 4" in problem.mend
    saved = batches.save(overlap=4)
    assert (saved.added, stored()) == (0, said(*FOUR))
    assert any("what is stored stays" in note for note in saved.notes)


def test_one_exchange_in_another_form_is_left_to_people(batches: Batches) -> None:
    batches.put(1, "yes", "ok")
    batches.save()
    batches.put_bytes(1, b"User: yes\r\nAssistant: ok\r\n")
    assert batches.refused_for().code == "ambiguous"


def test_a_short_exchange_said_again_in_the_next_batch_is_not_swallowed(batches: Batches) -> None:
    """D2: it was dropped, its file removed and its number used up."""
    batches.put(1, "a", "b", "yes", "ok")
    batches.save()
    batches.put(2, "yes", "ok")
    problem = batches.refused_for()
    assert problem.code == "ambiguous"
    assert "--append" in problem.mend
    assert "--overlap 2" in problem.mend
    assert batches.save(overlap=0).added == 2
    assert stored() == said("a", "b", "yes", "ok", "yes", "ok")
    batches.put(3, "a", "b")
    assert batches.refused_for().code == "ambiguous", "it is in the middle"


def test_in_one_run_it_is_kept_with_a_note(batches: Batches) -> None:
    batches.put(1, "a", "b", "yes", "ok")
    batches.put(2, "yes", "ok")
    saved = batches.save()
    assert saved.added == 6
    assert any("count as said again" in note for note in saved.notes)


def test_files_of_one_run_that_tell_two_exchanges_twice_are_refused(batches: Batches) -> None:
    batches.put(1, "a", "b", "c", "d")
    batches.put(2, "a", "b", "c", "d", "e", "f")
    assert batches.refused_for().code == "ambiguous"
    found = folder_validate(folder=batches.folder)
    assert [(problem.code, problem.file) for problem in found.problems] == [
        ("ambiguous", batch_name(2))
    ]
    assert batches.save(overlap=0).added == 10


def test_a_given_overlap_must_be_the_stored_end(batches: Batches) -> None:
    batches.put(1, *FOUR)
    batches.save()
    batches.put(2, "q2", "a2", "new", "answer")
    for wrong in (1, 4, 5, 99):
        assert batches.refused_for(overlap=wrong).code == "no_overlap"
    saved = batches.save(overlap=2)
    assert (saved.overlap, saved.added, batches.names) == (2, 2, [])
    assert stored() == said(*FOUR, "new", "answer")


def test_the_command_takes_the_decision(batches: Batches) -> None:
    place = ("--dir", batches.path)
    batches.put(1, "yes", "ok")
    run("save", *place)
    batches.put(2, "yes", "ok", "more", "answer")
    refused = run("save", *place)
    assert refused.code == 1
    assert "--overlap 2" in refused.errors
    assert run("save", *place, "--overlap=-1").code
    assert run("save", *place, "--overlap=2", "--append").code
    assert run("save", *place, "--overlap", 2).code == 0
    assert stored() == said("yes", "ok", "more", "answer")


def test_what_ends_with_all_that_is_stored_is_refused_and_can_be_appended(batches: Batches) -> None:
    """It may begin before the stored conversation, or repeat its exchange."""
    place = ("--dir", batches.path)
    batches.put(1, "yes", "ok")
    run("save", *place)
    batches.put(1, "question", "answer", "yes", "ok")
    refused = run("save", *place)
    assert refused.code == 1
    assert "begins like this from the 3rd message on" in refused.errors
    assert "--append" in refused.errors
    assert stored() == said("yes", "ok")
    assert run("save", *place, "--append").code == 0
    assert stored() == said("yes", "ok", "question", "answer", "yes", "ok")


def test_validate_says_that_it_did_not_look_at_what_is_stored(batches: Batches) -> None:
    """D9: a lone second batch is "valid"."""
    batches.put(2, "a", "b")
    told = run("validate", "--dir", batches.path)
    assert told.code == 0
    assert "Only the format was checked" in told.errors
    report = run("validate", "--dir", batches.path, "--json").report
    assert any("Only the format was checked" in note for note in report["notes"])
    with_chat = run("validate", "--dir", batches.path, "--chat", "1@c.us")
    assert with_chat.code == 1
    assert "Only the format" not in with_chat.errors


def test_a_folder_that_is_missing_is_told_how_to_make(db: None, tmp_path: Path) -> None:
    """D10."""
    missing = tmp_path / "chats" / "temp"
    told = run("validate", "--dir", missing)
    assert told.code == 2
    assert f"mkdir -p {missing}" in told.errors


@dataclass(frozen=True)
class Batch:
    """A batch of the true conversation: which exchanges it tells, and how it was damaged."""

    new: int
    retold: int
    damage: int


DAMAGES = [lambda data: data, crlf, blank_lines, decomposed]
BATCHES = st.lists(
    st.builds(Batch, new=st.integers(0, 4), retold=st.integers(0, 4), damage=st.integers(0, 3)),
    min_size=1,
    max_size=5,
)
# Each exchange is one of two short ones, or one that is said just once.
TALK = st.lists(st.sampled_from([0, 0, 1, 2, 2]), min_size=20, max_size=20)
SHORT = {0: ("yes", "ok"), 1: ("thanks é", "you're\nwelcome")}


def conversation(talk: Sequence[int], *, keeps_apart: bool) -> list[tuple[str, str]]:
    """The true conversation. ``keeps_apart``: no two different short exchanges in a row.

    Without numbers two different exchanges in a row that are repeated count as told twice: that
    is documented, and nothing else could tell.
    """
    found: list[tuple[str, str]] = []
    last = 2
    for place, kind in enumerate(talk):
        if keeps_apart and kind != last and 2 not in (kind, last):
            kind = 2
        last = kind
        found.append(SHORT.get(kind, (f"question {place} é", f"answer {place}\nline")))
    return found


@pytest.mark.django_db
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(talk=TALK, plan=BATCHES, numbered=st.booleans(), last_newline=st.booleans())
def test_each_batch_is_stored_exactly_or_refused_with_a_reason(
    batches: Batches, talk: list[int], plan: list[Batch], numbered: bool, last_newline: bool
) -> None:
    """Repeats, overlaps and damaged line ends: never twice, never swallowed, never changed."""
    truth = conversation(talk, keeps_apart=not numbered)
    batches = replace(batches, target=Target(whatsapp_chat="15550100123@c.us"))
    point = transaction.savepoint()
    try:
        _tell(batches, truth, plan, numbered, last_newline)
    finally:
        transaction.savepoint_rollback(point)
        for path in batches.path.iterdir():
            path.unlink()


def _tell(
    batches: Batches,
    truth: list[tuple[str, str]],
    plan: list[Batch],
    numbered: bool,
    last_newline: bool,
) -> None:
    expected: list[tuple[str, str]] = []
    known = number = 0
    for batch in plan:
        start = max(known - batch.retold, 0)
        told = truth[start : known + batch.new]
        if not told:
            continue
        data = DAMAGES[batch.damage](write(said(*[text for pair in told for text in pair])))
        data = data if last_newline else data.removesuffix(b"\n")
        overlap = 2 * (known - start)
        new = [(each.role, each.content) for each in parse(data).messages[overlap:]]
        before = stored()
        added, refused = _save(batches, data, number + 1, numbered)
        if refused is not None:
            assert stored() == before
            assert all(problem.what and problem.mend for problem in refused.problems)
            codes = {problem.code for problem in refused.problems}
            assert codes <= {"ambiguous", "not_exact", "earlier"}
            # The caller decides, as the refusal says.
            added, refused = _save(batches, data, number + 1, numbered, overlap=overlap)
        assert refused is None
        assert added == len(new)
        expected += new
        assert stored() == expected
        known = min(known + batch.new, len(truth))
        number += 1


def _save(
    batches: Batches, data: bytes, number: int, numbered: bool, overlap: int | None = None
) -> tuple[int, RefusedError | None]:
    """How many messages were added, or why it was refused."""
    try:
        if numbered:
            batches.put_bytes(number, data)
            return batches.save(overlap=overlap).added, None
        saved = batches_save(
            folder=OneText(data.decode()),
            target=batches.target,
            dependencies=batches.dependencies,
            actor=COMMAND_LINE,
            overlap=overlap,
        )
    except RefusedError as error:
        return 0, error
    return saved.added, None
