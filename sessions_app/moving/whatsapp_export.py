"""Read a chat that WhatsApp's app exported: ``_chat.txt``, its Zip, or the folder of both.

The app writes the phone's own form of dates, digits and words. So what a line is shows in its form;
words are looked up only for what has no form of its own (``whatsapp_phrases.json``).
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils.translation import gettext as _

from sessions_app.moving import records as moved
from sessions_app.moving.sources import DATA, Source

_PHRASES: dict[str, Any] = json.loads(
    Path(__file__).with_name("whatsapp_phrases.json").read_text(encoding="utf-8")
)
_DAY = r"([0-9]{1,4})(?:[./-] ?|[年년] ?)([0-9]{1,2})(?:[./-] ?|[月월] ?)([0-9]{1,4})[.日일]?"
_TIME = r"([0-9]{1,2})[:.]([0-9]{2})(?:[:.]([0-9]{2}))?"
_WORD = r"([^0-9:\[\]]{0,16})"
# iPhones write brackets, others a dash after the time, or in Korea a comma.
_FORMS = (
    re.compile(rf"\[{_DAY}{_WORD}{_TIME}{_WORD}\] ?"),
    re.compile(rf"{_DAY}{_WORD}{_TIME}([^0-9:\[\]-]{{0,16}}) [-–] "),
    re.compile(rf"(?=[0-9]{{4}}){_DAY}{_WORD}{_TIME}(), "),
)
_SPACES = re.compile("[\u00a0\u202f\u2007\u2009]")
_NAME = r"[^\n<>:/\\]{1,200}\.[A-Za-z0-9]{1,5}"
_ATTACHED = re.compile(rf"<[^<>:\n]{{2,30}}: ?({_NAME})>")
_FILE_FIRST = re.compile(rf"({_NAME}) \(([^()\n]{{3,40}})\)(?:\n|$)")
_NOTE_LAST = re.compile(r" ?<([^<>\n]{5,80})>$")
# A file that the export only mentions, without its kind.
UNKNOWN = "unsupported"
_KINDS = {
    "image": ("jpg", "jpeg", "png", "heic", "gif"),
    "sticker": ("webp",),
    "video": ("mp4", "mov", "3gp", "m4v", "webm"),
    "voice": ("opus", "amr"),
    "audio": ("mp3", "m4a", "aac", "ogg", "wav"),
}


@dataclass
class _Line:
    """A line that begins a message, with those that go on with it. ``clock``: hour to second."""

    number: int
    day: tuple[int, int, int]
    clock: tuple[int, int, int]
    is_twelve: bool
    sender: str
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.parts)


def read_whatsapp(source: Source, options: moved.Options) -> Iterator[moved.Found]:
    """Read every chat of the source; the time zone of the phone is the business's.

    Raises MoveError if it isn't clear who is the business, or whose chat it is.
    """
    names = chats_in(source)
    if len(names) > 1 and options.chat:
        raise moved.MoveError(
            _("It holds several chats: move each in alone, with its own chat."), "chat"
        )
    for name in names:
        label = f"{name}: " if len(names) > 1 else ""
        yield from _chat(source, name, options, label)


def _chat(source: Source, name: str, options: moved.Options, label: str) -> Iterator[moved.Found]:
    lines, loose = _lines(source.text(name))
    for number in loose:
        yield moved.Skipped(f"{label}line {number}", _("it belongs to no message"), is_bad=True)
    if not lines:
        return
    order, zone = _order(lines), ZoneInfo(settings.BUSINESS_TIME_ZONE)
    messages = [line for line in lines if line.sender and not _is_notice(line)]
    title = source.title if PurePosixPath(name).name.lower() == "_chat.txt" else name
    ours = _ours({line.sender: None for line in messages}, options, title)
    chat = options.chat or _whose(messages, ours)
    files = {PurePosixPath(each).name: each for each in source.names}
    last = None
    for line in lines:
        place = f"{label}line {line.number}"
        if not line.sender or _is_notice(line):
            yield moved.Skipped(place, _("a notice, not a message"))
            continue
        yield _message(line, at := _at(line, order, zone, last), place, chat, ours, files)
        last = at or last


def _lines(text: str) -> tuple[list[_Line], list[int]]:
    """Return the messages' lines, and the numbers of lines before the first."""
    found: list[_Line] = []
    loose: list[int] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        raw = raw.removesuffix("\r")
        if head := _head(raw):
            found.append(_Line(number, *head))
        elif found:
            found[-1].parts.append(raw)
        elif raw.strip():
            loose.append(number)
    for line in found:
        while len(line.parts) > 1 and not line.parts[-1].strip():
            line.parts.pop()
    return found, loose


