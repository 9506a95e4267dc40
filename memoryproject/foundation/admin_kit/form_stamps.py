"""What stood in a form when it was opened, so that nobody overwrites unseen what somebody else
saved meanwhile."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from typing import Any


def stamp_of(values: Mapping[str, Any]) -> str:
    """A digest of each value, by the fields' names, for a hidden input."""
    return json.dumps({name: digest_of(value) for name, value in values.items()})


def read_stamp(text: str, names: Collection[str]) -> Mapping[str, str]:
    """The digests by name. Raises ValueError where it is no stamp of just these fields."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict) or set(read) != set(names):
        raise ValueError("This is no stamp of these fields.")
    return {name: str(value) for name, value in read.items()}


def digest_of(value: Any) -> str:
    """Of a plain value as it stands in a form: with a browser's line ends, and whole seconds."""
    if isinstance(value, str):
        value = value.replace("\r\n", "\n")
    elif isinstance(value, datetime):
        value = value.astimezone(timezone.utc).replace(microsecond=0).isoformat()
    plain = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()[:20]
