"""The content of a message, and texts for content that isn't text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.integrations.whatsapp.lenient import (
    Fields,
    compact,
    number_shown,
    text_of,
)


@dataclass(frozen=True)
class Content:
    """The content of one message, in the form of InboundMessage."""

    kind: str
    text: str = ""
    media: Media | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def unsupported(provider_type: str, text: str = "", **metadata: Any) -> Content:
    """Return the content of a message that can't be read; the metadata states the reason."""
    details = compact(provider_type=provider_type, **metadata)
    return Content(kind="unsupported", text=text, metadata=details)


def location_content(*, name: str, address: str, place: Fields) -> Content | None:
    """Return a location in words: "Example HQ, 1 Example Way (37.46, -122.21)"; None if empty.

    ``place`` holds its latitude and longitude.
    """
    latitude, longitude = place.get("latitude"), place.get("longitude")
    coordinates = [number_shown(latitude), number_shown(longitude)]
    pin = f"({', '.join(coordinates)})" if all(coordinates) else ""
    named = ", ".join(part for part in (name, address) if part)
    if not (named or pin):
        return None
    details = compact(name=name, address=address, latitude=latitude, longitude=longitude)
    return Content(
        kind="location",
        text=f"{named or 'Location'} {pin}".strip(),
        metadata={"location": details},
    )


def contacts_content(cards: Iterable[tuple[str, list[str]]]) -> Content | None:
    """Return shared contacts in words: "Alice Example, +1 555-010-0456; Bob"; None if empty."""
    contacts = [(name, phones) for name, phones in cards if name or phones]
    if not contacts:
        return None
    return Content(
        kind="contacts",
        text="; ".join(", ".join([name, *phones] if name else phones) for name, phones in contacts),
        metadata={"contacts": [compact(name=name, phones=phones) for name, phones in contacts]},
    )


def vcard_person(vcard: str, name: str = "") -> tuple[str, list[str]]:
    """Return the name and phone numbers of a vCard; ``name`` overrides the card's own."""
    # A long line of a vCard continues in the next one, which starts with a blank.
    lines = re.sub(r"\r?\n[ \t]", "", vcard).splitlines()
    named = name
    phones: list[str] = []
    for line in lines:
        label, _, value = line.partition(":")
        key = label.split(";")[0].split(".")[-1].upper()
        if key == "FN" and not named:
            named = value.strip()
        if key == "TEL" and value.strip():
            phones.append(value.strip())
    return named, phones


def poll_content(question: str, options: Iterable[Fields]) -> Content | None:
    """Return a poll in words: "Which colour? green, red". None if it has no question."""
    names = [name for option in options if (name := option.text("optionName", "name"))]
    if not question:
        return None
    title = question if question.endswith(("?", ":", ".", "!")) else f"{question}:"
    return Content(
        kind="poll",
        text=f"{title} {', '.join(names)}" if names else question,
        metadata={"poll": compact(question=question, options=names)},
    )


def button_content(*, kind: str, title: str, **details: Any) -> Content | None:
    """Return a pressed button or chosen row; its text is the title. None if it has none."""
    shown = {key: text_of(value) for key, value in details.items()}
    if not title:
        return None
    return Content(kind=kind, text=title, metadata={"button": compact(title=title, **shown)})
