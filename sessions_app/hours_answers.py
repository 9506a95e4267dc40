"""Say the opening hours in words: in prompts, to clients, and as an answer to their questions."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

from django.utils import dateformat, translation
from django.utils.text import capfirst

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory, Visibility
from memories_app.store import keyed, retract
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.conversations import phrases
from sessions_app.hours import (
    Hours,
    calendar_words,
    clock,
    day_or_month,
    days_in,
    holidays,
    hours_of,
    next_date,
    number_named,
    numeric_date,
)
from sessions_app.models import AssistantProfile

NOW, _TODAY, WEEK, _WITH_DAY = phrases.HOURS_QUESTIONS
_CORES = (*phrases.HOURS_QUESTIONS, phrases.HOURS_WEEKS)
_AROUND = ("greeting", "thanks", "closers", "polite", *phrases.OPENERS)
KINDS = (*_CORES, *phrases.HOURS_DAYS, phrases.HOURS_MORE, "hours_fill", *_AROUND)
_NUMERIC_DATE = re.compile(r"\b\d{1,4}([-/.])\d{1,2}(?:\1\d{2,4})?\b")
_TIME = re.compile(r"\b\d{1,2}:\d{2}\b(?:\s?[ap]m\b)?|\b\d{1,2}\s?[ap]m\b", re.IGNORECASE)
# 10.30, which is no date, and "at 8.10".
_DOTTED = re.compile(
    rf"\b(?:(?:{'|'.join(phrases.words_in('clock_words'))})\s+(?:1?\d|2[0-3])\.[0-5]\d"
    r"|(?:1?\d|2[0-3])\.(?:1[3-9]|[2-5]\d))\b(?![.\d])",
    re.IGNORECASE,
)
_ALWAYS = re.compile(r"\b(?:24/7|7/24)\b(?!/)")
_DAYS_BETWEEN = re.compile(r"(?<=[^\W\d_]{3})\s?[-–—]\s?(?=[^\W\d_]{3})")
_NUMBER = re.compile(r"[בהל]{0,2}(\d{1,2})(st|nd|rd|th|er|º|ª|го)?")
_YEAR = re.compile(r"20\d\d")
_AND = re.compile("^[\u05d5\u0648](?=.)")
# It may greet, or be "tomorrow".
_MORNING = re.compile(r"^\W*morgen\s*[,!.]", re.IGNORECASE)
_DAY_WORDS = ("יומ", "ביומ")
MAX_WORDS = 24
HOURS_OF_DAY = 24
# Of a text that names a day alone.
MAX_MORE = 6
MAX_OTHER_DAYS = 20
# Any Sunday.
SUNDAY = date(2023, 1, 1)
# The memories by which recall finds the hours.
NAMESPACE = "business"
KEY = "opening-hours-"


def day_named(day: date, language: str, today: date) -> str:
    """Return "Friday, 24 December", after "today" or "tomorrow" where it is that."""
    # In Slavic languages a month has another form in a date.
    month = "E" if language in ("ru", "uk") else "F"
    year = "" if day.year == today.year else " Y"
    with translation.override(language):
        named = dateformat.format(day, f"l, j {month}{year}")
    near = {today: "day_today", today + timedelta(days=1): "day_tomorrow"}.get(day)
    return f"{phrases.text_for(near, language)} ({named})" if near else named


def day_line(hours: Hours, day: date, language: str, today: date) -> str:
    """Return a day's hours, such as "Friday, 24 December: 9:00–13:00 (Christmas Eve)"."""
    other = hours.dates.get(day)
    name = f" ({other.name})" if other and other.name else ""
    named = capfirst(day_named(day, language, today))
    return f"{named}: {_spans(hours, day, language)}{name}"


def _spans(hours: Hours, day: date, language: str) -> str:
    spans = [
        f"{clock(span.start)}–{'24:00' if span.end == 24 * 60 else clock(span.end)}"
        for span in hours.on(day)
    ]
    return ", ".join(spans) or phrases.text_for("hours_closed", language)


