"""Files of messages in a folder of this computer, which nobody else reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, cast

from django.core.files.storage import FileSystemStorage

from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.process.private_folders import folder_sync


class FolderStorage(MediaStorage):
    """The files of one folder (mode 700), each of mode 600."""

    def __init__(self, folder: Path) -> None:
        files = FileSystemStorage(
            location=folder,
            file_permissions_mode=0o600,
            directory_permissions_mode=0o700,
            allow_overwrite=True,
        )
        super().__init__(files, incoming=folder)

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self.storage.open(name))

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            self.storage.delete(name)
        self._sync()

    def lying(self, *, before: datetime) -> Iterator[str]:
        for path in sorted(self.incoming.glob("*")):
            try:
                is_old = path.is_file() and path.stat().st_mtime < before.timestamp()
            except FileNotFoundError:
                continue
            if is_old:
                yield path.name

    def _sync(self) -> None:
        """Have the disk remember what was removed."""
        if self.incoming.is_dir():
            folder_sync(self.incoming)
