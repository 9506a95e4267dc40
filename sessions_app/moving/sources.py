"""The file, folder or Zip that is moved in. Nothing is unpacked to a disk by a name in it."""

import csv
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from memoryproject.foundation.integrations.whatsapp.base import MediaError, MediaSink, Recipient
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.moving.records import MoveError, Skipped

MEGABYTE = 1024 * 1024
# What is read as a whole; lines of JSON are read one by one.
MAX_TEXT = 128 * MEGABYTE
MAX_LINE = 8 * MEGABYTE
MAX_FILES = 100_000
# Text gets twenty times smaller in a Zip. What gets far smaller holds nothing.
BOMB_SIZE, BOMB_RATIO = 64 * MEGABYTE, 200
LINES = (".jsonl", ".ndjson")
DATA = (*LINES, ".json", ".csv")


class Source:
    """The names of files and their content. Raises MoveError for what can't be read.

    ``title``: the name of the file or folder itself.
    """

    def __init__(self, path: Path | BinaryIO, title: str = "") -> None:
        self._path = path
        self.title = title or (path.name if isinstance(path, Path) else "")
        self._zip: zipfile.ZipFile | None = None
        self._sizes: dict[str, int] = {}
        if isinstance(path, Path) and not path.exists():
            raise MoveError(_("%(name)s isn't there."), name=path)
        self._folder = path if isinstance(path, Path) and path.is_dir() else None
        try:
            if self._folder is None and zipfile.is_zipfile(path):
                self._zip = zipfile.ZipFile(path)
            self.names = self._names()
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
            raise MoveError(_("It can't be read: %(why)s"), why=error) from error
        if len(self.names) > MAX_FILES:
            raise MoveError(_("It holds more than %(n)s files: move it in by parts."), n=MAX_FILES)

    def _names(self) -> list[str]:
        if self._zip is not None:
            for entry in self._zip.infolist():
                if entry.file_size > max(BOMB_SIZE, BOMB_RATIO * entry.compress_size):
                    raise MoveError(_("%(name)s is too large."), name=entry.filename)
            return [one for one in self._zip.namelist() if _is_plain(one)]
        if self._folder is None:
            with self.open(self.title) as file:
                if file.read(4) == b"PK\x03\x04":
                    raise MoveError(_("%(name)s is a Zip that ends too early."), name=self.title)
            return [self.title]
        root = Path(os.path.realpath(self._folder))
        found = (each for each in sorted(root.rglob("*")) if each.is_file())
        # A link may lead out of the folder.
        inside = (each for each in found if Path(os.path.realpath(each)).is_relative_to(root))
        return [each.relative_to(root).as_posix() for each in inside]

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Open a file of this source. Raises MoveError."""
        try:
            if self._zip is not None:
                with self._zip.open(name) as file:
                    yield file  # type: ignore[misc]
            elif isinstance(self._path, Path):
                with (self._folder / name if self._folder else self._path).open("rb") as file:
                    yield file
            else:
                self._path.seek(0)
                yield self._path
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, KeyError, OSError) as error:
            # RuntimeError: it needs a password.
            raise MoveError(_("%(name)s can't be read: %(why)s"), name=name, why=error) from error

    def text(self, name: str) -> str:
        """Return the text of a file. Raises MoveError if it is none, or too large."""
        with self.open(name) as file:
            # What is read counts, not what the Zip says of itself.
            content = file.read(MAX_TEXT + 1)
        self._sizes[name] = len(content)
        if sum(self._sizes.values()) > MAX_TEXT:
            raise MoveError(_("It holds more text than %(n)s MB."), n=MAX_TEXT // MEGABYTE)
        is_wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        try:
            return content.decode("utf-16" if is_wide else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise MoveError(_("%(name)s isn't text in UTF-8."), name=name) from error

    def texts(self, *endings: str) -> list[str]:
        """Return the names of the files with one of these endings; of any, for a file alone."""
        if self._zip is None and self._folder is None:
            return self.names
        return [name for name in self.names if name.lower().endswith(endings)]

    def documents(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Yield each JSON document, line of JSON, or row of CSV, with its place.

        ``names``: of these files only. A line that can't be read is a Skipped.
        """
        for name in names or self.texts(*DATA):
            label = f"{name}: " if len(self.names) > 1 else ""
            if name.lower().endswith(LINES):
                yield from self._lines(name, label)
            elif name.lower().endswith(".csv"):
                yield from _rows(self.text(name), label)
            else:
                yield from _document(self.text(name), label)

    def _lines(self, name: str, label: str) -> Iterator[tuple[str, Any]]:
        with self.open(name) as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), start=1):
                if line.strip():
                    yield _line(line.removeprefix(b"\xef\xbb\xbf"), f"{label}line {number}")


def _is_plain(name: str) -> bool:
    """Return whether a Zip's entry is a file of its own: not a folder, nor a Mac's, nor outside."""
    path = PurePosixPath(name)
    hidden = path.is_absolute() or "\\" in name or ".." in path.parts or "__MACOSX" in path.parts
    return not name.endswith("/") and not hidden and not path.name.startswith("._")


def _line(line: str | bytes, place: str) -> tuple[str, Any]:
    try:
        return place, json.loads(line)
    except (ValueError, RecursionError) as error:
        at = getattr(error, "colno", 1)
        return place, Skipped(place, _("it is no JSON from character %(n)s on") % {"n": at}, True)


def _document(text: str, label: str) -> Iterator[tuple[str, Any]]:
    """Yield a document, or lines of JSON that aren't called so."""
    whole = _line(text, label or "the file")
    if not isinstance(whole[1], Skipped):
        yield label, whole[1]
        return
    lines = enumerate(text.split("\n"), start=1)
    found = [_line(line, f"{label}line {number}") for number, line in lines if line.strip()]
    # Where no line is JSON of its own, the file is one broken document.
    is_broken = all(isinstance(value, Skipped) for _place, value in found)
    yield from [whole] if is_broken else found


def _rows(text: str, label: str) -> Iterator[tuple[str, Any]]:
    csv.field_size_limit(MAX_TEXT)
    try:
        rows = csv.DictReader(io.StringIO(text, newline=""))
        for row in rows:
            yield f"{label}line {rows.line_num}", {**row}
    except csv.Error:
        place = f"{label}line {rows.line_num + 1}"
        yield place, Skipped(place, _("it is no CSV that can be read"), is_bad=True)


@dataclass(frozen=True)
class FromSource:
    """Hands out the file of a message from what is moved in, as a provider does its own."""

    source: Source
    name: str

    def fetch_media(
        self,
        *,
        media: Media,
        provider_message_id: str,
        chat: Recipient,
        into: MediaSink,
        max_bytes: int,
    ) -> None:
        try:
            with self.source.open(self.name) as file:
                # The sink refuses what is too large, whatever the Zip says of itself.
                shutil.copyfileobj(file, into)
        except MoveError as error:
            raise MediaError(str(error), code="gone", permanent=True) from error
