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


@pytest.mark.parametrize("seq", [1, MIDDLE, COUNT])
@pytest.mark.parametrize("column", EDITS)
def test_an_edited_row_is_found_and_named(sealed: AuditLog, column: str, seq: int) -> None:
    tamper(f"UPDATE {EVENT} SET {column} = {EDITS[column]} WHERE seq = %s", seq)
    report = sealed.verify()
    assert kinds(report) == ["row_changed"]
    assert report.findings[0].where.startswith(f"Event {seq} (row ")
    assert f"differs from its line in {column}" in report.findings[0].text


@pytest.mark.parametrize("column", EDITS)
def test_an_edited_row_is_found_without_the_log_file_too(sealed: AuditLog, column: str) -> None:
    tamper(f"UPDATE {EVENT} SET {column} = {EDITS[column]} WHERE seq = %s", MIDDLE)
    sealed.path.unlink()
    report = sealed.verify()
    assert kinds(report) == ["log_missing", "row_changed"]


def test_an_edited_row_with_its_line_edited_alike_is_found(sealed: AuditLog) -> None:
    tamper(f"UPDATE {EVENT} SET actor = 'staff' WHERE seq = %s", MIDDLE)
    lines = sealed.lines()
    lines[MIDDLE - 1] = lines[MIDDLE - 1].replace(b'"actor": ""', b'"actor": "staff"')
    sealed.write(lines)
    report = sealed.verify()
    assert kinds(report) == ["row_changed"]
    assert "and so was its line" in report.findings[0].text


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 3), (4, 6), (COUNT, COUNT), (7, COUNT)])
@pytest.mark.parametrize("with_log", [True, False])
def test_deleted_rows_are_found_and_named(
    sealed: AuditLog, first: int, last: int, with_log: bool
) -> None:
    tamper(f"DELETE FROM {EVENT} WHERE seq BETWEEN %s AND %s", first, last)
    if not with_log:
        sealed.path.unlink()
    report = sealed.verify()
    assert kinds(report) == [*([] if with_log else ["log_missing"]), "row_deleted"]
    where = f"Event {first}" if first == last else f"Events {first} to {last}"
    assert report.findings[-1].where == where


def test_an_edit_behind_a_deleted_row_is_found_too(sealed: AuditLog) -> None:
    tamper(f"DELETE FROM {EVENT} WHERE seq = 4")
    tamper(f"UPDATE {EVENT} SET actor = 'other' WHERE seq = 5")
    assert sorted(kinds(sealed.verify())) == ["row_changed", "row_deleted"]


def test_all_rows_deleted(sealed: AuditLog) -> None:
    tamper(f"DELETE FROM {EVENT}")
    report = sealed.verify()
    assert kinds(report) == ["row_deleted"]
    assert report.findings[0].where == f"Events 1 to {COUNT}"


def swap(sealed: AuditLog) -> None:
    """Events 4 and 5 change places, each with its own seal."""
    tamper(f"UPDATE {EVENT} SET seq = 999 WHERE seq = 4")
    tamper(f"UPDATE {EVENT} SET seq = 4 WHERE seq = 5")
    tamper(f"UPDATE {EVENT} SET seq = 5 WHERE seq = 999")


def swap_contents(sealed: AuditLog) -> None:
    tamper(
        f"UPDATE {EVENT} one SET object_id = other.object_id FROM {EVENT} other"
        " WHERE one.seq IN (4, 5) AND other.seq = 9 - one.seq"
    )


def renumber(sealed: AuditLog) -> None:
    """Event 4 is taken out and the gap closed."""
    tamper(f"DELETE FROM {EVENT} WHERE seq = 4")
    for seq in range(5, COUNT + 1):
        tamper(f"UPDATE {EVENT} SET seq = %s WHERE seq = %s", seq - 1, seq)


def insert_in_the_middle(sealed: AuditLog) -> None:
    for seq in range(COUNT, 3, -1):
        tamper(f"UPDATE {EVENT} SET seq = %s WHERE seq = %s", seq + 1, seq)
    insert(sealed, 4)


def insert(sealed: AuditLog, seq: int) -> None:
    tamper(
        f"INSERT INTO {EVENT} (at, action, actor_kind, actor, chat, object_type, object_id,"
        " content_hash, details, seq, seal) VALUES (now(), 'forged', 'system', '', '', '', '', '',"
        " '{}', %s, repeat('a', 64))",
        seq,
    )


@pytest.mark.parametrize("change", [swap, swap_contents, renumber, insert_in_the_middle])
def test_rows_moved_about_are_found(sealed: AuditLog, change: Callable[[AuditLog], None]) -> None:
    change(sealed)
    report = sealed.verify()
    assert "row_changed" in kinds(report)
    assert any(finding.where.startswith("Event 4 ") for finding in report.findings)
    sealed.path.unlink()
    assert "row_changed" in kinds(sealed.verify())