def _head(raw: str) -> tuple[Any, ...] | None:
    """Return the day, the clock, whether it is of twelve hours, the sender and the text's begin."""
    shown = [place for place, one in enumerate(raw[:120]) if not moved.INVISIBLE.match(one)]
    plain = "".join(_plain(raw[place]) for place in shown)
    match = next(filter(None, (form.match(plain) for form in _FORMS)), None)
    if match is None:
        return None
    one, two, three, before, hour, minute, second, after = match.groups()
    word = before + after
    letters = "".join(each for each in word.casefold() if each.isalpha())
    is_late = any(letters.endswith(each) for each in _PHRASES["afternoon"])
    is_early = not is_late and any(letters.endswith(each) for each in _PHRASES["morning"])
    hours = int(hour)
    if is_late or is_early:
        hours = hours % 12 + 12 * is_late if hours <= 12 else hours
    rest = raw[shown[match.end() - 1] + 1 :]
    sender, colon, text = rest.partition(":")
    # Notices such as “… changed the subject to “a: b”” have no sender.
    is_name = bool(colon) and (not text or text[0].isspace()) and not re.search('[“”"«»„]', sender)
    who = (
        " ".join(_SPACES.sub(" ", moved.INVISIBLE.sub("", sender)).split())
        .removeprefix("~")
        .strip()
    )
    clock = (hours, int(minute), int(second or 0))
    begin = [text[1:] if is_name else rest]
    return (int(one), int(two), int(three)), clock, is_late or is_early, who * is_name, begin


def _plain(one: str) -> str:
    """Return a character as a western phone writes it."""
    if _SPACES.match(one):
        return " "
    digit = unicodedata.decimal(one, None)
    return one if digit is None else str(digit)


_Order: TypeAlias = tuple[int, int, int]
_ORDERS = {"DMY": (2, 1, 0), "MDY": (2, 0, 1), "YMD": (0, 1, 2)}


def _order(lines: Sequence[_Line]) -> _Order:
    """Return the places of year, month and day that make the most of the file, in its order."""
    is_twelve = any(line.is_twelve for line in lines)
    likely = ("MDY", "DMY", "YMD") if is_twelve else tuple(_ORDERS)
    return min((_ORDERS[name] for name in likely), key=lambda order: _misfits(lines, order))


def _misfits(lines: Sequence[_Line], order: _Order) -> tuple[int, int]:
    days = [_at(line, order, timezone.utc) for line in lines]
    real = [day for day in days if day and moved.is_possible(day)]
    back = sum(one > two for one, two in zip(real, real[1:], strict=False))
    return len(days) - len(real), back


def _at(line: _Line, order: _Order, zone: Any, last: datetime | None = None) -> datetime | None:
    """Return the line's time. In an hour that a clock shows twice, it isn't before the ``last``."""
    year, month, day = (line.day[place] for place in order)
    year += 2000 if year < 100 else 0
    # Phones in Thailand count from the Buddha's death.
    year -= 543 if year > 2400 else 0
    try:
        shown = datetime(year, month, day, *line.clock, tzinfo=zone)
        first, second = (shown.replace(fold=fold).astimezone(timezone.utc) for fold in (0, 1))
    except (ValueError, OverflowError):
        return None
    return second if last and first < last <= second else first


