"""The figures of a period and of each of its hours or days, and tiles that show them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Min, Q, Sum
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _, ngettext

from memoryproject.foundation.admin_kit.list_filters import DAYS, PARAMETER, TODAY, Period, midnight
from memoryproject.foundation.integrations.llm.base import ModelTokens, model_tokens
from memoryproject.staff_site.dashboard.rollups import SUMS, percentile, slots_read
from memoryproject.staff_site.models import Quarter
from sessions_app.inbox.needs import MAX_RESULTS, MAX_WAITING, counted, to_review_ids, waiting_for
from sessions_app.models import CheckQuestion
from sessions_app.models.trials import READS_QUESTIONS, REGRESSED
from sessions_app.models.turns import WAITING_STATES
from sessions_app.outcomes.outcome_pages import COUNTS, RIGHTS, outcomes_ended, share_shown
from sessions_app.promises.pages import promises_due


@dataclass
class Figures:
    """The figures of a period.

    ``chats``: with a message or a turn. ``durations``: answers by bin (see ``rollups``).
    ``tokens``: those sent and received, by model. ``receipts``: of forgetting.
    """

    start: datetime
    end: datetime
    messages: int = 0
    messages_in: int = 0
    messages_out: int = 0
    chats: int = 0
    answers: int = 0
    failed: int = 0
    missed: int = 0
    held: int = 0
    unknown: int = 0
    rated_good: int = 0
    rated_bad: int = 0
    memories_added: int = 0
    receipts: int = 0
    memories_forgotten: int = 0
    durations: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    tokens: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def p50(self) -> float | None:
        return percentile(self.durations, 0.5)

    @property
    def p95(self) -> float | None:
        return percentile(self.durations, 0.95)

    @property
    def tokens_in(self) -> int:
        return sum(prompt for prompt, _ in self.tokens.values())

    @property
    def tokens_out(self) -> int:
        return sum(completion for _, completion in self.tokens.values())

    def by_model(self, prices: Mapping[str, tuple[float, float]]) -> list[ModelTokens]:
        """Return the tokens of each model with their cost, the most used first."""
        found = [model_tokens(model, *tokens, prices) for model, tokens in self.tokens.items()]
        return sorted(found, key=lambda one: (-one.prompt - one.completion, one.model))

    def _add(self, found: Mapping[str, Any]) -> None:
        """Add a slot's figures, except its chats, which can't be added up."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + int(found["sums"].get(name, 0)))
        for number, answers in found["bins"]:
            self.durations[number] += int(answers)
        for model, prompt, completion in found["tokens"]:
            before = self.tokens.get(model, (0, 0))
            self.tokens[model] = (before[0] + int(prompt), before[1] + int(completion))


@dataclass(frozen=True)
class PeriodFigures:
    period: Period
    whole: Figures
    slots: list[Figures]

    @property
    def is_empty(self) -> bool:
        whole = self.whole
        return not (whole.chats or whole.messages or whole.memories_added or whole.receipts)


def figures_of(period: Period) -> PeriodFigures:
    """Return all current figures of a period."""
    read = slots_read(period.borders)
    whole = Figures(period.start, period.end, chats=read.chats)
    slots = []
    for start, end, found in zip(period.borders, period.borders[1:], read.slots, strict=False):
        figures = Figures(start, end, chats=int(found["chats"]))
        slots.append(figures)
        for each in (figures, whole):
            each._add(found)
    return PeriodFigures(period, whole, slots)


# Formats figures in the language and time zone of the reader.


MINUTE, HOUR, DAY = 60, 3_600, 86_400


def count_shown(number: float) -> str:
    return number_format(number, force_grouping=True)


def mean_shown(number: float) -> str:
    """Return a mean, with one decimal where it is small and no whole number."""
    digits = 1 if number < 10 and round(number, 1) % 1 else 0
    return number_format(round(number, digits), digits, force_grouping=True)


