"""Whatever config.json holds: settings that a check can judge, or an error that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from memoryproject.environment import CONFIG_KEYS, Environment, Note, read_config_file
from tests.fuzz.damage import budget, damaged
from tests.settings.test_environment import EXAMPLE, WRONG


def wrapped(value: Any, keys: str) -> Any:
    for key in reversed(keys.split(".")):
        value = {key: value}
    return value


WHOLE: list[Any] = [EXAMPLE, *(wrapped("x", keys) for keys in CONFIG_KEYS.values())]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


@budget(150)
@given(raw=damaged(WHOLE))
@example(raw=b"[" * 100_000)
@example(raw=b'{"memory": ' * 100_000)
@example(raw=b"\xef\xbb\xbf" + json.dumps(EXAMPLE).encode())
@example(raw=b"\xef\xbb\xbf")
@example(raw=b"\xff\xfe{\x00}\x00")
@example(raw=b'{"godfather_phone": "\\ud83d"}')
def test_any_file_gives_settings_or_one_error(file: Path, raw: bytes) -> None:
    file.write_bytes(raw)
    notes: list[Note] = []
    found = read_config_file(file, notes)
    assert set(found) <= set(CONFIG_KEYS)
    assert all(note.level == "ERROR" and str(file) in str(note.text) for note in notes)
    assert not (found and notes)
    for setting in WRONG.values():
        for value in found.values():
            settings = Environment(values={}, config={"X": value})
            settings.read("X", setting)
            assert settings.errors == []
            for note in settings.notes:
                str(note.text).encode("utf-8", "backslashreplace")