def _ours(senders: Iterable[str], options: moved.Options, title: str) -> set[str]:
    """Return the senders that are the business. Raises MoveError if that isn't clear."""
    names = list(senders)
    there = ", ".join(names[:20])
    ours = {name for name in names if options.is_business(name)}
    if options.business and not ours and len(names) > 1:
        raise moved.MoveError(_("Nobody is called so in it: %(names)s"), "business", names=there)
    if options.business or not names:
        return ours
    longest = sorted(names, key=len, reverse=True)
    titled = [name for name in longest if moved.plain_name(name) in moved.plain_name(title)]
    people = titled or [name for name in names if _is_number(name)]
    if len(names) == 2 and people:
        return set(names) - {people[0]}
    raise moved.MoveError(_("Say who the business is in it: %(names)s"), "business", names=there)


def _is_number(name: str) -> bool:
    return name.startswith("+") and moved.chat_named(name).endswith("@c.us")


def _whose(messages: Sequence[_Line], ours: set[str]) -> str:
    people = {line.sender for line in messages} - ours
    if len(people) == 1 and _is_number(person := people.pop()):
        return moved.chat_named(person)
    raise moved.MoveError(_("Say whose it is: a number with a +, or …@g.us for a group."), "chat")


def _has(text: str, phrases: str) -> bool:
    shown = text.casefold()
    return any(each in shown for each in _PHRASES[phrases])


def _is_notice(line: _Line) -> bool:
    """Return whether WhatsApp wrote it: an iPhone shows that by a mark before the text."""
    text = moved.INVISIBLE.sub("", line.text).strip()
    if len(text) < 60 and "\n" not in text and _has(text, "deleted"):
        return True
    is_marked = line.parts[0].startswith("\u200e") and len(line.parts) == 1
    is_said = _ATTACHED.search(text) or _FILE_FIRST.match(text) or "://" in text
    return is_marked and not is_said and not _has(text, "omitted")


def _message(
    line: _Line, at: datetime | None, place: str, chat: str, ours: set[str], files: dict[str, str]
) -> moved.Found:
    text = line.text.lstrip("\u200e\u200f")
    edited = _NOTE_LAST.search(moved.INVISIBLE.sub("", text))
    if edited and _has(edited[1], "edited"):
        text = text[: text.rindex("<")].rstrip(" \u200e")
    name, kind = "", "text"
    if attached := _ATTACHED.search(text):
        name, text = attached[1], f"{text[: attached.start()]}{text[attached.end() :]}"
    elif (attached := _FILE_FIRST.match(text)) and (
        attached[1] in files or _has(attached[2], "attached")
    ):
        name, text = attached[1], text[attached.end() :]
    elif left_out := _left_out(line.parts[0]):
        kind, text = left_out, "\n".join(line.parts[1:])
    if name:
        kind = _kind_of(name)
    return moved.said(
        at,
        place,
        chat=chat,
        is_ours=line.sender in ours,
        text=text.strip("\u200e \n") if kind != "text" else text,
        sender=line.sender,
        kind=kind,
        media=files.get(name, ""),
        metadata={"filename": name} if name else {},
    )


def _left_out(first: str) -> str:
    """Return the kind of the file that the line stands for if it wasn't exported, or ""."""
    shown = moved.INVISIBLE.sub("", first).strip().casefold()
    if shown == "null":
        # What Android writes for a file that could be seen once.
        return UNKNOWN
    is_framed = shown.startswith("<") and shown.endswith(">")
    if not (is_framed or "\u200e" in first) or len(shown) >= 120 or not _has(shown, "omitted"):
        return ""
    kinds: dict[str, list[str]] = _PHRASES["kinds"]
    return next((kind for kind in kinds if any(each in shown for each in kinds[kind])), UNKNOWN)


def _kind_of(name: str) -> str:
    ending = name.rpartition(".")[2].lower()
    return next((kind for kind, endings in _KINDS.items() if ending in endings), "document")


def chats_in(source: Source) -> list[str]:
    """Return the texts that begin as an exported chat; others are files that somebody sent.

    Raises MoveError.
    """
    names = [name for name in source.texts(".txt") if not name.lower().endswith(DATA)]
    found = [name for name in names if any(map(_head, source.text(name).split("\n", 20)[:20]))]
    by_app = re.compile("_chat.txt$|whatsapp", re.IGNORECASE)
    return [name for name in found if by_app.search(PurePosixPath(name).name)] or found
