"""Encrypted archives: only who holds the private key can read them."""

from __future__ import annotations

import io
import stat
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.recovery.archives import Backup
from tests.recovery.contents import everything, wipe

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_after_migrate")]


def identity(path: Path) -> str:
    """Create a private key; return the public one."""
    printed = io.StringIO()
    call_command("backup", str(path), "--new-identity", stdout=printed)
    return printed.getvalue().strip()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "backup.identity"


@pytest.fixture
def encrypted(full: Path, key: Path, tmp_path: Path) -> Path:
    path = tmp_path / "all.zip.age"
    call_command("backup", str(path), "--recipient", identity(key), verbosity=0)
    return path


def test_its_holder_restores_it(backup: Backup, encrypted: Path, key: Path, settings: Any) -> None:
    before = sorted(settings.DATA_DIR.iterdir())
    call_command("backup", str(encrypted), "--verify", "--identity", str(key))
    wipe()
    call_command("restore", str(encrypted), "--identity", str(key), "--without-keys")
    assert everything() == backup.rows
    assert sorted(settings.DATA_DIR.iterdir()) == before, "nothing plain is left"


def test_nothing_in_it_can_be_read(encrypted: Path, key: Path) -> None:
    content = encrypted.read_bytes()
    assert content.startswith(b"age-encryption.org/v1\n")
    for plain in (b"manifest.json", b"PK\x03\x04", b"sessions_app_message", b"audit.key"):
        assert plain not in content
    assert stat.S_IMODE(encrypted.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_without_the_key_it_is_refused(encrypted: Path, key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.identity"
    identity(other)
    empty = tmp_path / "empty"
    empty.touch()
    for options, says in (
        ([], "is encrypted: name the private key"),
        (["--identity", str(other)], "can't be decrypted with"),
        (["--identity", str(tmp_path / "none")], "can't be read"),
        (["--identity", str(tmp_path)], "can't be read"),
        (["--identity", str(empty)], "holds no private key"),
        (["--identity", str(encrypted)], "can't be read|holds no private key"),
    ):
        for arguments in (("backup", str(encrypted), "--verify"), ("restore", str(encrypted))):
            with pytest.raises(CommandError, match=says):
                call_command(*arguments, *options)


def test_a_recipient_that_is_none_is_told_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    for word in ("age1nobody", "ssh-ed25519 AAAA", ""):
        with pytest.raises(CommandError, match="is no recipient"):
            call_command("backup", str(path), "--recipient", word)
    assert not path.exists()


def test_an_identity_never_replaces_a_file(key: Path) -> None:
    identity(key)
    before = key.read_bytes()
    with pytest.raises(CommandError, match="File exists"):
        identity(key)
    assert key.read_bytes() == before