def status_lines(hours: Hours, language: str, now: datetime) -> list[str]:
    """Return whether it is open now, the hours of the day, and when it opens next."""
    today = hours.day_of(now)
    is_open = hours.is_open(now)
    lines = [phrases.text_for("hours_open" if is_open else "hours_shut", language)]
    lines.append(day_line(hours, today, language, now.astimezone(hours.zone).date()))
    return lines if is_open else [*lines, *opening_line(hours, "hours_next", language, now)]


def opening_line(hours: Hours, name: str, language: str, now: datetime) -> list[str]:
    """Return the text of that name about the next opening; nothing where there is none."""
    opens = hours.opens_at(now)
    if opens is None:
        return []
    named = day_named(opens.date(), language, now.astimezone(hours.zone).date())
    return [phrases.text_for(name, language, day=named, time=f"{opens.hour}:{opens.minute:02}")]


def week_lines(hours: Hours, language: str, today: date) -> Iterator[str]:
    """Yield the hours of each weekday, and of the other days that are to come.

    Days in a row with the same hours, such as a holiday of weeks, are one line.
    """
    usual = Hours(hours.week, hours.zone)
    for day in (SUNDAY + timedelta(days=step) for step in range(7)):
        with translation.override(language):
            name = dateformat.format(day, "l")
        yield f"{capfirst(name)}: {_spans(usual, day, language)}"
    coming = sorted(day for day in hours.dates if day >= today)
    yield from islice(_day_lines(hours, coming, language, today), MAX_OTHER_DAYS)


def _day_lines(hours: Hours, days: Iterable[date], language: str, today: date) -> Iterator[str]:
    runs: list[list[date]] = []
    for day in days:
        before, other = day - timedelta(days=1), hours.dates.get(day)
        is_more = other and runs and runs[-1][-1] == before and hours.dates.get(before) == other
        runs = [*runs[:-1], [*runs[-1], day]] if is_more else [*runs, [day]]
    for first, *more in runs:
        line = day_line(hours, more[-1] if more else first, language, today)
        yield f"{capfirst(day_named(first, language, today))} – {line}" if more else line


def hours_in_prompt(hours: Hours, now: datetime) -> str:
    """Return the hours as a model reads them: what holds now first, where a prompt is cut last."""
    today = now.astimezone(hours.zone).date()
    lines = status_lines(hours, "en", now)
    lines.append(day_line(hours, today + timedelta(days=1), "en", today))
    return "\n".join([*lines, "Every week:", *week_lines(hours, "en", today)])


def hours_remember(*, embedder: Embedder) -> int:
    """Store the hours as a memory for everybody in each of the business's languages.

    Where no hours are set any more, the memories are deleted. Returns how many there are. Raises
    EmbedderError.
    """
    profile = AssistantProfile.objects.filter(pk=1).first() or AssistantProfile(pk=1)
    hours = hours_of(profile)
    spoken = {code.strip() for code in profile.languages.split(",")} & phrases.languages().keys()
    keys = {f"{KEY}{code}": code for code in sorted({"en", *spoken})} if hours else {}
    if hours:
        # What is past doesn't take the place of what is to come. "Today" isn't true for long.
        today = datetime.now(hours.zone).date()
        coming = {day: other for day, other in hours.dates.items() if day >= today}
        hours = replace(hours, dates=coming)
    there = Memory.objects.filter(namespace=NAMESPACE, key__startswith=KEY).exclude(key__in=keys)
    retract.memories_delete(memory_ids=list(there.values_list("pk", flat=True)), actor=SYSTEM)
    for key, language in keys.items():
        lines = "; ".join(week_lines(hours, language, date.min)) if hours else ""
        new = NewMemory(
            content=phrases.text_for("handover_hours", language, hours=lines),
            visibility=str(Visibility.PUBLIC),
            source="staff",
            namespace=NAMESPACE,
            key=key,
            value={},
        )
        unchecked: Any = {"check": lambda _there: None, "before_storing": lambda: None}
        keyed.keyed_put(new, embedder=embedder, actor=SYSTEM, **unchecked)
    return len(keys)


# Answer a question about the hours. Who asks something else besides gets no answer from here.


