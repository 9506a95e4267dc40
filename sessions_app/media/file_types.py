"""Tell what a file is by its first bytes; only these types are kept."""

from __future__ import annotations

import re

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
