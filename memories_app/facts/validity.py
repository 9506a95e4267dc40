"""When a statement holds: read "from Sunday", "until 1 March", "tomorrow" and "last week".

Ten languages are read. The days are those of the business's time zone. A day without a year is
today or the next one, and behind a word such as "since" the last one.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from zoneinfo import ZoneInfo

from django.conf import settings

from memoryproject.foundation.text.characters import fold

SINCE, FROM, UNTIL, ON, PAST = "since", "from", "until", "on", "past"
# Such as "from Sunday to Thursday".
WEEKLY = "weekly"

# ``markers``: by language the words before the first day, before the first day in the past, and
# before the last day. ``joining``: what may stand between the marker, the parts of a date, and the
# end of a month. ``around``: days and periods around the day on which something is said, by unit
# and count. ``nominatives``: of the names of days in another case. ``last``, ``on`` and ``again``:
# what stands before a last day, a day, and one that comes again.
_WORDS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_MARKERS: dict[str, list[str]] = _WORDS["markers"]
_BETWEEN = frozenset(" ".join(_WORDS["joining"]).split())
_NOMINATIVES: dict[str, str] = _WORDS["nominatives"]
_AROUND: list[tuple[str, int, str]] = [
    (unit, count, "|".join(words)) for unit, count, words in _WORDS["around"]
]
_JOINED = re.compile(
    r"\s*(?:[-–—]|\b(?:to|through|until|till|ועד|עד|до|по|bis|à|au|al?|hasta|até|إلى|الى|حتى)\b)\s*",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\s,;!?()]+")
# Before a day: it is the last one; it is the day itself; it comes again.
_LAST, _ON, _AGAIN = (frozenset(" ".join(_WORDS[name]).split()) for name in ("last", "on", "again"))
_DUE_LANGUAGES = ("en", "he", "es", "pt", "ar", "ru")
_PREFIX = {"he": re.compile("[בלהמו]-?"), "ar": re.compile("[بلو]")}
_NUMERIC = re.compile(r"\d{1,4}([-./])\d{1,2}(?:\1\d{2,4})?|(?:19|20)\d\d")
# "3/20" and "3/20/2026" have no month 20.
_MONTH_FIRST = re.compile(r"(?:0?\d|1[0-2])([-./])(?:1[3-9]|2\d|3[01])(?:\1\d{2,4})?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th|er|º|°|\.)?")
_MONTHS = [
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
]
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTH, _WEEKDAY, _NUMERIC_NAME = "month", "weekday", "numeric"
_MAX_TOKENS = 8
# Of the short names of weekdays in Latin letters.
_MAX_SHORT = 3
MAX_STATEMENT = 300
# A second statement begins.
_MORE = re.compile(
    r"(?<!\d)[.!?…](?=\s)|[;\n]|"
    r"(?<!\w)(?:then|afterwards|after that|ואז|אחר כך|ואחר כך|después|luego|depois|"
    r"потом|затем|потім|ثم|puis|ensuite|danach|dann|poi)(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Period:
    """A part of a text that says when the rest holds: its place, and how the days are found.

    ``phrase`` is a date in a ``language``, or the unit and the count of days around today.
    """

    kind: str
    start: int
    end: int
    phrase: str
    language: str = ""
    unit: str = ""
    count: int = 0


@dataclass(frozen=True)
class Validity:
    """The first and the last moment at which a statement holds; None: it isn't said."""

    begins: datetime | None = None
    ends: datetime | None = None


def validity_of(content: str, said_at: datetime) -> Validity:
    """Return when a text that was said then holds, as far as its words tell it.

    A text of several statements tells it of none: the others would end with the first.
    """
    if _MORE.search(content.strip()):
        return Validity()
    zone = ZoneInfo(settings.BUSINESS_TIME_ZONE)
    today = said_at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    begins = ends = None
    for period in periods_in(content):
        days = _days_of(period, today.replace(tzinfo=None))
        if days is None:
            continue
        first, last = days
        if period.kind != UNTIL:
            begins = begins or first.replace(tzinfo=zone)
        if period.kind in (UNTIL, ON):
            ends = ends or (last + timedelta(days=1)).replace(tzinfo=zone) - timedelta(seconds=1)
    if begins and ends and begins > ends:
        # "Until Friday" and "last week": the end is sure.
        begins = None
    return Validity(begins, ends)


