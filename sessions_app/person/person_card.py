"""A person at a glance: what is known of a contact, by sections, each line with its evidence.

It is made when it is read, by rules alone, of the active memories and the latest cards of the chat:
so it is always current, and nothing of it is left once its sources are erased. ``topics.json`` has
the words by which memories tell what they are about, in ten languages; of a word with five letters
or more its inflections count, too.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_date, parse_datetime

from cards_app.models import MemoryCard
from memories_app.facts.validity import MAX_STATEMENT, day_named
from memories_app.models import Memory, MemorySource, MemoryStatus, Visibility
from memories_app.models.proposals import ProposalKind, ProposalMemory, ProposalState
from memories_app.visibility import is_current, memories_in_order
from memoryproject.foundation.text.characters import fold
from sessions_app.models import Chat, Message

WHO, PREFERENCES, OPEN, PROMISES, DATES = "who", "preferences", "open", "promises", "dates"
# In the order in which they are shown.
SECTIONS = (WHO, PREFERENCES, OPEN, PROMISES, DATES)
DIET, TASTE, OTHER = "diet", "taste", "other"
BIRTHDAY, APPOINTMENT = "birthday", "appointment"
# The topics of a section, in the order in which they are shown.
TOPICS = {
    WHO: ("name", "home", "family", "work", OTHER),
    PREFERENCES: (DIET, TASTE, "size", "habit"),
}
SECTION_OF = {topic: section for section, topics in TOPICS.items() for topic in topics}
# So many letters say what a word is about, whatever follows.
STEM = 5
# Written together with the next word: "and", "the", "in", "to", "that", "from", "as".
_HEBREW, _ARABIC = "והבלשמכ", ("ال", "وال", "بال", "لل", "و", "ب", "ل")
_WORD = re.compile(r"[^\W\d_]+")


def _listed() -> dict[str, str]:
    lists = json.loads(Path(__file__).with_name("topics.json").read_text(encoding="utf-8"))
    return {
        fold(word): topic
        for topic, lines in lists.items()
        for line in lines
        for word in line.split()
    }


_TOPIC_OF = _listed()
_BEGINNINGS = {word[:STEM] for word in _TOPIC_OF if len(word) >= STEM}


def topics_of(text: str) -> list[str]:
    """Return the topics of a text, each once: what concerns health first, then as they are said."""
    found = dict.fromkeys(filter(None, map(_topic, _WORD.findall(fold(text)))))
    return sorted(found, key=lambda topic: topic != DIET)


def _topic(word: str) -> str:
    """Return what a word is about, "" if it doesn't tell."""
    for form in _forms(word):
        if form in _TOPIC_OF:
            return _TOPIC_OF[form]
        # Few words have the beginning of a stem.
        for length in range(STEM, len(form)) if form[:STEM] in _BEGINNINGS else ():
            if form[:length] in _TOPIC_OF:
                return _TOPIC_OF[form[:length]]
    return ""


def _forms(word: str) -> Iterator[str]:
    """Yield the word, and where other words are written together with it, without them."""
    yield word
    if "א" <= word[0] <= "ת" and word[0] in _HEBREW and len(word) > 3:
        yield word[1:]
    elif "\u0600" <= word[0] <= "\u06ff":
        yield from (
            word[len(each) :]
            for each in _ARABIC
            if word.startswith(each) and len(word) > len(each) + 2
        )


# The card.


# So many memories are looked at: pinned ones, then the newest.
MAX_READ = 2_000
# The open matters of older conversations have mostly been dealt with.
LATEST_CARDS = 3
# How many lines a section has.
LONGEST = {WHO: 10, PREFERENCES: 10, OPEN: 5, PROMISES: 8, DATES: 8}
PROMISE, TASK = "promise", "task"
OVERDUE = "overdue"
# So much of a card's line finds its message.
FINDS = 40


@dataclass(frozen=True)
class PersonLine:
    """A line of the card, and its evidence: a memory with its mentions, or a card.

    ``day``: when it is due, or begins; ``until``: the last day on which it holds. ``state``: of a
    promise, "open" or "overdue". ``session_id`` and ``message_id``: where it was said, if known.
    """

    section: str
    topic: str
    text: str
    said_at: datetime
    count: int = 1
    memory_id: UUID | None = None
    session_id: UUID | None = None
    message_id: UUID | None = None
    day: date | None = None
    until: date | None = None
    state: str = ""