def seconds_shown(seconds: float | None) -> str:
    """Return seconds with a fitting precision; a dash for None."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return _("%(seconds)s s") % {"seconds": number_format(seconds, 1)}
    if seconds < 2 * MINUTE:
        return _("%(seconds)s s") % {"seconds": number_format(seconds, 0)}
    if seconds < 2 * HOUR:
        minutes = round(seconds / MINUTE)
        return ngettext("%(number)s minute", "%(number)s minutes", minutes) % {"number": minutes}
    if seconds < 2 * DAY:
        hours = round(seconds / HOUR)
        return ngettext("%(number)s hour", "%(number)s hours", hours) % {"number": hours}
    days = round(seconds / DAY)
    return ngettext("%(number)s day", "%(number)s days", days) % {"number": days}


def since_shown(since: datetime, *, now: datetime) -> str:
    return seconds_shown(max((now - since) / timedelta(seconds=1), 0.0))


def slot_shown(start: datetime, period: Period) -> str:
    """Return the name of a slot: an hour of today, or a day."""
    local = timezone.localtime(start)
    return date_format(local, "H:i" if period.is_hourly else "j M")


# Tiles: figures with links to their lists, and how well the assistant did.


MESSAGES = "sessions_app_message"
CHATS = "sessions_app_chat"
TURNS = "sessions_app_turn"
MEMORIES = "memories_app_memory"
MERGES = "memories_app_mergeproposal"
RECEIPTS = "sessions_app_forgetreceipt"
SCHEDULES = "django_q_schedule"
QUEUE = "django_q_ormq"
DELIVERIES = "sessions_app_inbounddelivery"

# Filters besides the period that make the list show the rows that the figure counts.
ALL_MEMORIES = {"state": "all"}
UNPROCESSED = {"processed": "no"}
HELD = {"state__exact": "held"}
RATED_BAD, RATED_GOOD = {"review": "bad"}, {"review": "good"}
TO_REVIEW = {"review": "todo"}
LIMITED = {"access": "limited"}
# Raw lookups, as Django's own lists accept them.
WAITING = {"state__in": ",".join(WAITING_STATES)}


class Places:
    """The lists and pages that a person may open."""

    def __init__(self, user: Any) -> None:
        self.user = user

    def may(self, right: str) -> bool:
        return bool(self.user.has_perm(right))

    def page(self, name: str, *rights: str, **query: str) -> str:
        """Return the address of a page; empty if this person lacks one of the rights."""
        if not all(map(self.may, rights)):
            return ""
        address = reverse(f"admin:{name}")
        return f"{address}?{urlencode(query)}" if query else address

    def list_of(self, name: str, when: str = "", **filters: str) -> str:
        """Return the address of a list within a period; empty if this person has no such list."""
        app_label, model = name.rsplit("_", 1)
        query = {PARAMETER: when, **filters} if when else filters
        return self.page(f"{name}_changelist", f"{app_label}.view_{model}", **query)

    def unknown_questions(self, when: str) -> str:
        """Return the address of a period's unknown questions, by topic."""
        rights = ("sessions_app.view_turn", "sessions_app.view_message")
        return self.page("sessions_app_turn_unknown", *rights, period=when)

    def operations(self) -> str:
        return self.page("operations", "dashboard.operate_server")

    def costs(self, when: str) -> str:
        """Return the address of the costs of a period."""
        return self.page("costs", "sessions_app.view_turn", period=when)


# A figure of the dashboard, and what stands under it.


@dataclass(frozen=True)
class Note:
    """A text under a figure, with a link to the list that it refers to."""

    text: str
    address: str = ""


@dataclass(frozen=True)
class Tile:
    """One figure. ``tone``: good, warn, bad, or empty.

    ``is_restless``: it changes by itself at any moment, whatever people and staff do.
    """

    key: str
    title: str
    value: str | int
    address: str = ""
    notes: Sequence[Note] = ()
    tone: str = ""
    is_restless: bool = False

    @property
    def shown(self) -> str:
        return self.value if isinstance(self.value, str) else count_shown(self.value)


# How well the assistant did: outcomes of questions, beside the usual ones.


