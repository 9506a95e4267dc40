"""The manifest of an archive, independent of Django.

An archive is a zip file with the rows of each table in the format of PostgreSQL's COPY, the keys,
the files of messages where they are wanted, a manifest with a checksum for each file, and the
manifest's signature. It may be encrypted as a whole.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

FORMAT = 2
MANIFEST = "manifest.json"
BLOCK = 1024 * 1024

# The errors that zipfile raises for damaged files, in addition to its own BadZipFile.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    KeyError,
)


class ArchiveError(Exception):
    """The archive can't be written or trusted; the text states the reason."""


@dataclass(frozen=True)
class ArchiveAccess:
    """The keys and the folder with which an archive is read.

    ``key`` is the key of the signature. ``trust``: accept archives without a valid signature.
    ``identity``: the file of private keys for encrypted archives, which are decrypted in
    ``scratch``.
    """

    key: str
    scratch: Path
    trust: bool = False
    identity: Path | None = None


@dataclass(frozen=True)
class Member:
    """A file of the archive with its uncompressed size and its checksum.

    ``rows`` and ``columns`` are those of a table.
    """

    name: str
    size: int
    sha256: str
    rows: int = 0
    columns: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Manifest:
    """The contents of the archive.

    ``sequences``: by name, the last value and whether it was used. ``migrations``: the applied
    ones as "app.name". ``media``: the files of messages, by their names.
    """

    product_version: str
    created_at: str
    postgres: str
    migrations: list[str]
    tables: dict[str, Member]
    sequences: dict[str, tuple[int, bool]]
    keys: dict[str, Member] = field(default_factory=dict)
    media: dict[str, Member] = field(default_factory=dict)

    @property
    def members(self) -> list[Member]:
        """Return all files of the archive besides the manifest and its signature."""
        return [*self.tables.values(), *self.keys.values(), *self.media.values()]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


def table_member(table: str) -> str:
    return f"tables/{table}.copy"


def key_member(key: str) -> str:
    return f"keys/{key}"


def media_member(name: str) -> str:
    return f"media/{name}"


def manifest_document(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as a JSON object; of a file of a message only size and checksum."""
    document = {"format": FORMAT, **asdict(manifest)}
    document["media"] = {name: [each.size, each.sha256] for name, each in manifest.media.items()}
    if not document["media"]:
        del document["media"]
    return document


def manifest_parsed(raw: dict[str, Any]) -> Manifest:
    """Return the manifest of a JSON object. Raises KeyError, TypeError and ValueError."""
    tables = {name: Member(**member) for name, member in raw.pop("tables").items()}
    keys = {name: Member(**member) for name, member in raw.pop("keys").items()}
    media = {
        str(UUID(name)): Member(media_member(name), size, sha256)
        for name, (size, sha256) in raw.pop("media", {}).items()
    }
    sequences = {
        name: (int(last), bool(used)) for name, (last, used) in raw.pop("sequences").items()
    }
    return Manifest(**raw, tables=tables, keys=keys, media=media, sequences=sequences)
