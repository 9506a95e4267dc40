"""One ``change`` of a Cloud API webhook body: its number, and its parts as separate bodies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Ignored
from memoryproject.foundation.integrations.whatsapp.lenient import (
    fingerprint,
    mapping,
    phone_digits,
    text_of,
)

PROVIDER = "cloud"


@dataclass(frozen=True)
class Change:
    """A change with its surrounding entry. ``value`` is empty where it was no object."""

    entry: dict[str, Any]
    field: str
    value: dict[str, Any]
    received_at: datetime

    @property
    def number_id(self) -> str:
        return text_of(mapping(self.value.get("metadata")).get("phone_number_id"))

    @property
    def business_number(self) -> str:
        """Our own number's digits."""
        return phone_digits(mapping(self.value.get("metadata")).get("display_phone_number"))

    def part(self, **parts: Any) -> dict[str, Any]:
        """Return a webhook body with only these parts of the value and our identification.

        It doesn't depend on the rest of the same delivery, because a retry may be batched
        differently.
        """
        names = ("messaging_product", "metadata")
        kept: dict[str, Any] = {name: self.value[name] for name in names if name in self.value}
        return self._body({**kept, **parts})

    def whole(self) -> dict[str, Any]:
        """Return a webhook body that holds this change alone."""
        return self._body(self.value)

    def _body(self, value: dict[str, Any]) -> dict[str, Any]:
        around = {key: self.entry[key] for key in ("id", "time") if key in self.entry}
        change = {"field": self.field, "value": value}
        return {
            "object": "whatsapp_business_account",
            "entry": [{**around, "changes": [change]}],
        }

    def head(self, raw: dict[str, Any], key: str = "") -> dict[str, Any]:
        """Return the fields that every event has. Without an own key, the content is the key."""
        number = self.number_id
        return {
            "provider": PROVIDER,
            "number_id": number,
            "delivery_key": f"{number}:{key}" if key else content_key(number, self.field, raw),
            "raw": raw,
        }

    def ignored(self, raw: dict[str, Any], reason: str, key: str = "") -> Ignored:
        return Ignored(**self.head(raw, key), reason=reason)


def content_key(number_id: str, label: str, raw: dict[str, Any]) -> str:
    """Return the delivery key of an object without an id, from its content and time alone."""
    return f"{number_id}:{label[:40] or 'event'}:{fingerprint(raw)}"


def unreadable(raw: dict[str, Any], reason: str) -> Ignored:
    """Return the event for a body, or a part of one, that can't be read."""
    return Ignored(
        provider=PROVIDER,
        number_id="",
        delivery_key=content_key("", "unreadable", raw),
        raw=raw,
        reason=reason,
    )