def answer_tiles(figures: Figures, to: Places, usual: "Usual") -> Iterator[Tile]:
    """Yield what became of the questions of a period, beside what is usual."""
    if not to.may("sessions_app.view_turn"):
        return
    sent = to.list_of(TURNS, usual.period, state__exact="sent")
    yield _outcome(figures, usual, "answers", _("Answers"), sent)
    unknown = to.list_of(TURNS, usual.period, review="unknown")
    note = Note(_("nothing was recalled"), to.unknown_questions(usual.period))
    yield _outcome(figures, usual, "unknown", _("Unknown questions"), unknown, note, "warn")
    held = to.list_of(TURNS, usual.period, **HELD)
    yield _outcome(figures, usual, "held", _("Held"), held, Note(_("left to a person")))
    failed = to.list_of(TURNS, usual.period, state__exact="failed")
    yield _outcome(figures, usual, "failed", _("Failed"), failed, tone="bad")
    yield _helped(figures, usual, to)
    slow = _("95 %% under %(time)s") % {"time": seconds_shown(figures.p95)}
    notes = [Note(slow)] if figures.answers else []
    yield Tile("time", _("Answer time, median"), seconds_shown(figures.p50), sent, notes)


def rarer_tiles(figures: Figures, to: Places, usual: "Usual") -> Iterator[Tile]:
    """Yield the outcomes that matter less."""
    if not to.may("sessions_app.view_turn"):
        return
    missed = to.list_of(TURNS, usual.period, state__exact="missed")
    late = Note(_("past WhatsApp's 24 hours"))
    yield _outcome(figures, usual, "missed", _("Too late to answer"), missed, late, "warn")
    bad, good = (to.list_of(TURNS, usual.period, **each) for each in (RATED_BAD, RATED_GOOD))
    yield _ratings(figures, usual, bad, good)


def _helped(figures: Figures, usual: "Usual", to: Places) -> Tile:
    counts = outcomes_ended(figures.start, figures.end).aggregate(**COUNTS)
    address = to.page("sessions_app_turn_outcomes", *RIGHTS, period=usual.period)
    return Tile("helped", _("Did it help?"), share_shown(counts), address)


def _outcome(
    figures: Figures,
    usual: "Usual",
    name: str,
    title: str,
    address: str,
    note: Note | None = None,
    tone: str = "",
) -> Tile:
    count = int(getattr(figures, name))
    notes = [each for each in (note, Note(_compared(usual, name))) if each and each.text]
    return Tile(name, title, count, address, notes, tone if count else "")


def _ratings(figures: Figures, usual: "Usual", bad: str, good: str) -> Tile:
    rated = ngettext("%(number)s rated good", "%(number)s rated good", figures.rated_good)
    notes = [Note(rated % {"number": count_shown(figures.rated_good)}, good)]
    if compared := _compared(usual, "rated_bad"):
        notes.append(Note(compared))
    tone = "bad" if figures.rated_bad else ""
    return Tile("rated_bad", _("Rated bad"), figures.rated_bad, bad, notes, tone)


def _compared(usual: "Usual", name: str) -> str:
    """Return what is usual; empty where nothing can be compared."""
    if not usual.days:
        return ""
    number = {"number": mean_shown(usual.means[name])}
    if usual.period != TODAY:
        return _("the %(days)s days before: %(number)s") % {**number, "days": usual.days}
    if usual.is_yesterday:
        return _("yesterday by this time: %(number)s") % number
    return _("usual by this time: %(number)s") % number


# What a period is compared with: today with the usual figures of its weekday until this time, and
# some days with as many days before them.

NAMES = ("answers", "held", "failed", "missed", "unknown", "rated_good", "rated_bad")
WEEKS = 4


@dataclass(frozen=True)
class Usual:
    """The figures that those of a period are compared with, by their names.

    ``days``: how many days they are of; 0 if nothing can be compared. ``is_yesterday``: they are
    those of yesterday, as no such weekday is known yet.
    """

    period: str = TODAY
    days: int = 0
    is_yesterday: bool = False
    means: Mapping[str, float] = field(default_factory=dict)


def usual_for(period: Period, *, now: datetime) -> Usual:
    """Return what the figures of a period are compared with."""
    if period.key == TODAY:
        return usual_until(now)
    before = (period.start - (period.end - period.start), period.start)
    found = figures_of(Period(period.key, before))
    days = 0 if found.is_empty else DAYS[period.key]
    return Usual(period.key, days, means={name: getattr(found.whole, name) for name in NAMES})


