"""Statements of SQL in a file beside a module."""

from pathlib import Path

from memoryproject.foundation.tables import read_statements

FILE = """-- What the file is about.

-- name: since
WHERE at > %s

-- name: counts
-- Why it counts.
SELECT count(*) FROM $rows $since AND chat = $chat
"""


def test_a_statement_takes_values_and_earlier_statements(tmp_path: Path) -> None:
    (tmp_path / "marks.sql").write_text(FILE, encoding="utf-8")
    found = read_statements(str(tmp_path / "marks.py"), rows="notes")
    assert list(found) == ["since", "counts"]
    # What nobody gave a value is left for the module.
    comment, *statement = found["counts"].splitlines()
    assert comment == "-- Why it counts."
    assert " ".join(" ".join(statement).split()) == (
        "SELECT count(*) FROM notes WHERE at > %s AND chat = $chat"
    )
