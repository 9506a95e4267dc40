"""Archives that were changed, cut or are none: found, and nothing is changed by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sessions_app.backup.archive import ArchiveError
from sessions_app.backup.dependencies import archive_access
from sessions_app.backup.restore_checks import RestoreError
from tests.recovery.archives import restore, tampered, verify
from tests.recovery.contents import everything

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_after_migrate")]


MESSAGES = "tables/sessions_app_message.copy"


def one_byte_other(files: dict[str, bytes]) -> None:
    files[MESSAGES] = files[MESSAGES].replace(b"plain", b"pla1n")


def a_row_less(files: dict[str, bytes]) -> None:
    files[MESSAGES] = files[MESSAGES].partition(b"\n")[2]


def a_table_less(files: dict[str, bytes]) -> None:
    del files[MESSAGES]


def a_stranger(files: dict[str, bytes]) -> None:
    files["tables/../../evil"] = b""


def no_manifest(files: dict[str, bytes]) -> None:
    del files["manifest.json"]


def a_broken_manifest(files: dict[str, bytes]) -> None:
    files["manifest.json"] = files["manifest.json"][:-20]


def a_manifest_of_another_form(files: dict[str, bytes]) -> None:
    files["manifest.json"] = b'{"format": 2, "tables": []}'


def another_format(files: dict[str, bytes]) -> None:
    files["manifest.json"] = files["manifest.json"].replace(b'"format": 2', b'"format": 9')


def another_key(files: dict[str, bytes]) -> None:
    files["keys/audit.key"] = b"mine"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (one_byte_other, "sessions_app_message.copy has another checksum"),
        (a_row_less, "sessions_app_message.copy has another checksum"),
        (a_table_less, "sessions_app_message.copy is damaged"),
        (a_stranger, "holds what no backup does"),
        (no_manifest, "is no backup"),
        (a_broken_manifest, "was changed, or signed with another key"),
        (a_manifest_of_another_form, "was changed, or signed with another key"),
        (another_format, "was changed, or signed with another key"),
        (another_key, "audit.key has another checksum"),
    ],
)
def test_a_changed_archive_is_refused_and_changes_nothing(
    archive: Path, change: Callable[[dict[str, bytes]], None], says: str
) -> None:
    other = tampered(archive, change)
    before = everything()
    for arguments in (("backup", str(other), "--verify"), ("restore", str(other))):
        with pytest.raises(CommandError, match=says):
            call_command(*arguments)
    assert everything() == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (a_broken_manifest, "manifest is damaged"),
        (a_manifest_of_another_form, "manifest is damaged"),
        (another_format, "made by another version"),
        (one_byte_other, "sessions_app_message.copy has another checksum"),
    ],
)
def test_trust_is_no_reason_to_take_what_is_damaged(
    archive: Path, change: Callable[[dict[str, bytes]], None], says: str
) -> None:
    other = tampered(archive, change)
    before = everything()
    for arguments in (("backup", str(other), "--verify"), ("restore", str(other))):
        with pytest.raises(CommandError, match=says):
            call_command(*arguments, "--trust")
    assert everything() == before


def test_any_flipped_byte_is_found_or_harmless(archive: Path) -> None:
    """Every place that the archive's content depends on is covered by a checksum."""
    whole = archive.read_bytes()
    good = verify(archive, access=archive_access())
    for place in range(0, len(whole), max(len(whole) // 300, 1)):
        changed = bytearray(whole)
        changed[place] ^= 0x20
        archive.write_bytes(changed)
        try:
            found = verify(archive, access=archive_access())
        except ArchiveError:
            continue
        # The zip's own times and attributes say nothing about the content.
        assert {name: table.sha256 for name, table in found.tables.items()} == {
            name: table.sha256 for name, table in good.tables.items()
        }


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + b"\x00" * 100])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.zip"
    path.write_bytes(content)
    with pytest.raises(CommandError, match="is no backup"):
        call_command("restore", str(path))


def test_a_backup_of_other_migrations_is_refused_with_their_names(archive: Path) -> None:
    def another_migration(files: dict[str, bytes]) -> None:
        name = b'"sessions_app.0001_initial"'
        files["manifest.json"] = files["manifest.json"].replace(name, b'"sessions_app.0009_later"')

    other = tampered(archive, another_migration)
    with pytest.raises(RestoreError, match="only in the backup: sessions_app.0009_later"):
        restore(other, trust=True)