def usual_until(now: datetime) -> Usual:
    """Return what the last four same weekdays had until this time of the day; else yesterday.

    Days of the active time zone. Only days count since the first one of these weeks of which
    anything is known. The stored quarters are read, in one query: what changed in the last minute
    isn't compared.
    """
    local, zone = timezone.localtime(now), timezone.get_current_timezone()
    weekdays = [local.date() - timedelta(weeks=week) for week in range(1, WEEKS + 1)]
    yesterday = local.date() - timedelta(days=1)
    weeks = Quarter.objects.filter(starts_at__gte=midnight(weekdays[-1], zone))
    found = weeks.aggregate(
        first=Min("starts_at"),
        **{f"week_{name}": Sum(name, filter=_until(weekdays, local)) for name in NAMES},
        **{f"day_{name}": Sum(name, filter=_until([yesterday], local)) for name in NAMES},
    )
    if found["first"] is None:
        return Usual()
    first = timezone.localtime(found["first"]).date()
    known = sum(day >= first for day in weekdays)
    if known:
        return Usual(
            days=known, means={name: (found[f"week_{name}"] or 0) / known for name in NAMES}
        )
    if yesterday >= first:
        means = {name: float(found[f"day_{name}"] or 0) for name in NAMES}
        return Usual(days=1, is_yesterday=True, means=means)
    return Usual()


def _until(days: Sequence[date], local: datetime) -> Q:
    """Match the quarters of these days that began before this time of the day."""
    within, zone = Q(), timezone.get_current_timezone()
    for day in days:
        until = datetime.combine(day, local.time(), local.tzinfo)
        within |= Q(starts_at__gte=midnight(day, zone), starts_at__lt=until)
    return within


# The figures of what staff are to review, each with the way there.


def _queue(to: Places) -> Tile:
    """Return the number of rows of the queue, as the menu's badge and the tab have it."""
    waiting = waiting_for(to.user)
    review, proposals = to.page("memories_app_memory_waiting"), to.list_of(MERGES)
    notes = [
        Note(text % {"number": counted(number)}, address)
        for number, text, address in (
            (waiting.conversations, _("conversations: %(number)s"), ""),
            (waiting.suggested, _("suggested memories: %(number)s"), review),
            (waiting.proposals, _("duplicates and contradictions: %(number)s"), proposals),
        )
        if number
    ]
    value = counted(waiting.total)
    address = to.list_of(CHATS, needs="1") if to.may("sessions_app.view_chat") else review
    return Tile("attention", _("Needs you"), value, address, notes, "bad" if value else "")


def review_tiles(to: Places) -> Iterator[Tile]:
    """Yield what waits for somebody of the staff; an empty list is a figure, too."""
    if to.may("sessions_app.view_chat") or to.may("memories_app.view_memory"):
        yield _queue(to)
    if to.may("memories_app.view_memory"):
        count = promises_due()
        notes = [Note(_("overdue or due today"))]
        address = to.page("memories_app_memory_promises", state="due")
        yield Tile("promises", _("Promises"), count, address, notes, "warn" if count else "")
    if to.may("sessions_app.view_turn"):
        count = len(to_review_ids())
        address = to.list_of(TURNS, **TO_REVIEW)
        notes = [Note(_("bad, failed, or without a memory"))]
        title, tone = _("Answers to review"), "warn" if count else ""
        yield Tile("answers_review", title, counted(count, MAX_RESULTS), address, notes, tone)
    if all(map(to.may, READS_QUESTIONS)):
        failing = list(CheckQuestion.objects.filter(REGRESSED).order_by("-since")[:MAX_WAITING])
        page = "admin:sessions_app_checkquestion_change"
        notes = [Note(str(each), reverse(page, args=[each.pk])) for each in failing[:3]]
        address = to.page("sessions_app_checkquestion_changelist", state="regressed")
        title, tone = _("Questions answered worse"), "bad" if failing else ""
        yield Tile("regressed", title, counted(len(failing)), address, notes, tone)