def without_periods(content: str) -> str:
    """Return the text without the parts that say when it holds."""
    parts, last = [], 0
    for period in periods_in(content):
        parts.append(content[last : period.start])
        last = max(last, period.end)
    return " ".join(" ".join([*parts, content[last:]]).split()).strip(" ,;:") if parts else content


def periods_in(content: str) -> list[Period]:
    """Return the parts of a text that say when it holds, in reading order."""
    text = content.replace("’", "'")
    if len(text) > MAX_STATEMENT or not _ANY.search(text):
        return []
    found = [
        Period(_kind_around(unit, count), match.start(), match.end(), "", "", unit, count)
        for unit, count, pattern in _around()
        for match in pattern.finditer(text)
    ]
    found = _apart(found)
    marked: list[Period] = []
    for language, kind, pattern in _markers():
        for match in pattern.finditer(text):
            after = next((each for each in found if each.start == match.end()), None)
            if after is not None:
                kept = FROM if kind == SINCE else kind
                marked.append(
                    Period(kept, match.start(), after.end, "", "", after.unit, after.count)
                )
            else:
                marked += _dated(text, match, language, kind)
    # A marker with its date is longer than the date alone.
    return [each for each in _apart([*marked, *found]) if each.kind != WEEKLY]


def day_named(text: str, said_at: datetime) -> date | None:
    """Return the day that a text names by its date, else by its weekday; None if it names none.

    A day without a year is that of ``said_at`` or the next one.
    """
    zone = ZoneInfo(settings.BUSINESS_TIME_ZONE)
    today = said_at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    text = text[:MAX_STATEMENT]
    starts = [token.start() for token in _TOKEN.finditer(text)]
    # Hebrew writes "on" together with the day.
    joined = [found.end() for found in re.finditer(r"(?<!\w)[בהל]-?(?=\w)", text)]
    named = [
        (found[0] == _WEEKDAY, language, found[1])
        for language in _MARKERS
        for start in (starts + joined if language == "he" else starts)
        if (found := _date_at(text, start, language)) and _is_a_day(*found[:2])
    ]
    # A date before a weekday.
    for _is_weekday, language, phrase in sorted(named, key=lambda each: each[0]):
        day = _parsed(Period(ON, 0, 0, phrase, language), today, "first")
        if day is not None:
            return day.date()
    return None


def _is_a_day(named: str, phrase: str) -> bool:
    """Return whether the words name one day, and not a month, a year or another number."""
    if named == _WEEKDAY:
        # "Mon" is French, too.
        return len(phrase) > 3 or not phrase.isascii()
    date_parts = [int(part) for part in re.findall(r"\d+", phrase)]
    if named == _MONTH:
        return any(part <= 31 for part in date_parts)
    return len(date_parts) > 1 and sorted(date_parts)[0] <= 12 and sorted(date_parts)[1] <= 31


@dataclass(frozen=True)
class NamedDay:
    """A day that a text names.

    ``is_last``: as the last one ("by Sunday"). ``is_exact``: by its date, not as a weekday.
    """

    is_last: bool
    is_exact: bool
    day: date


def days_named(content: str, said_at: datetime) -> list[NamedDay]:
    """Return the single days of a text, in reading order, with or without a word before them.

    Not those that are past, that come again ("every Sunday"), or that only name a week or a month.
    """
    text = content.replace("’", "'")[:MAX_STATEMENT]
    zone = ZoneInfo(settings.BUSINESS_TIME_ZONE)
    today = said_at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    around = [
        Period(ON, match.start(), match.end(), "", "", unit, count)
        for unit, count, pattern in _around()
        if unit == "day" and count >= 0
        for match in pattern.finditer(text)
    ]
    found = []
    for period in _apart([*around, *_dates_anywhere(text)]):
        before = text[: period.start].casefold().split()[-1:]
        days = None if _AGAIN.intersection(before) else _days_of(period, today)
        if days is not None and days[0] >= today:
            is_exact = any(character.isdigit() for character in period.phrase)
            found.append(NamedDay(not _LAST.isdisjoint(before), is_exact, days[0].date()))
    return found


def _dates_anywhere(text: str) -> Iterator[Period]:
    for token in _TOKEN.finditer(text):
        for language in _DUE_LANGUAGES:
            for start, read in _starts(text, token, language):
                dated = _date_at(read, start, language)
                if dated and _is_day(dated, text, token):
                    end = dated[2] + len(text) - len(read)
                    yield Period(ON, token.start(), end, dated[1], language)