def hours_answer(
    text: str,
    *,
    hours: Hours,
    now: datetime,
    language: str,
    fixed: str = "",
    before: Iterable[str] = (),
) -> str | None:
    """Return the answer to a question that is about the opening hours alone, else None.

    ``language``: the chat's, where the words are those of several; ``fixed``: that of the answer,
    if it isn't the question's. ``before``: what the person wrote before, the latest first; it is
    read only where the text names a day and nothing else, as in "and on Sunday?".
    """
    today = now.astimezone(hours.zone).date()
    question = _asked(text, language, hours, today) or _asked_on(
        text, language, hours, today, before
    )
    if question is None:
        return None
    core, asked_in, days = question
    spoken = fixed or asked_in
    if days and (core != NOW or days != [today]):
        return "\n".join(_day_lines(hours, days, spoken, today))
    if core == WEEK:
        return "\n".join(week_lines(hours, spoken, today))
    return "\n".join(status_lines(hours, spoken, now))


def _asked(
    text: str, language: str, hours: Hours, today: date
) -> tuple[str, str, list[date]] | None:
    """Return the kind of the question, its language, and the days that it names."""
    words, dates = _words_and_dates(text, today)
    cores = [
        phrase
        for place in range(len(words))
        for phrase in phrases.phrases_at(words[place:], _CORES)
    ]
    asking = [phrase for phrase in cores if phrase.kind != phrases.HOURS_WEEKS]
    if not asking:
        return None
    core = max(asking, key=lambda each: (each.size, each.language == language))
    days = _days_in(words, dates, core.language, hours, today)
    if days is None or (len(days) > 1 and _DAYS_BETWEEN.search(text)):
        return None
    if _MORNING.match(text) and days == [today + timedelta(days=1)]:
        return None
    needed = phrases.languages()[core.language]["hours_needs"]
    if not days if core.kind == _WITH_DAY else needed and needed.isdisjoint(words):
        return None
    if any(each.kind == phrases.HOURS_WEEKS and each.language == core.language for each in cores):
        return WEEK, core.language, []
    return core.kind, core.language, days


def _asked_on(
    text: str, language: str, hours: Hours, today: date, before: Iterable[str]
) -> tuple[str, str, list[date]] | None:
    """Return the question of a text that names a day alone, where one about the hours goes before.

    With its mark, the name of a holiday asks by itself.
    """
    days, spoken = _days_alone(text, language, hours, today)
    words, _dates = _words_and_dates(text, today)
    is_asked = "?" in text and bool(_holiday(words, hours, today)[1])
    for earlier in before if days and not is_asked else ():
        is_asked = _asked(earlier, language, hours, today) is not None
        if is_asked or not _days_alone(earlier, language, hours, today)[0]:
            break
    return (NOW, spoken, days) if days and is_asked else None


def _days_alone(
    text: str, language: str, hours: Hours, today: date
) -> tuple[list[date] | None, str]:
    """Return the days that a text names, which says nothing else, and its language."""
    words, dates = _words_and_dates(text, today)
    # A chat has no language before something was said in one.
    spoken_first = sorted(phrases.languages(), key=lambda each: each != language)
    # "And" is written together with the day in Hebrew and Arabic.
    both = words, [_AND.sub("", word) for word in words]
    for spoken in spoken_first if len(words) <= MAX_MORE else ():
        found = (_days_in(each, dates, spoken, hours, today) for each in both)
        if days := next(filter(None, found), None):
            return days, spoken
    return None, language


def _words_and_dates(text: str, today: date) -> tuple[list[str], list[date]]:
    """Return the words of a text, and its dates in numbers; no words where it can't be asking."""
    # "24/7" is no day of July.
    if len(text) > phrases.MAX_LENGTH or _ALWAYS.search(text):
        return [], []
    text = _DOTTED.sub(" ", text)
    read = [numeric_date(found[0], today) for found in _NUMERIC_DATE.finditer(text)]
    words = [word.text for word in phrases.words_of(_TIME.sub(" ", _NUMERIC_DATE.sub(" ", text)))]
    dates = [day for day in read if day is not None]
    return (words, dates) if len(dates) == len(read) and len(words) <= MAX_WORDS else ([], [])


