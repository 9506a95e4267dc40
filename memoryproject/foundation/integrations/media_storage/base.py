"""The storage of the files of messages, over one of Django's storages."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, ClassVar

from django.core.files.base import File
from django.core.files.storage import Storage


class MediaStorageError(OSError):
    """A storage on another computer doesn't answer, or refuses. The text names no key.

    ``sickness`` and ``sickness_text``: see outside_services.guards.SickError.
    """

    def __init__(self, text: str, *, sickness: int = 0, sickness_text: str = "") -> None:
        super().__init__(text)
        self.sickness = sickness
        self.sickness_text = sickness_text


class MediaStorage(ABC):
    """Files by name. Every method raises OSError; over a network it is MediaStorageError.

    ``storage``: Django's, which holds them. ``incoming``: the folder of this computer in which a
    file lies while it is written. ``is_remote``: whether it is reached over a network.
    """

    is_remote: ClassVar[bool] = False

    def __init__(self, storage: Storage, *, incoming: Path) -> None:
        self.storage = storage
        self.incoming = incoming

    def put(self, name: str, path: Path) -> None:
        """Keep the file at ``path``, which may be gone then; one of this name is replaced.

        There is never a part of it under the name.
        """
        with path.open("rb") as file:
            self.storage.save(name, _OnDisk(file, name=str(path)))

    def has(self, name: str) -> bool:
        """Return whether there is such a file."""
        return self.storage.exists(name)

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """Open the file; it can be read from any place. Raises FileNotFoundError."""

    @abstractmethod
    def remove(self, names: Collection[str]) -> None:
        """Remove the files for good, those that are there."""

    @abstractmethod
    def lying(self, *, before: datetime) -> Iterator[str]:
        """Yield the names of the files that were put before a time."""


class _OnDisk(File):  # type: ignore[type-arg]
    """A file that a storage on the same disk moves instead of copying."""

    def temporary_file_path(self) -> str:
        """Return its path, as Django's storages ask for it."""
        return str(self.name)
