"""Read the folder of sessions of seed 002: list its files and load their content.

    DIR/{session_id}.json           active sessions
    DIR/expired/{session_id}.json   and DIR/archived/
    DIR/messages/{message_id}.json

Nothing outside DIR is read, wherever a symbolic link leads.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

MAX_BYTES = 10 * 1024 * 1024
MESSAGES = "messages"
# By the status of the sessions in it.
SESSION_FOLDERS = {"active": ".", "expired": "expired", "archived": "archived"}


class LegacyFolder:
    """The folder. Raises FolderError if it doesn't exist or can't be read."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            what = "is not a folder" if root.exists() else "is not there"
            raise FolderError(
                f"{shown(str(root))} {what}: give the folder of sessions.", usage=True
            )
        self.root = Path(os.path.realpath(root))
        if not self._names("."):
            raise FolderError(f"{shown(str(root))} is empty: it has no session files.")

    def session_files(self) -> Iterator[tuple[Path, str]]:
        """Yield the session files with the status that their place gives them, sorted."""
        for status, folder in SESSION_FOLDERS.items():
            for name in self._names(folder):
                if name.endswith(".json"):
                    yield self.root / folder / name, status

    def message_names(self) -> list[str]:
        """Return the names of all message files, without extension."""
        return [
            name.removesuffix(".json") for name in self._names(MESSAGES) if name.endswith(".json")
        ]

    def message_path(self, name: str) -> Path:
        """Return the path of a message's file.

        Raises LegacyMissing if the id can't be a file name.
        """
        is_plain = name.isprintable() and not {"/", "\\"}.intersection(name)
        if not name or name.startswith(".") or not is_plain or len(name.encode()) > 200:
            raise LegacyMissing("no file can have this name")
        return self.root / MESSAGES / f"{name}.json"

    def read(self, path: Path) -> Any:
        """Return a file's JSON document. Raises LegacyError; LegacyMissing if it doesn't exist."""
        try:
            text = self._bytes(path).decode("utf-8-sig")
        except FileNotFoundError as error:
            raise LegacyMissing("the file is not there") from error
        except OSError as error:
            raise LegacyError(f"the file can't be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise LegacyError(f"not UTF-8 at byte {error.start}") from error
        try:
            return json.loads(text, parse_constant=_no_number)
        except json.JSONDecodeError as error:
            raise LegacyError(f"not JSON: line {error.lineno}, column {error.colno}") from error
        except RecursionError as error:
            raise LegacyError("not usable JSON: nested too deep") from error
        except ValueError as error:
            raise LegacyError("not usable JSON: a number has too many digits") from error

    def has_file(self, path: str) -> bool:
        """Return whether a path in a message leads to a file.

        The path is absolute, or relative to this folder or to one of the two above it, where
        the old program ran. Nothing is opened.
        """
        bases = (self.root, self.root.parent, self.root.parent.parent)
        try:
            return any((base / path).is_file() for base in bases)
        except (OSError, ValueError):
            return False

    def label(self, path: Path) -> str:
        """Return the file's name for logs and reports."""
        return shown(str(path.relative_to(self.root)))

    def message_label(self, name: str) -> str:
        """Return the name of a message's file, which may not exist, for logs and reports."""
        return shown(f"{MESSAGES}/{name}.json")

    def _names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._inside(self.root / folder)))
        except FileNotFoundError:
            return []
        except OSError as error:
            where = shown(str(self.root / folder))
            raise FolderError(f"{where} can't be read: {error.strerror}.") from error

    def _inside(self, folder: Path) -> Path:
        """Return the path. Raises FolderError if a link leads out of the folder."""
        if not Path(os.path.realpath(folder)).is_relative_to(self.root):
            raise FolderError(f"{shown(str(folder))} is a link out of the folder: copy it in.")
        return folder

    def _bytes(self, path: Path) -> bytes:
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root):
            raise LegacyError("a link out of the folder")
        if real.exists() and not real.is_file():
            raise LegacyError("not a file")
        with real.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise LegacyError(f"larger than {MAX_BYTES // 1024 // 1024} MB")
        return content


def shown(text: str) -> str:
    """Return a printable form of a name, whatever bytes it contains."""
    return text if text.isprintable() else ascii(text)


def _no_number(name: str) -> None:
    raise LegacyError(f"not JSON: {name} is no number")


# Errors of a folder of sessions and of a file in it.


class LegacyError(Exception):
    """A file or a record can't be used.

    The text names the field and the reason, never the value.
    """


class LegacyMissing(LegacyError):
    """The file doesn't exist."""


class FolderError(Exception):
    """The folder can't be used. ``usage``: another one was meant."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage


# Ids of old files as UUIDs: a UUID stays unchanged, any other id maps to a fixed one.

NAMESPACE = UUID("6f1d3a52-5b3e-5a0c-9d63-2a8f0e6b7c14")
UUID_FORM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}", re.IGNORECASE
)
# xxx@c.us for a person, xxx@g.us for a group (ERR-SESSION-007), and people without a number.
CHAT_FORM = re.compile(r"[^\s@]+@(c\.us|g\.us|bsuid)", re.IGNORECASE)


def is_uuid(text: str) -> bool:
    return UUID_FORM.fullmatch(text) is not None


def is_whatsapp_chat(text: str) -> bool:
    return CHAT_FORM.fullmatch(text) is not None


def session_uuid(original: str) -> UUID:
    if is_uuid(original):
        return UUID(original)
    return uuid.uuid5(NAMESPACE, f"session:{original}")


def message_uuid(original: str, session_id: UUID) -> UUID:
    """Return the message's UUID.

    Ids such as "1" are unique in their session only, so the session's id is part of the input.
    """
    if is_uuid(original):
        return UUID(original)
    return uuid.uuid5(NAMESPACE, f"message:{session_id}:{original}")