def _days_in(
    words: list[str], dates: list[date], language: str, hours: Hours, today: date
) -> list[date] | None:
    """Return the days that a text names in any way; None where it says something else, too."""
    words, holiday = _holiday(words, hours, today)
    days = _days_named(words, language, today)
    # "Friday, 24/12" is one day.
    return None if days is None else list(dict.fromkeys([*dates, *holiday] or days))


def _holiday(words: list[str], hours: Hours, today: date) -> tuple[list[str], list[date]]:
    """Return the words without the name that staff gave a day, and the next such days."""
    named: dict[tuple[str, ...], list[date]] = defaultdict(list)
    for day in sorted(day for day in hours.dates if day >= today):
        name = hours.dates[day].name
        days = named[tuple(word.text for word in phrases.words_of(name))]
        if not days_in(name) and (not days or day - days[-1] == timedelta(days=1)):
            days.append(day)
    for day, *names in holidays():
        of_staff = next((days for days in map(named.get, names) if days), None)
        usual = [next_date(int(day[3:]), int(day[:2]), today)] if day else []
        for name in names:
            named[name] = named.get(name) or of_staff or [each for each in usual if each]
    for parts, days in sorted(named.items(), key=lambda each: -len(each[0])):
        for place in range(len(words) - len(parts) + 1 if parts and days else 0):
            pairs = zip(words[place:], parts, strict=False)
            if all(number_named(word, {part: 1}, "he") for word, part in pairs):
                return [*words[:place], *words[place + len(parts) :]], days
    return words, []


def _is_of_month(digits: re.Match[str], before: str) -> bool:
    """Return whether a number has the ending of a date, or is "on 24" in Hebrew: no hour."""
    is_on = "\u05d1" in before + digits[0]
    return bool(digits[2]) or (is_on and int(digits[1]) >= HOURS_OF_DAY)


def _days_named(words: Sequence[str], language: str, today: date) -> list[date] | None:
    """Return the days that the words name; None where they say something else, too."""
    days: list[date] = []
    places: list[int] = []
    number = month = None
    is_date, on_a_date = False, phrases.languages()[language]["date_words"]
    place = 0
    while place < len(words):
        word = words[place]
        before = words[place - 1] if place else ""
        # A single Hebrew letter is a weekday after "day" alone.
        letter = days_in(word) if before in _DAY_WORDS and len(word) == 1 else None
        weekday = letter[0] or 7 if letter else day_or_month(word, 0, language)
        found = phrases.phrases_at(words[place:], KINDS)
        fits = [each for each in found if each.language == language or each.kind in _AROUND]
        matches = sorted(fits, key=lambda each: (-each.size, each.kind not in phrases.HOURS_DAYS))
        if matches and (weekday is None or len(word) > 1 or matches[0].size > 1):
            if matches[0].kind in phrases.HOURS_DAYS:
                days.append(today + timedelta(days=phrases.HOURS_DAYS.index(matches[0].kind)))
                places.append(place)
            place += matches[0].size
            continue
        place += 1
        if weekday is not None:
            days.append(today + timedelta(days=(weekday - today.isoweekday()) % 7))
            places.append(place - 1)
        elif digits := _NUMBER.fullmatch(word):
            number = int(digits[1])
            is_date = before in on_a_date or _is_of_month(digits, before)
        elif named := day_or_month(word, 1, language):
            month = named
        elif word in on_a_date and before[-1:].isdecimal():
            is_date = True
        elif not _YEAR.fullmatch(word) and word not in calendar_words(language)[2]:
            return None
    # "Monday to Friday" are more days than the two.
    until = phrases.languages()[language]["until_words"]
    is_greeted = len(days) > 1 and not places[0] and phrases.phrases_at(words[:1], ("greeting",))
    if any(end - start == 2 and words[start + 1] in until for start, end in pairwise(places)):
        return None
    if month is not None:
        day = next_date(number or 0, month, today)
        return None if day is None else [day]
    if is_date:
        coming = (next_date(number or 0, month, today) for month in range(1, 13))
        # "The 24th" is the next one.
        return sorted(filter(None, coming))[:1] or None
    # "At 8" on which day? "Morgen" greets before another day.
    return None if number is not None and not days else days[bool(is_greeted) :]