def _starts(text: str, token: re.Match[str], language: str) -> Iterator[tuple[int, str]]:
    """Yield the places at which a date may begin, behind letters that are written with it."""
    yield token.start(), text
    joined = _PREFIX[language].match(token[0]) if language in _PREFIX else None
    if joined:
        yield token.start() + joined.end(), text
        # "On Tuesday" is short for "on the third day" in Hebrew.
        if language == "he" and joined[0] in ("ב", "ל"):
            yield 0, "יום " + text[token.start() + 1 :]


def _is_day(dated: tuple[str, str, int], text: str, token: re.Match[str]) -> bool:
    """Return whether a date names a day for certain, without a word before it that says so.

    "5.3" alone may be a price, "out" is short for October in Portuguese, and "sex" for Friday.
    """
    named, phrase, _ = dated
    if named == _NUMERIC_NAME:
        before = text[: token.start()].casefold().split()[-1:]
        return "/" in token[0] or "-" in token[0] or bool((_LAST | _ON).intersection(before))
    has_number = re.search(r"\d", phrase) is not None
    return has_number if named == _MONTH else len(phrase) > _MAX_SHORT or not phrase.isascii()


def names_day(text: str) -> bool:
    """Return whether a folded text names a weekday, a month, or a time of day."""
    if re.search(r"\d{1,2}(?:[:.]\d\d|/\d)", text):
        return True
    return not _every_date_word().isdisjoint(re.findall(r"[^\W\d]+", text))


def _kind_around(unit: str, count: int) -> str:
    if count < 0 or (unit, count) == ("day", 0):
        return PAST
    return ON if unit == "day" else FROM


def _apart(periods: list[Period]) -> list[Period]:
    """Return the longest of those that overlap, in reading order."""
    kept: list[Period] = []
    for each in sorted(periods, key=lambda period: (period.start - period.end, period.start)):
        if all(each.end <= other.start or each.start >= other.end for other in kept):
            kept.append(each)
    return sorted(kept, key=lambda period: period.start)


def _dated(text: str, marker: re.Match[str], language: str, kind: str) -> Iterator[Period]:
    """Yield the date directly behind a marker, and the last day where a range of days follows.

    A range of weekdays comes again each week: it is yielded as such.
    """
    first = _date_at(text, marker.end(), language)
    if first is None:
        return
    named, phrase, end = first
    joined = _JOINED.match(text, end)
    last = _date_at(text, joined.end(), language) if joined and kind != UNTIL else None
    if last is not None and last[0] == _WEEKDAY == named:
        yield Period(WEEKLY, marker.start(), last[2], "")
        return
    yield Period(kind, marker.start(), end, phrase, language)
    if last is not None:
        yield Period(UNTIL, end, last[2], last[1], language)


def _date_at(text: str, start: int, language: str) -> tuple[str, str, int] | None:
    """Return the date at this place: what names it, its phrase, and its end."""
    words = _date_words(language)
    parts: list[str] = []
    named, end, numbers, is_day = "", start, 0, False
    read = start
    for token in _TOKEN.finditer(text, start):
        word = token[0].rstrip(".:").casefold()
        gap, read = text[read : token.start()].strip(), token.end()
        if gap and (gap != "," or not _YEAR.fullmatch(word) or not parts):
            break
        known = words.get(word, "")
        day = _DAY.fullmatch(token[0])
        if language == "he" and known == _WEEKDAY and not is_day:
            # "Second" is "Monday" as well.
            break
        is_day |= word == "יום"
        if word in _BETWEEN:
            parts += [word] if parts else []
            continue
        if not (day or known or _NUMERIC.fullmatch(word)) or (numbers and not named and not known):
            break
        named = named or known or (_NUMERIC_NAME if _NUMERIC.fullmatch(word) else "")
        numbers += bool(day)
        parts.append(day[1] if day else _NOMINATIVES.get(word, word))
        end = token.end()
        if known == _WEEKDAY or len(parts) == _MAX_TOKENS:
            break
    if not named or parts == ["may"]:
        return None
    while parts[-1] in _BETWEEN:
        parts.pop()
    end -= text[end - 1] in ".:"
    return named, " ".join(parts), end


