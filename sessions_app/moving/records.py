"""The neutral records that every reader of another product's export gives, and their values."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from django.conf import settings
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.timezone import now
from django.utils.translation import gettext as _

from memoryproject.foundation.integrations.lenient import storable
from memoryproject.foundation.integrations.whatsapp.events import InboundMessage, Media, Party
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    PERSON_DOMAIN,
    outside_chat,
)
from memoryproject.foundation.text.phone_numbers import number_meant
from sessions_app.conversations.chat_addresses import party_of
from sessions_app.models.chats import Provider
from sessions_app.models.messages import BY_PHONE, IMPORTED

# The clock of the other product may be ahead of ours.
CLOCK_SLACK = timedelta(days=1)
EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Later numbers are milliseconds.
_LAST_SECOND = 4_102_444_800


class MoveError(Exception):
    """The file can't be moved in as it was asked. The text says what to do.

    ``about``: the option that has to be given, as import_from names it; ``text`` is without it.
    """

    def __init__(self, text: Any, about: str = "", **values: Any) -> None:
        self.about, self.text = about, text % values if values else text
        super().__init__(f"{self.text} (--{about})" if about else self.text)


@dataclass(frozen=True)
class Said:
    """A message. ``chat``: the id of its chat, in any spelling; "" where the file doesn't tell.

    ``place``: where it is in the file. ``key``: its id in the other product, "" for none.
    ``media``: the name of its file in the same archive; ``kind``: as InboundMessage's.
    """

    chat: str
    is_ours: bool
    text: str
    at: datetime
    place: str
    sender: str = ""
    key: str = ""
    kind: str = "text"
    media: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """A memory: ``record`` has the fields of a line that memories_import reads.

    ``key``: its id in the other product, "" for none. ``unread``: times that can't be read.
    """

    record: dict[str, Any]
    place: str
    key: str = ""
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Skipped:
    """Something that doesn't come in. ``is_bad``: it should have, but can't be read."""

    place: str
    why: Any
    is_bad: bool = False


Found: TypeAlias = Said | Known | Skipped


@dataclass(frozen=True)
class Options:
    """``chat``: takes in everything; "": each record's own. ``business``: names that are ours."""

    chat: str = ""
    business: Sequence[str] = ()

    def is_business(self, name: str) -> bool:
        return plain_name(name) in map(plain_name, self.business)


# Direction marks and other characters that nobody sees, as phones write them around names.
INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def plain_name(name: str) -> str:
    """Return a name for comparing: as people see it, without WhatsApp's ~ of unknown ones."""
    return " ".join(INVISIBLE.sub("", name).replace("~", " ").split()).casefold()


def chat_named(name: str) -> str:
    """Return the id of the chat of a user of another product; "" for no name.

    A number is that person on WhatsApp, however it is written; any other name is a chat of its own.
    """
    shown = INVISIBLE.sub("", name).strip()
    if digits := number_named(shown):
        return f"{digits}@{PERSON_DOMAIN}"
    return outside_chat(shown) if shown else ""


def number_named(name: str) -> str:
    """Return the digits of the number that a name is, "" for any other name.

    One that begins with a single 0 is of the owner's country.
    """
    name = INVISIBLE.sub("", name)
    return number_meant(name, [each.partition("@")[0] for each in sorted(settings.GODFATHER_PHONE)])


def place_shown(place: str) -> str:
    """Return a place in the reader's language. Keys are made of places, which have one form."""
    if place == "the file":
        return _("the file")
    return re.sub(r"\bline (?=[0-9]+$)", f"{_('line')} ", place)