@pytest.mark.parametrize("seq", [COUNT + 1, COUNT + 5])
def test_a_row_put_behind_the_end_is_found_also_when_more_is_recorded(
    sealed: AuditLog, seq: int
) -> None:
    insert(sealed, seq)
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

    def test_rows_and_mark_removed(self, sealed: AuditLog) -> None:
        tamper(f"DELETE FROM {EVENT}")
        tamper("DELETE FROM audit_audithead")
        report = sealed.verify()
        assert kinds(report) == ["log_ahead"]
        assert report.findings[0].where == f"Events 1 to {COUNT}"

    @pytest.mark.parametrize("change", ["seq = seq - 2", "seal = repeat('0', 64)", "mac = ''"])
    def test_its_mark_changed(self, sealed: AuditLog, change: str) -> None:
        tamper(f"UPDATE audit_audithead SET {change}")
        assert kinds(sealed.verify()) == ["head_changed"]

    def test_its_mark_changed_and_rows_cut_off(self, sealed: AuditLog) -> None:
        tamper(f"DELETE FROM {EVENT} WHERE seq > 7")
        tamper("UPDATE audit_audithead SET seq = 7")
        assert kinds(sealed.verify()) == ["head_changed", "log_ahead"]


class TestTheLogFile:
    def test_missing(self, sealed: AuditLog) -> None:
        sealed.path.unlink()
        report = sealed.verify()
        assert kinds(report) == ["log_missing"]
        assert "--write-log" in report.findings[0].advice

    def test_missing_while_events_are_recorded(self, sealed: AuditLog) -> None:
        sealed.path.unlink()
        sealed.record(2)
        report = sealed.verify()
        assert kinds(report) == ["line_missing"]
        assert report.findings[0].where == f"Events 1 to {COUNT}"

    def test_emptied(self, sealed: AuditLog) -> None:
        sealed.path.write_bytes(b"")
        report = sealed.verify()
        assert kinds(report) == ["line_missing"]
        assert report.findings[0].where == f"Events 1 to {COUNT}"

    @pytest.mark.parametrize(("first", "last"), [(1, 1), (3, 4), (COUNT, COUNT), (6, COUNT)])
    def test_lines_taken_out(self, sealed: AuditLog, first: int, last: int) -> None:
        lines = sealed.lines()
        sealed.write(lines[: first - 1] + lines[last:])
        report = sealed.verify()
        assert kinds(report) == ["line_missing"]
        where = f"Event {first}" if first == last else f"Events {first} to {last}"
        assert report.findings[0].where == where
        # What comes later doesn't cover it.
        sealed.record(2)
        assert kinds(sealed.verify()) == ["line_missing"]

    def test_cut_off_in_the_middle_of_a_line(self, sealed: AuditLog) -> None:
        sealed.path.write_bytes(sealed.path.read_bytes()[:-20])
        assert sorted(kinds(sealed.verify())) == ["line_missing", "line_unreadable"]
        sealed.record(1)
        assert kinds(sealed.verify()) == ["line_missing"]

    @pytest.mark.parametrize("number", [1, MIDDLE, COUNT])
    def test_a_line_edited(self, sealed: AuditLog, number: int) -> None:
        lines = sealed.lines()
        lines[number - 1] = lines[number - 1].replace(b"memory.remember", b"memory.forget")
        sealed.write(lines)
        report = sealed.verify()
        assert kinds(report) == ["line_changed"]
        assert f"event {number} " in report.findings[0].where
        assert "in action, object_id." in report.findings[0].text

    def test_a_line_written_in_another_form(self, sealed: AuditLog) -> None:
        lines = sealed.lines()
        lines[2] = lines[2].replace(b'"seq": ', b'"seq":')
        sealed.write(lines)
        assert kinds(sealed.verify()) == ["line_changed"]

    @pytest.mark.parametrize(
        "junk",
        [b"\n", b"junk\n", b"[]\n", b'{"seq": "1"}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"],
    )
    def test_a_line_put_in(self, sealed: AuditLog, junk: bytes) -> None:
        lines = sealed.lines()
        sealed.write([*lines[:3], junk, *lines[3:]])
        report = sealed.verify()
        assert kinds(report) == ["line_unreadable"]
        assert report.findings[0].where == "Line 4 of the log file"

    def test_a_forged_line_put_in(self, sealed: AuditLog) -> None:
        lines = sealed.lines()
        forged = lines[2].replace(b'"actor": ""', b'"actor": "x"')
        sealed.write([*lines[:6], forged, *lines[6:]])
        report = sealed.verify()
        assert kinds(report) == ["line_changed"]
        assert report.findings[0].where == "Line 7 of the log file"

    def test_a_line_of_an_event_that_never_was(self, sealed: AuditLog) -> None:
        lines = sealed.lines()
        forged = lines[0].replace(b'"seq": 1,', b'"seq": 99,')
        sealed.write([*lines[:2], forged, *lines[2:]])
        report = sealed.verify()
        assert kinds(report) == ["log_ahead"]
        assert report.findings[0].where == "Event 99"

    def test_lines_swapped(self, sealed: AuditLog) -> None:
        lines = sealed.lines()
        lines[3], lines[4] = lines[4], lines[3]
        sealed.write(lines)
        assert "line_missing" in kinds(sealed.verify())

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