Sections: TypeAlias = dict[str, list[PersonLine]]


def person_card(
    *,
    chat: Chat,
    memories: QuerySet[Memory] | None,
    with_cards: bool,
    now: datetime,
    without: UUID | None = None,
) -> Sections:
    """Return the card of a contact: the lines of each section, in their order; empty ones, too.

    ``memories``: those that the reader may see; None: none of them. ``with_cards``: whether the
    reader may see memory cards. ``without``: a session whose card doesn't count.
    """
    zone = ZoneInfo(settings.BUSINESS_TIME_ZONE)
    read = [] if memories is None else _memories(chat, memories, now)
    lines = [line for memory in read for line in _lines_of(memory, now, zone)]
    promised = [line.text for line in lines if line.section == PROMISES]
    if with_cards:
        lines += _open_matters(chat, promised, without)
    return _with_places(chat, _chosen(lines))


# Read memories, and tell what each says of the person.


def _memories(chat: Chat, memories: QuerySet[Memory], now: datetime) -> QuerySet[Any]:
    """Return the person's memories that hold, or will. What all may know is of the business."""
    in_force = memories.filter(is_current(now), chat_id=chat.pk, status=MemoryStatus.ACTIVE)
    own = in_force.exclude(visibility=Visibility.PUBLIC).filter(document__isnull=True)
    # A promise whose day has passed is overdue, and not ended.
    holds = Q(valid_until__isnull=True) | Q(valid_until__gte=now) | Q(type=PROMISE)
    return memories_in_order(own.filter(holds)).values_list(
        *("memory_id", "content", "type", "category", "tags", "visibility", "source_message_id"),
        *("metadata__promise", "told_count", "said_at", "valid_from", "valid_until"),
        named=True,
    )[:MAX_READ]


def _lines_of(memory: Any, now: datetime, zone: ZoneInfo) -> Iterator[PersonLine]:
    """Yield the lines that a row of ``_memories`` gives, of which there are seldom two."""
    line = partial(
        PersonLine,
        text=memory.content,
        said_at=memory.said_at,
        count=memory.told_count,
        memory_id=memory.memory_id,
        message_id=memory.source_message_id,
    )
    if memory.type == PROMISE:
        yield from _promise(line, memory.metadata__promise, now, zone)
        return
    # Labels come first: whoever gave them knew what it is about.
    beginning = memory.content[:MAX_STATEMENT]
    topics = topics_of(" ".join([memory.type, memory.category, *memory.tags, beginning]))
    topic = _first(topics, SECTION_OF) or OTHER
    begins = memory.valid_from if memory.valid_from and memory.valid_from > now else None
    today, until = now.astimezone(zone).date(), _day(memory.valid_until, zone)
    day = _day(begins, zone) or _day_named(memory, topics, today)
    if until or (day and day >= today):
        yield line(DATES, topic, day=day, until=until)
    if begins:
        return
    if memory.type == TASK:
        yield line(OPEN, topic, until=until)
    elif topic != OTHER:
        yield line(SECTION_OF[topic], topic, until=until)
    elif not (day or until) and memory.visibility == str(Visibility.CHAT):
        # What has a day is among the dates, or over. The owner's other memories are of the
        # business, and not of the owner.
        yield line(WHO, OTHER)


def _first(topics: Iterable[str], known: Iterable[str]) -> str:
    return next((topic for topic in topics if topic in known), "")


def _day_named(memory: Any, topics: Sequence[str], today: date) -> date | None:
    """Return the next birthday, or the day of an appointment; None if its text names none."""
    if BIRTHDAY not in topics and APPOINTMENT not in topics:
        return None
    day = day_named(memory.content, memory.said_at)
    if day is None or BIRTHDAY not in topics:
        return day
    this_year = _anniversary(day, today.year)
    return this_year if this_year >= today else _anniversary(day, today.year + 1)


def _anniversary(day: date, year: int) -> date:
    try:
        return day.replace(year=year)
    except ValueError:
        # 29 February.
        return day.replace(year=year, day=28)


def _day(moment: datetime | None, zone: ZoneInfo) -> date | None:
    return None if moment is None else moment.astimezone(zone).date()


