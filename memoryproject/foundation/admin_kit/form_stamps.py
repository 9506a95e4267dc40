"""Stamps of a form's values at the time it was opened, to detect changes by others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from typing import Any


def stamp_of(values: Mapping[str, Any]) -> str:
    """Return a digest of each value, by field name, for a hidden input."""
    return json.dumps({name: digest_of(value) for name, value in values.items()})


def read_stamp(text: str, names: Collection[str]) -> Mapping[str, str]:
    """Return the digests by name. Raises ValueError if it is no stamp of exactly these fields."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict) or set(read) != set(names):
        raise ValueError("This is no stamp of these fields.")
    return {name: str(value) for name, value in read.items()}


def digest_of(value: Any) -> str:
    """Return the digest of a plain form value, with browser line ends and whole seconds."""
    if isinstance(value, str):
        value = value.replace("\r\n", "\n")
    elif isinstance(value, datetime):
        value = value.astimezone(timezone.utc).replace(microsecond=0).isoformat()
    plain = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()[:20]
