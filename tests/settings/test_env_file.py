"""The file .env that `make run` writes once."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest
from django.core.management import CommandError

from memoryproject.launch_preparation import write_env_file


def test_it_is_private_has_fresh_secrets_and_is_never_written_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for file in (first, second):
        write_env_file(file)
        assert file.stat().st_mode & 0o777 == 0o600
        assert "ENABLE_MEMORY_SYSTEM=true" in file.read_text()
    assert first.read_text() != second.read_text()

    first.write_text("MINE=1")
    write_env_file(first)
    assert first.read_text() == "MINE=1"


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "missing" / ".env"
    with pytest.raises(CommandError, match="can't be written") as refused:
        write_env_file(file)
    assert str(file) in str(refused.value)


def test_a_part_of_it_is_not_left_behind(tmp_path: Path) -> None:
    """A full disk: here, files may have ten bytes."""
    file = tmp_path / ".env"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(CommandError, match="can't be written"):
            write_env_file(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert not file.exists()
