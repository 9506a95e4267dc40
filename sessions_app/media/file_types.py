"""Tell what a file is by its first bytes; only these types are kept."""

from __future__ import annotations

import re

HEAD = 32

_STARTS = (
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"RIFF....WEBP", "image/webp"),
    (rb"RIFF....WAVE", "audio/wav"),
    (rb"OggS", "audio/ogg"),
    (rb"ID3|\xff[\xfb\xf3\xf2]", "audio/mpeg"),
    (rb"#!AMR", "audio/amr"),
    (rb"\xff[\xf1\xf9]", "audio/aac"),
    (rb"....ftypM4A", "audio/mp4"),
    (rb"....ftyp3g", "video/3gpp"),
    (rb"....ftyp(isom|iso2|iso4|iso5|iso6|mp41|mp42|avc1|MSNV|dash)", "video/mp4"),
    (rb"%PDF-", "application/pdf"),
    # Documents of office programs are archives.
    (rb"PK\x03\x04", "application/zip"),
)
_PATTERNS = tuple((re.compile(start, re.DOTALL), name) for start, name in _STARTS)


def type_of(head: bytes, *, kind: str) -> str:
    """Return the content type, or "" for a type that isn't kept.

    ``kind`` is the message's: recordings come as MP4, which says nothing about a picture in it.
    """
    for pattern, name in _PATTERNS:
        if pattern.match(head):
            is_heard = kind in ("voice", "audio") and name == "video/mp4"
            return "audio/mp4" if is_heard else name
    return ""


def is_shown(content_type: str) -> bool:
    """Return whether a browser shows or plays it in its place; anything else is downloaded."""
    return content_type.startswith(("image/", "audio/", "video/"))
