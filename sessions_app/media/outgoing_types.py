"""Tell by its content whether a file is one that WhatsApp takes, and of which kind."""

import codecs
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

# Meta, "Supported media types". The first extension is given to a file that has another one.
EXTENSIONS: Mapping[str, Sequence[str]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
_BY_EXTENSION = {each: name for name, extensions in EXTENSIONS.items() for each in extensions}
# Files of older office programs begin alike: their names tell them apart.
_OLD_OFFICE = ("doc", "xls", "ppt")
_OLD_START = bytes.fromhex("d0cf11e0a1b11ae1")
_PARTS = {
    "word/document.xml": _BY_EXTENSION["docx"],
    "xl/workbook.xml": _BY_EXTENSION["xlsx"],
    "ppt/presentation.xml": _BY_EXTENSION["pptx"],
}
# The first page of an Ogg file with one channel of Opus: the only sound in it that WhatsApp takes.
_OPUS = re.compile(rb"OggS.{24}OpusHead", re.DOTALL)
_TEXT_BLOCK = 64 * 1024
MAX_NAME = 100
_UNFIT = re.compile(r'[\x00-\x1f\x7f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069/\\:"]+')


@dataclass(frozen=True)
class OutgoingType:
    """``kind``: image, video, audio or document, as WhatsApp shows it."""

    kind: str
    content_type: str


def outgoing_type(file: BinaryIO, name: str) -> OutgoingType | None:
    """Return the type of a file by its content; None for one that WhatsApp doesn't take.

    The name decides only among types that begin alike. The file is read from its beginning.
    """
    file.seek(0)
    head = file.read(64)
    extension = name.rpartition(".")[2].lower()
    found = type_of(head[:HEAD], kind="audio" if extension == "m4a" else "")
    if found == "application/zip":
        found = _office_type(file)
    elif found == "audio/ogg" and not _OPUS.match(head):
        return None
    elif not found and head.startswith(_OLD_START):
        found = _BY_EXTENSION[extension] if extension in _OLD_OFFICE else ""
    elif not found and _is_text(file):
        found = "text/plain"
    if found not in EXTENSIONS:
        return None
    kind = found.partition("/")[0]
    return OutgoingType(kind if kind in ("image", "video", "audio") else "document", found)


def sent_name(name: str, content_type: str) -> str:
    """Return the name under which a file is sent; its extension fits the type."""
    cleaned = _UNFIT.sub(" ", name.rpartition("/")[2]).strip(" .")
    stem, dot, extension = cleaned.rpartition(".")
    fitting = EXTENSIONS[content_type]
    if not dot or extension.lower() not in fitting:
        stem, extension = cleaned, fitting[0]
    return f"{stem[:MAX_NAME].strip() or 'file'}.{extension.lower()}"


def _office_type(file: BinaryIO) -> str:
    """Return the type of an archive, "" for one that isn't an office program's document."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        return ""
    found = [content_type for part, content_type in _PARTS.items() if part in names]
    return found[0] if found and "[Content_Types].xml" in names else ""


def _is_text(file: BinaryIO) -> bool:
    """Return whether the whole file is text in UTF-8."""
    file.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while block := file.read(_TEXT_BLOCK):
            if "\x00" in decoder.decode(block):
                return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


# Tell what a file is by its first bytes; only these types are kept.

HEAD = 32

_STARTS = (
    (r"\xff\xd8\xff", "image/jpeg"),
    (r"\x89PNG\r\n\x1a\n", "image/png"),
    (r"GIF8[79]a", "image/gif"),
    (r"RIFF....WEBP", "image/webp"),
    (r"RIFF....WAVE", "audio/wav"),
    (r"OggS", "audio/ogg"),
    (r"ID3|\xff[\xfb\xf3\xf2]", "audio/mpeg"),
    (r"#!AMR", "audio/amr"),
    (r"\xff[\xf1\xf9]", "audio/aac"),
    (r"....ftypM4A", "audio/mp4"),
    (r"....ftyp3g", "video/3gpp"),
    (r"....ftyp(isom|iso2|iso4|iso5|iso6|mp41|mp42|avc1|MSNV|dash)", "video/mp4"),
    (r"%PDF-", "application/pdf"),
    # Documents of office programs are archives.
    (r"PK\x03\x04", "application/zip"),
)
_PATTERNS = tuple((re.compile(pattern, re.DOTALL), name) for pattern, name in _STARTS)


def type_of(head: bytes, *, kind: str) -> str:
    """Return the content type, or "" for a type that isn't kept.

    ``kind`` is the message's: recordings come as MP4, which says nothing about a picture in it.
    """
    # One character a byte.
    first_bytes = head.decode("latin-1")
    for pattern, name in _PATTERNS:
        if pattern.match(first_bytes):
            is_heard = kind in ("voice", "audio") and name == "video/mp4"
            return "audio/mp4" if is_heard else name
    return ""


def is_shown(content_type: str) -> bool:
    """Return whether a browser shows or plays it in its place; anything else is downloaded."""
    return content_type.startswith(("image/", "audio/", "video/"))
