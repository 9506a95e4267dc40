"""Whoever may write to the database or to the log file, but has no key, is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from memoryproject.foundation.audit.findings import MAX_FINDINGS
from memoryproject.foundation.audit.models import AuditEvent
from tests.audit.log import AuditLog, execute, kinds, tamper

COUNT = 9
MIDDLE = 5
EVENT = "audit_auditevent"

EDITS = {
    "id": "id + 1000",
    "at": "at + interval '1 microsecond'",
    "action": "'memory.forget'",
    "actor_kind": "'staff'",
    "actor": "'somebody'",
    "chat": "'p-0'",
    "object_type": "'session'",
    "object_id": "object_id || ' '",
    "content_hash": "repeat('cd', 32)",
    "details": """'{"number": 4.0}'""",
    "seal": "repeat('0', 64)",
}


@pytest.fixture
def sealed(log: AuditLog) -> AuditLog:
    log.record(COUNT)
    log.seal()
    return log


def test_every_column_is_edited_here() -> None:
    columns = {field.column for field in AuditEvent._meta.concrete_fields}
    assert columns == {*EDITS, "seq"}


@pytest.mark.parametrize("with_log", [True, False])
@pytest.mark.parametrize("column", EDITS)
def test_an_edited_row_is_found_and_named(sealed: AuditLog, column: str, with_log: bool) -> None:
    for seq in (1, MIDDLE, COUNT):
        tamper(f"UPDATE {EVENT} SET {column} = {EDITS[column]} WHERE seq = %s", seq)
    if not with_log:
        sealed.path.unlink()
    report = sealed.verify()
    assert kinds(report) == [*([] if with_log else ["log_missing"]), *["row_changed"] * 3]
    for finding, seq in zip(report.findings[-3:], (1, MIDDLE, COUNT), strict=True):
        assert finding.where.startswith(f"Event {seq} (row ")
        assert not with_log or f"differs from its line in {column}" in finding.text


def test_an_edited_row_with_its_line_edited_alike_is_found(sealed: AuditLog) -> None:
    tamper(f"UPDATE {EVENT} SET actor = 'staff' WHERE seq = %s", MIDDLE)
    lines = sealed.lines()
    lines[MIDDLE - 1] = lines[MIDDLE - 1].replace(b'"actor": ""', b'"actor": "staff"')
    sealed.write(lines)
    report = sealed.verify()
    assert kinds(report) == ["row_changed"]
    assert "and so was its line" in report.findings[0].text


@pytest.mark.parametrize(
    ("first", "last"), [(1, 1), (4, 6), (COUNT, COUNT), (7, COUNT), (1, COUNT)]
)
@pytest.mark.parametrize("with_log", [True, False])
def test_deleted_rows_are_named(sealed: AuditLog, first: int, last: int, with_log: bool) -> None:
    tamper(f"DELETE FROM {EVENT} WHERE seq BETWEEN %s AND %s", first, last)
    if not with_log:
        sealed.path.unlink()
    report = sealed.verify()
    assert kinds(report) == [*([] if with_log else ["log_missing"]), "row_deleted"]
    assert report.findings[-1].where == events(first, last)


def events(first: int, last: int) -> str:
    return f"Event {first}" if first == last else f"Events {first} to {last}"


def inserted(seq: int) -> str:
    return (
        f"INSERT INTO {EVENT} (at, action, actor_kind, actor, chat, object_type, object_id,"
        " content_hash, details, seq, seal) VALUES (now(), 'forged', 'system', '', '', '', '', '',"
        f" '{{}}', {seq}, repeat('a', 64))"
    )


# What is done to the rows, and what is found: kinds, and the first place.
MOVES = {
    "two change places, each with its own seal": [
        f"UPDATE {EVENT} SET seq = 999 WHERE seq = 4",
        f"UPDATE {EVENT} SET seq = 4 WHERE seq = 5",
        f"UPDATE {EVENT} SET seq = 5 WHERE seq = 999",
    ],
    "two change their contents": [
        f"UPDATE {EVENT} one SET object_id = other.object_id FROM {EVENT} other"
        " WHERE one.seq IN (4, 5) AND other.seq = 9 - one.seq"
    ],
    "one is taken out and the gap closed": [
        f"DELETE FROM {EVENT} WHERE seq = 4",
        *(f"UPDATE {EVENT} SET seq = {seq - 1} WHERE seq = {seq}" for seq in range(5, COUNT + 1)),
    ],
    "one is put in": [
        *(f"UPDATE {EVENT} SET seq = {seq + 1} WHERE seq = {seq}" for seq in range(COUNT, 3, -1)),
        inserted(4),
    ],
}


@pytest.mark.parametrize("change", MOVES)
def test_rows_moved_about_are_found(sealed: AuditLog, change: str) -> None:
    for statement in MOVES[change]:
        tamper(statement)
    report = sealed.verify()
    assert "row_changed" in kinds(report)
    assert any(finding.where.startswith("Event 4 ") for finding in report.findings)
    sealed.path.unlink()
    assert "row_changed" in kinds(sealed.verify())


@pytest.mark.parametrize("seq", [COUNT + 1, COUNT + 5])
def test_a_row_put_behind_the_end_is_found_also_later(sealed: AuditLog, seq: int) -> None:
    tamper(inserted(seq))
    report = sealed.verify()
    assert kinds(report) == ["row_inserted"]
    assert report.findings[0].where == f"Event {seq}"
    sealed.record(6)
    assert not sealed.verify().verified


def test_an_unsealed_row_can_be_sealed_only_at_the_end(sealed: AuditLog) -> None:
    """Who makes an old row look unsealed gets a gap where it was."""
    tamper(f"UPDATE {EVENT} SET seq = NULL, seal = '', actor = 'other' WHERE seq = %s", MIDDLE)
    report = sealed.verify()
    assert kinds(report) == ["row_deleted"]
    assert report.findings[0].where == f"Event {MIDDLE}"
    assert report.last == COUNT + 1


class TestTheEnd:
    def test_cut_off_with_its_mark_set_back(self, log: AuditLog) -> None:
        """As if an older database had been put in its place: only the log file knows more."""
        log.record(5)
        log.seal()
        head = execute("SELECT seq, seal, mac FROM audit_audithead")[0]
        log.record(4)
        log.seal()
        tamper(f"DELETE FROM {EVENT} WHERE seq > 5")
        tamper("UPDATE audit_audithead SET seq = %s, seal = %s, mac = %s", *head)
        report = log.verify()
        assert kinds(report) == ["log_ahead"]
        assert report.findings[0].where == "Events 6 to 9"
        # Going on doesn't cover it.
        log.record(8)
        report = log.verify()
        assert "line_changed" in kinds(report) or "row_changed" in kinds(report)

    def test_its_mark_removed(self, sealed: AuditLog) -> None:
        tamper("DELETE FROM audit_audithead")
        assert kinds(sealed.verify()) == ["head_removed"]
        sealed.record(1)
        report = sealed.verify()
        assert kinds(report) == ["head_removed"]
        assert report.waiting == 1

    @pytest.mark.parametrize(
        ("statements", "found"),
        [
            ([f"DELETE FROM {EVENT}", "DELETE FROM audit_audithead"], ["log_ahead"]),
            (["UPDATE audit_audithead SET seq = seq - 2"], ["head_changed"]),
            (["UPDATE audit_audithead SET seal = repeat('0', 64)"], ["head_changed"]),
            (["UPDATE audit_audithead SET mac = ''"], ["head_changed"]),
            (
                [f"DELETE FROM {EVENT} WHERE seq > 7", "UPDATE audit_audithead SET seq = 7"],
                ["head_changed", "log_ahead"],
            ),
        ],
    )
    def test_its_mark(self, sealed: AuditLog, statements: list[str], found: list[str]) -> None:
        for statement in statements:
            tamper(statement)
        assert kinds(sealed.verify()) == found


JUNK = [b"\n", b"junk\n", b"[]\n", b'{"seq": "1"}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"]
Edit = Callable[[list[bytes]], list[bytes]]


def without(first: int, last: int) -> Edit:
    return lambda lines: lines[: first - 1] + lines[last:]


def edited(number: int, old: bytes, new: bytes) -> Edit:
    return lambda lines: [
        line.replace(old, new) if place == number else line
        for place, line in enumerate(lines, start=1)
    ]


def put_in(number: int, line: bytes | Edit) -> Edit:
    def change(lines: list[bytes]) -> list[bytes]:
        (new,) = [line] if isinstance(line, bytes) else line(lines)
        return [*lines[: number - 1], new, *lines[number - 1 :]]

    return change


# What is done to the lines of the log file, and what is found: the kind, and where.
FILES: dict[str, tuple[Edit, list[str], str]] = {
    "emptied": (lambda lines: [], ["line_missing"], events(1, COUNT)),
    **{
        f"lines {first} to {last} taken out": (
            without(first, last),
            ["line_missing"],
            events(first, last),
        )
        for first, last in [(1, 1), (3, 4), (COUNT, COUNT), (6, COUNT)]
    },
    **{
        f"line {number} edited": (
            edited(number, b"memory.remember", b"memory.forget"),
            ["line_changed"],
            f"event {number} ",
        )
        for number in (1, MIDDLE, COUNT)
    },
    "another form": (edited(3, b'"seq": ', b'"seq":'), ["line_changed"], "event 3 "),
    **{
        f"junk {number}": (put_in(4, junk), ["line_unreadable"], "Line 4 of the log file")
        for number, junk in enumerate(JUNK)
    },
    "a forged line": (
        put_in(7, lambda lines: [lines[2].replace(b'"actor": ""', b'"actor": "x"')]),
        ["line_changed"],
        "Line 7 of the log file",
    ),
    "an event that never was": (
        put_in(3, lambda lines: [lines[0].replace(b'"seq": 1,', b'"seq": 99,')]),
        ["log_ahead"],
        "Event 99",
    ),
    "two swapped": (
        lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]],
        ["line_missing"],
        "Event ",
    ),
}


class TestTheLogFile:
    @pytest.mark.parametrize("how", FILES)
    def test_changed(self, sealed: AuditLog, how: str) -> None:
        change, found, where = FILES[how]
        sealed.write(change(sealed.lines()))
        report = sealed.verify()
        assert set(kinds(report)) >= set(found)
        assert len(report.findings) == 1 or how == "two swapped"
        assert where in report.findings[0].where
        # What comes later doesn't cover it.
        sealed.record(2)
        assert set(kinds(sealed.verify())) >= set(found)

    def test_missing(self, sealed: AuditLog) -> None:
        sealed.path.unlink()
        report = sealed.verify()
        assert kinds(report) == ["log_missing"]
        assert "--write-log" in report.findings[0].advice
        sealed.record(2)
        report = sealed.verify()
        assert kinds(report) == ["line_missing"]
        assert report.findings[0].where == events(1, COUNT)

    def test_cut_off_in_the_middle_of_a_line(self, sealed: AuditLog) -> None:
        sealed.path.write_bytes(sealed.path.read_bytes()[:-20])
        assert sorted(kinds(sealed.verify())) == ["line_missing", "line_unreadable"]
        sealed.record(1)
        assert kinds(sealed.verify()) == ["line_missing"]

    def test_the_same_lines_twice_do_no_harm(self, sealed: AuditLog) -> None:
        lines = sealed.lines()
        sealed.write([*lines, *lines[-3:]])
        report = sealed.verify()
        assert report.verified
        assert report.repeated_lines == 3


def test_a_wrong_key_is_told_as_such(sealed: AuditLog) -> None:
    report = replace(sealed, key="another").verify()
    assert kinds(report) == ["wrong_key"]
    assert "AUDIT_KEY" in report.findings[0].where
    assert sealed.verify().verified


def test_a_key_changed_half_way_would_be_found(sealed: AuditLog) -> None:
    """Who seals with another key after removing the mark of the end."""
    tamper("DELETE FROM audit_audithead")
    sealed.record(2)
    with pytest.raises(Exception, match="was removed"):
        replace(sealed, key="another").seal()


def test_a_report_stays_short_however_much_is_wrong(log: AuditLog) -> None:
    log.record(MAX_FINDINGS + 50)
    log.seal()
    tamper(f"UPDATE {EVENT} SET actor = 'x'")
    report = log.verify()
    assert report.found == MAX_FINDINGS + 50
    assert len(report.findings) == MAX_FINDINGS