def _days_of(period: Period, today: datetime) -> tuple[datetime, datetime] | None:
    """Return the first and the last day that a part of a text names."""
    if period.unit:
        return _around_today(period, today)
    first = _parsed(period, today, "first")
    last = _parsed(period, today, "last")
    return (first, last) if first and last else None


def _around_today(period: Period, today: datetime) -> tuple[datetime, datetime]:
    if period.unit == "day":
        day = today + timedelta(days=period.count)
        return day, day
    if period.unit == "week":
        day = today + timedelta(weeks=period.count)
        monday = day - timedelta(days=day.weekday())
        first = monday if period.count > 0 else day
        return first, monday + timedelta(days=6)
    months = period.count * (12 if period.unit == "year" else 1)
    first = _month(today, months)
    if period.unit == "year":
        first = first.replace(month=1)
        return first, first.replace(month=12, day=31)
    return first, _month(today, months + 1) - timedelta(days=1)


def _month(today: datetime, count: int) -> datetime:
    years, month = divmod(today.month - 1 + count, 12)
    return today.replace(year=today.year + years, month=month + 1, day=1)


def _parsed(period: Period, today: datetime, day: str) -> datetime | None:
    import dateparser  # noqa: PLC0415 its data of languages are slow to load

    # With points, it may be read as a time of the day.
    phrase = period.phrase
    phrase = phrase.replace(".", "/") if _NUMERIC.fullmatch(phrase) else phrase
    is_month = _date_words(period.language).get(phrase) == _MONTH
    is_dated = is_month or re.search(r"\d", phrase) is not None
    # "Until 30 November" may be said on that day, and "from November" in November; "until Monday"
    # on a Monday is the next one.
    base = today.replace(day=1) if is_month else today
    base -= timedelta(days=is_dated and period.kind != SINCE)
    found: datetime | None = dateparser.parse(
        phrase,
        languages=[period.language],
        settings={
            "RELATIVE_BASE": base,
            "DATE_ORDER": "MDY" if _MONTH_FIRST.fullmatch(phrase) else "DMY",
            "PREFER_DATES_FROM": "past" if period.kind == SINCE else "future",
            "PREFER_DAY_OF_MONTH": day,
            "PREFER_MONTH_OF_YEAR": day,
        },
    )
    return None if found is None else found.replace(hour=0, minute=0, second=0, microsecond=0)


@cache
def _markers() -> list[tuple[str, str, re.Pattern[str]]]:
    compiled = []
    for language, words in _MARKERS.items():
        # Hebrew writes such words together with the next one, or with a hyphen.
        after = r"(?:\s*-?)(?=\S)" if language == "he" else r"(?:\s+|(?<='))(?=\S)"
        for kind, each in zip((FROM, SINCE, UNTIL), words, strict=True):
            if each:
                pattern = re.compile(rf"(?<!\w)(?:{each}){after}", re.IGNORECASE)
                compiled.append((language, kind, pattern))
    return compiled


@cache
def _around() -> list[tuple[str, int, re.Pattern[str]]]:
    return [
        (unit, count, re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE))
        for unit, count, words in _AROUND
    ]


_ANY = re.compile(
    r"(?<!\w)(?:" + "|".join([*(words for _, _, words in _AROUND)]) + r")(?!\w)|"
    r"(?<!\w)(?:" + "|".join(
        each for words in _MARKERS.values() for each in words if each
    ) + r")(?:[\s-]|(?<=')|(?<=מ)|(?<=ב))",
    re.IGNORECASE,
)  # fmt: skip


@cache
def _every_date_word() -> frozenset[str]:
    return frozenset(fold(word) for language in _MARKERS for word in _date_words(language))


@cache
def _date_words(language: str) -> dict[str, str]:
    """Return the names of months and weekdays of a language, by what they are."""
    info = import_module(f"dateparser.data.date_translation_data.{language}").info
    words: dict[str, str] = {}
    for kind, names in ((_MONTH, _MONTHS), (_WEEKDAY, _WEEKDAYS)):
        for name in names:
            for each in info[name]:
                # Not "we" and "mo", which are short for days.
                if len(each) > 2 and " " not in each:
                    words[each.casefold()] = kind
    if language in ("ru", "uk"):
        words |= dict.fromkeys(_NOMINATIVES, _WEEKDAY)
    if language == "en":
        # "From may" is the month; "sun" and "sat" are words.
        for short in ("sun", "sat", "mar", "wed"):
            words.pop(short, None)
    return words
