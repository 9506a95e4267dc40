"""An archive of a full database, for the tests of backups."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.backup.archive import ArchiveAccess, ArchiveReader, Manifest
from sessions_app.backup.dependencies import archive_access
from sessions_app.backup.restore_checks import RestoreError, all_tables
from sessions_app.management.commands.restore import Restored, backup_restore
from sessions_app.media.dependencies import build_media_dependencies, media_request
from sessions_app.media.fetch import media_fetch
from sessions_app.models import MediaFile
from tests.recovery.contents import everything, fill, rows, wipe
from tests.world import CLIENT, World


@pytest.fixture
def as_after_migrate(transactional_db: None) -> Iterator[None]:
    """Each test ends as it began: other tests count on what `migrate` put there.

    What a test adds to other tables goes after each test with real transactions.
    """
    before = migrated()
    yield
    if migrated() != before:
        wipe()
        call_command("migrate", verbosity=0)


def migrated() -> list[list[tuple[Any, ...]]]:
    """The rows that `migrate` makes."""
    return [rows(table) for table in all_tables() if table.name in BY_MIGRATE]


BY_MIGRATE = {
    "auth_group",
    "auth_group_permissions",
    "auth_permission",
    "dashboard_defaultgrant",
    "django_content_type",
    "django_migrations",
}


@dataclass(frozen=True)
class Backup:
    """An archive of a full database, and what stood in that."""

    content: bytes
    rows: dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def backup(world: World, tmp_path: Path) -> Backup:
    def make() -> Backup:
        fill(world)
        path = tmp_path / "first.zip"
        call_command("backup", str(path), verbosity=0)
        found = Backup(path.read_bytes(), everything())
        path.unlink()
        wipe()
        return found

    if not _kept:
        _kept.append(make())
    return _kept[0]


_kept: list[Backup] = []


@pytest.fixture
def archive(backup: Backup, tmp_path: Path) -> Path:
    """The archive; the database is empty."""
    path = tmp_path / "all.zip"
    path.touch(mode=0o600)
    path.write_bytes(backup.content)
    return path


@pytest.fixture
def full(archive: Path) -> Path:
    """The archive; the database is as full as the one that it was made of."""
    restore(archive)
    return archive


def tampered(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The archive with other files in it, each with a valid CRC of its own."""
    with zipfile.ZipFile(path) as opened:
        files = {name: opened.read(name) for name in opened.namelist()}
    change(files)
    other = path.with_name("tampered.zip")
    with zipfile.ZipFile(other, "w") as written:
        for name, content in files.items():
            written.writestr(name, content)
    return other


def keep_file(world: World, kind: str, content: bytes) -> MediaFile:
    """A message with a file, which is fetched into the storage of the settings."""
    world.with_rules(fetch_media=media_request)
    world.provider.files[kind] = content
    world.say(CLIENT, "Look", kind=kind, media=Media(media_id=kind))
    dependencies = replace(build_media_dependencies(), providers={"cloud": world.provider})
    row = MediaFile.objects.latest("created_at")
    assert media_fetch(media_id=row.pk, dependencies=dependencies) == "stored"
    return row


def with_media(path: Path) -> Path:
    """A backup with the files; the database is empty afterwards."""
    call_command("backup", str(path), "--media", verbosity=0)
    wipe()
    return path


def fails_as_somebody_writes(path: Path, world: World, **changes: Any) -> None:
    """Restore while a message comes in: nothing is."""

    def somebody_writes(_older: object) -> None:
        world.with_rules(fetch_media=None)
        world.say(CLIENT, "Too early")

    with pytest.raises(RestoreError, match="holds data already"):
        restore(path, make_tables=somebody_writes, **changes)


def no_keys(_: Any) -> None:
    """The tests' own keys stay."""


def no_tables(_older: object) -> None:
    """They are there."""


def restore(path: Path, *, trust: bool = False, **changes: Any) -> Restored:
    """Keywords are those of backup_restore, which otherwise leaves keys and tables as they are."""
    rest: dict[str, Any] = {"make_tables": no_tables, "write_keys": no_keys, **changes}
    access = archive_access(trust=trust)
    return backup_restore(path=path, access=access, progress=lambda *_: None, **rest)


def verify(path: Path, *, access: ArchiveAccess) -> Manifest:
    """The manifest of an archive, each file of which was verified."""
    with ArchiveReader(path, access=access) as reader:
        reader.check_all()
        return reader.manifest
