"""The keys of a database, which sign its logins and its audit log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

KEY_FILES = ("secret.key", "audit.key")


def keys_read(data_dir: Path) -> dict[str, bytes]:
    """Return the keys in ``data_dir`` by file name, without keys from the environment."""
    found = {name: data_dir / name for name in KEY_FILES}
    return {name: path.read_bytes() for name, path in found.items() if path.is_file()}


def keys_write(data_dir: Path, keys: Mapping[str, bytes]) -> None:
    """Replace the keys of the empty database with those of the backup."""
    for name in KEY_FILES:
        if name in keys:
            fresh = data_dir / f".{name}.{os.getpid()}"
            fresh.touch(mode=0o600)
            with fresh.open("wb") as file:
                file.write(keys[name])
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(data_dir / name)
