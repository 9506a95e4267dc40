"""What a memory said when a form about it was opened, so that nobody overwrites unseen what
somebody else saved meanwhile."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from memories_app.models import Memory

STAMPED = ("content", "visibility", "type", "category", "tags", "pinned", "expires_at")


def stamp_of(memory: Memory) -> str:
    """A hash of each field that a form changes, for a hidden input."""
    return json.dumps({name: digest_of(getattr(memory, name)) for name in STAMPED})


def read_stamp(text: str) -> Mapping[str, str]:
    """Raises ValueError where it is no stamp of ours."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict) or set(read) != set(STAMPED):
        raise ValueError("This is no stamp of a memory.")
    return {name: str(value) for name, value in read.items()}


def digest_of(value: Any) -> str:
    """Of a value as it stands in a form: with a browser's line ends, and whole seconds."""
    if isinstance(value, str):
        value = value.replace("\r\n", "\n")
    elif isinstance(value, datetime):
        value = value.astimezone(timezone.utc).replace(microsecond=0).isoformat()
    plain = json.dumps(value, sort_keys=True)
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()[:20]
