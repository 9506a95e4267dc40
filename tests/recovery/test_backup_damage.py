"""Archives that were changed, cut or are none: found, and nothing is changed by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sessions_app.backup.archive import ArchiveError
from sessions_app.backup.dependencies import archive_access
from tests.recovery.archives import tampered, verify
from tests.recovery.contents import everything

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_after_migrate")]

MESSAGES = "tables/sessions_app_message.copy"
MANIFEST = "manifest.json"
CHANGED = "was changed, or signed with another key"
ROWS_DIFFER = "sessions_app_message.copy has another checksum"
NO_TABLE = "sessions_app_message.copy is damaged"
STRANGER = "holds what no backup does"
KEY_DIFFERS = "audit.key has another checksum"
# The file that is changed, what becomes of it, what is said then, and what with --trust.
CHANGES: list[tuple[str, Callable[[bytes], bytes] | None, str, str]] = [
    (MESSAGES, lambda rows: rows.replace(b"plain", b"pla1n"), ROWS_DIFFER, ROWS_DIFFER),
    (MESSAGES, lambda rows: rows.partition(b"\n")[2], ROWS_DIFFER, ROWS_DIFFER),
    (MESSAGES, None, NO_TABLE, NO_TABLE),
    ("tables/../../evil", lambda _: b"", STRANGER, STRANGER),
    ("keys/audit.key", lambda _: b"mine", KEY_DIFFERS, KEY_DIFFERS),
    (MANIFEST, None, "is no backup", "is no backup"),
    (MANIFEST, lambda file: file[:-20], CHANGED, "manifest is damaged"),
    (MANIFEST, lambda _: b'{"format": 2, "tables": []}', CHANGED, "manifest is damaged"),
    (
        MANIFEST,
        lambda file: file.replace(b'"format": 2', b'"format": 9'),
        CHANGED,
        "made by another version",
    ),
]


@pytest.mark.parametrize(("file", "change", "says", "trusted"), CHANGES)
def test_a_changed_archive_is_refused_and_changes_nothing(
    archive: Path, file: str, change: Callable[[bytes], bytes] | None, says: str, trusted: str
) -> None:
    """Trust is no reason to take what is damaged."""

    def apply(files: dict[str, bytes]) -> None:
        content = files.pop(file, b"")
        if change is not None:
            files[file] = change(content)

    other = tampered(archive, apply)
    before = everything()
    for arguments in (("backup", str(other), "--verify"), ("restore", str(other))):
        with pytest.raises(CommandError, match=says):
            call_command(*arguments)
        with pytest.raises(CommandError, match=trusted):
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
