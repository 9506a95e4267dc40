"""A Green API webhook body: one event, with the instance that it is for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Ignored
from memoryproject.foundation.integrations.whatsapp.lenient import (
    fingerprint,
    mapping,
    moment,
    phone_digits,
    text_of,
)

PROVIDER = "green"

# Green API's replacement for content that it could not decode.
_ERROR_MARKER = re.compile(r"\s*\{\{SWE[0-9]{3}\}\}\s*")


@dataclass(frozen=True)
class Body:
    """One webhook body and the time when it arrived."""

    raw: dict[str, Any]
    received_at: datetime

    @property
    def type(self) -> str:
        return text_of(self.raw.get("typeWebhook"))

    @property
    def message_id(self) -> str:
        return text_of(self.raw.get("idMessage"))

    @property
    def number_id(self) -> str:
        return text_of(mapping(self.raw.get("instanceData")).get("idInstance"))

    @property
    def wid(self) -> str:
        """Our own account, as ``…@c.us``; empty while the instance is not authorised."""
        return text_of(mapping(self.raw.get("instanceData")).get("wid"))

    @property
    def business_number(self) -> str:
        return phone_digits(self.wid.partition("@")[0])

    @property
    def timestamp(self) -> datetime:
        return moment(self.raw.get("timestamp"), self.received_at)

    def head(self, key: str = "") -> dict[str, Any]:
        """Return the fields that every event has. Without an own key, the content is the key."""
        fallback = f"{self.type[:40] or 'event'}:{fingerprint(self.raw)}"
        return {
            "provider": PROVIDER,
            "number_id": self.number_id,
            "delivery_key": f"{self.number_id}:{key or fallback}",
            "raw": self.raw,
        }

    def ignored(self, reason: str, key: str = "") -> Ignored:
        return Ignored(**self.head(key), reason=reason)


def is_error_marker(text: str) -> bool:
    """Return whether the text is a marker such as ``{{SWE001}}``, which is never content."""
    return _ERROR_MARKER.fullmatch(text) is not None


def real_text(value: Any) -> str:
    """Return the text, or an empty one if it is an error marker."""
    text = text_of(value)
    return "" if is_error_marker(text) else text
