"""A finished file gets its name, and no other file loses it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from sessions_app.backup.archive_writer import Link, name_file


def refusing(number: int) -> Link:
    """A file system that answers every link with this error."""

    def link(_temporary: Path, _path: Path) -> None:
        raise OSError(number, os.strerror(number))

    return link


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    path = tmp_path / ".all.zip.part"
    path.touch(mode=0o600)
    path.write_bytes(b"archive")
    return path


@pytest.mark.parametrize(
    "link", [os.link, refusing(errno.EPERM), refusing(errno.ENOTSUP)], ids=["", "FAT", "network"]
)
def test_the_file_is_there_for_its_owner_alone(temporary: Path, link: Link) -> None:
    path = temporary.with_name("all.zip")
    name_file(temporary, path, link=link)
    assert path.read_bytes() == b"archive"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("link", [os.link, refusing(errno.EPERM)], ids=["", "FAT"])
def test_a_file_that_came_to_be_there_meanwhile_stays(temporary: Path, link: Link) -> None:
    path = temporary.with_name("all.zip")
    path.write_bytes(b"somebody's")
    with pytest.raises(FileExistsError):
        name_file(temporary, path, link=link)
    assert path.read_bytes() == b"somebody's"


def test_other_errors_are_errors(temporary: Path) -> None:
    path = temporary.with_name("all.zip")
    with pytest.raises(OSError, match="No space left"):
        name_file(temporary, path, link=refusing(errno.ENOSPC))
    assert not path.exists()


def test_a_name_that_cannot_be_kept_is_given_up(temporary: Path) -> None:
    path = temporary.with_name("all.zip")
    temporary.unlink()
    with pytest.raises(FileNotFoundError):
        name_file(temporary, path, link=refusing(errno.EPERM))
    assert not path.exists()