def moment(value: Any) -> datetime | None:
    """Return a time: ISO-8601 (UTC without a zone), a day, or seconds or milliseconds since 1970.

    None for anything else.
    """
    if isinstance(value, str) and re.fullmatch(r"[0-9]{9,13}(\.[0-9]{1,9})?", value):
        value = float(value)
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            seconds = value if value <= _LAST_SECOND else value / 1000
            return datetime.fromtimestamp(seconds, tz=timezone.utc)
        if not isinstance(value, str):
            return None
        # "2026-03-01 09:00:00 UTC" and "…+00" are PostgreSQL's and Rails's.
        text = re.sub(
            r" ?UTC$|(?<=[0-9])([+-][0-9]{2})$",
            lambda zone: (zone[1] or "+00") + ":00",
            value.strip(),
        )
        found = parse_datetime(text) if len(text) > len("2026-03-01") else None
        if found is None and (day := parse_date(value.strip())):
            found = datetime(day.year, day.month, day.day)
        return found and (found if found.tzinfo else found.replace(tzinfo=timezone.utc))
    except (ValueError, OverflowError, OSError):
        return None


def is_possible(at: datetime) -> bool:
    return EARLIEST <= at <= now() + CLOCK_SLACK


def said(at: datetime | None, place: str, **fields: Any) -> Found:
    """Return a message, or that it can't have its time."""
    if at is None:
        return Skipped(place, _("it has no time that can be read"), is_bad=True)
    if not is_possible(at):
        return Skipped(place, _("its time is before 1970 or in the future"), is_bad=True)
    return Said(at=at, place=place, **fields)


# A message as the history takes it.

CONSOLE = str(Provider.CONSOLE)
# The kind whose records keep their own ids, and the one whose messages a phone sent.
ARCHIVE, WHATSAPP = "archive", "whatsapp"


def old_message(key: str, chat: str, one: Said, kind: str, person: str) -> InboundMessage:
    """Return a message as one that a phone shared. ``person``: the name of whose chat it is."""
    is_group = chat.endswith("@g.us")
    phone = chat_named(one.sender) if one.sender.startswith("+") else ""
    author = party_of(phone) if phone.endswith("@c.us") else Party()
    party = author if is_group else party_of(chat)
    about: dict[str, Any] = storable(dict(one.metadata))
    # An archive has our own metadata.
    ours = about if kind == ARCHIVE else {}
    if about.pop("by_hand", False):
        ours["by_hand"] = True
    if kind == WHATSAPP and one.is_ours:
        ours[BY_PHONE] = True
    name = one.sender[:255]
    if name:
        ours["sender_name"] = storable(name)
    return InboundMessage(
        provider=CONSOLE,
        number_id="",
        delivery_key=key,
        provider_message_id=key,
        party=Party(party.phone, party.bsuid, party.other, name if is_group else person[:255]),
        group_id=chat if is_group else None,
        timestamp=one.at,
        kind=one.kind[:32],
        text=storable(one.text),
        media=Media(filename=PurePosixPath(one.media).name) if one.media else None,
        from_business=one.is_ours,
        metadata={**ours, IMPORTED: {"from": kind, **({} if kind == ARCHIVE else about)}},
    )


# The walk through documents of JSON, in which every product has its own lists around its objects.

# Values that the other product's users chose: nothing in them is an object of the product.
_THEIRS = (
    "metadata",
    "value",
    "attributes",
    "content_attributes",
    "custom_attributes",
    "additional_attributes",
    "configuration",
)
_MAX_DEPTH = 40


def walk(
    value: Any, place: str, outer: Mapping[str, Any], depth: int = 0
) -> Iterator[tuple[str, dict[str, Any], Mapping[str, Any]]]:
    """Yield every object with its place, and the ids and people that the objects around it name."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for number, member in enumerate(value, start=1):
            yield from walk(member, f"{place}[{number}]", outer, depth + 1)
    elif isinstance(value, dict):
        yield place, value, outer
        ids = {key: one for key, one in value.items() if isinstance(one, (str, int))}
        people = {key: value[key] for key in ("meta", "sender", "contact") if key in value}
        inner = {**outer, **ids, **people}
        for key, member in value.items():
            if key not in _THEIRS:
                yield from walk(member, f"{place}.{key}".lstrip("."), inner, depth + 1)