def _promise(
    line: Callable[..., PersonLine], given: object, now: datetime, zone: ZoneInfo
) -> Iterator[PersonLine]:
    """Yield the line of a promise that is open. ``given``: its record, in whatever form."""
    promise = given if isinstance(given, dict) else {}
    if promise.get("state", OPEN) != OPEN:
        return
    due = _moment(promise.get("due"), zone)
    state = OVERDUE if due is not None and due < now else OPEN
    yield line(PROMISES, PROMISE, state=state, day=_day(due, zone))


def _moment(text: object, zone: ZoneInfo) -> datetime | None:
    """Return the moment of an ISO text; a day without a time is over at its end."""
    try:
        day = parse_date(str(text))
        moment = datetime.combine(day, time.max) if day else parse_datetime(str(text))
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=zone)


# Read the open matters of the latest conversations.


def _open_matters(
    chat: Chat, promised: Sequence[str], without: UUID | None
) -> Iterator[PersonLine]:
    """Yield what was open at the end of the latest conversations, and what is to be done."""
    cards = MemoryCard.objects.filter(chat_id=chat.pk).exclude(pk=without).defer("terms")
    known = [fold(text) for text in promised]
    for card in cards.order_by("-session_started_at")[:LATEST_CARDS]:
        outcome = card.outcome if isinstance(card.outcome, dict) else {}
        left_open = outcome.get("open")
        for text in [*(left_open if isinstance(left_open, list) else []), *card.todos]:
            folded = fold(str(text)).rstrip(". …")
            # A promise, or the open end of a newer conversation, says it already.
            if folded and not any(folded in each or each in folded for each in known):
                known.append(folded)
                began, session_id = card.session_started_at, card.session_id
                yield PersonLine(OPEN, OPEN, str(text), began, session_id=session_id)


# Choose the lines, and find where they were said.


def _chosen(lines: Sequence[PersonLine]) -> Sections:
    """Return the lines of each section in their order, without those that a newer one replaces."""
    sections = {
        name: sorted((line for line in lines if line.section == name), key=_place)
        for name in SECTIONS
    }
    kept = {name: found[: LONGEST[name] * 2] for name, found in sections.items()}
    replaced = _replaced(line.memory_id for found in kept.values() for line in found)
    return {
        name: [line for line in found if line.memory_id not in replaced][: LONGEST[name]]
        for name, found in kept.items()
    }


def _place(line: PersonLine) -> tuple[Any, ...]:
    newest = -line.said_at.timestamp()
    if line.section == PROMISES:
        return line.day is None, line.day or date.max, newest
    if line.section == DATES:
        return line.day or line.until or date.max, newest
    if line.section == OPEN:
        # What a memory says is dealt with by nobody's card.
        return line.memory_id is not None, newest
    return TOPICS[line.section].index(line.topic), newest


def _replaced(ids: Iterable[UUID | None]) -> set[UUID]:
    """Return those of which staff are asked whether a newer one replaces them, as recall does."""
    open_ones = ProposalMemory.objects.filter(
        memory__in=[key for key in ids if key],
        proposal__kind=ProposalKind.REPLACE,
        proposal__state=ProposalState.OPEN,
    )
    return set(open_ones.exclude(number=1).values_list("memory_id", flat=True))


def _with_places(chat: Chat, sections: Sections) -> Sections:
    """Return the lines with the session and the message in which each was said."""
    lines = [line for found in sections.values() for line in found]
    mentioned = MemorySource.objects.filter(memory__in=[line.memory_id for line in lines])
    mentions: dict[UUID | None, list[UUID | None]] = {
        line.memory_id: [line.message_id] for line in lines if line.memory_id
    }
    for memory_id, message_id in mentioned.values_list("memory_id", "source_message_id"):
        mentions[memory_id].append(message_id)
    wanted = Q(pk__in=[key for keys in mentions.values() for key in keys if key])
    for line in lines:
        if line.session_id:
            wanted |= Q(session=line.session_id, content__contains=_beginning(line.text))
    found = Message.objects.filter(wanted, chat=chat.pk, revoked_at=None).order_by("order_num")
    rows = list(found.values_list("pk", "session_id", "content"))

    def placed(line: PersonLine) -> PersonLine:
        own = mentions.get(line.memory_id, [])
        for key, session_id, content in rows:
            of_card = session_id == line.session_id and _beginning(line.text) in content
            if key in own or of_card:
                return replace(line, session_id=session_id, message_id=key)
        return replace(line, message_id=None)

    return {name: [placed(line) for line in found] for name, found in sections.items()}


def _beginning(text: str) -> str:
    return text.rstrip(". …")[:FINDS]
