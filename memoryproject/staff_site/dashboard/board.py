"""The dashboard of one person: tiles with figures, and charts with their tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryproject.foundation.admin_kit.display import cost_shown
from memoryproject.foundation.admin_kit.periods import TODAY, period_named, span_key
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.integrations.llm.prices import ModelTokens
from memoryproject.staff_site.alerts.channels import alerts_open
from memoryproject.staff_site.dashboard import figure_links, health
from memoryproject.staff_site.dashboard.answer_tiles import Note, Tile, answer_tiles, review_tiles
from memoryproject.staff_site.dashboard.figure_links import Places
from memoryproject.staff_site.dashboard.figures import (
    Figures,
    PeriodFigures,
    count_shown,
    figures_of,
    seconds_shown,
    since_shown,
    slot_shown,
)
from sessions_app.inbound.facade import unprocessed_count
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.limits.facade import clients_day

# Staff with one of these permissions see figures; all others see links to their pages.
RIGHTS = (
    "sessions_app.view_message",
    "sessions_app.view_chat",
    "sessions_app.view_turn",
    "memories_app.view_memory",
    "sessions_app.view_forgetreceipt",
    "dashboard.operate_server",
)


@dataclass(frozen=True)
class Series:
    """A chart's line or bars.

    ``value`` takes a slot's figure, ``colour`` names a CSS variable, ``link`` leads from a slot's
    name to its list.
    """

    title: str
    colour: str
    value: Callable[[Figures], float | None]
    shown: Callable[[Any], str] = count_shown
    link: Callable[[str], str] = field(default=lambda _when: "")


@dataclass(frozen=True)
class Chart:
    """A chart.

    ``data``: the input of the script, as JSON. ``rows``: the same as a table, each row with its
    name and its cells, the texts with their addresses.
    """

    key: str
    title: str
    kind: str
    data: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Note]]]


@dataclass(frozen=True)
class Board:
    period: str
    is_empty: bool
    to_review: Sequence[Tile]
    answered: Sequence[Tile]
    happened: Sequence[Tile]
    charts: Sequence[Chart]
    now: Sequence[Tile]


def sees_figures(user: Any) -> bool:
    return any(user.has_perm(right) for right in RIGHTS)


def board_for(user: Any, *, period: str, now: datetime) -> Board:
    """Return the dashboard for a person. ``period``: a name of ``periods.DAYS``.

    The number of queries is constant.
    """
    to = Places(user)
    found = figures_of(period_named(period, now=now))
    return Board(
        period=period,
        is_empty=found.is_empty,
        to_review=list(review_tiles(to)),
        answered=list(answer_tiles(found.whole, to, period=period, now=now)),
        happened=list(_happened(found.whole, period, to)),
        charts=[] if found.is_empty else list(_charts(found, to)),
        now=list(_now(to, now)),
    )


def _happened(figures: Figures, when: str, to: Places) -> Iterator[Tile]:
    if to.may("sessions_app.view_message"):
        yield _messages(figures, when, to)
    if to.may("sessions_app.view_chat"):
        address = to.list_of(figure_links.CHATS, when)
        yield Tile("chats", _("Active chats"), count_shown(figures.chats), address)
    if to.may("sessions_app.view_turn"):
        yield _tokens(figures, to.costs(when))
    if to.may("memories_app.view_memory"):
        address = to.list_of(figure_links.MEMORIES, when, **figure_links.ALL_MEMORIES)
        yield Tile("added", _("Memories added"), count_shown(figures.memories_added), address)
    if to.may("sessions_app.view_forgetreceipt"):
        memories = ngettext(
            "with %(number)s memory", "with %(number)s memories", figures.memories_forgotten
        ) % {"number": count_shown(figures.memories_forgotten)}
        notes = [Note(memories)] if figures.memories_forgotten else []
        address = to.list_of(figure_links.RECEIPTS, when)
        value = count_shown(figures.receipts)
        yield Tile("forgotten", _("Erasures"), value, address, notes)


def _messages(figures: Figures, when: str, to: Places) -> Tile:
    from_people = _("%(number)s from people") % {"number": count_shown(figures.messages_in)}
    ours = _("%(number)s from the assistant") % {"number": count_shown(figures.messages_out)}
    notes = [
        Note(from_people, to.list_of(figure_links.MESSAGES, when, role__exact="user")),
        Note(ours, to.list_of(figure_links.MESSAGES, when, role__exact="assistant")),
    ]
    address = to.list_of(figure_links.MESSAGES, when)
    return Tile("messages", _("Messages"), count_shown(figures.messages), address, notes)


def _tokens(figures: Figures, address: str) -> Tile:
    by_model = figures.by_model(settings.MODEL_PRICES)
    in_out = _("%(tokens_in)s in, %(tokens_out)s out") % {
        "tokens_in": count_shown(figures.tokens_in),
        "tokens_out": count_shown(figures.tokens_out),
    }
    value = count_shown(figures.tokens_in + figures.tokens_out)
    notes = [Note(in_out), *map(Note, _costs(by_model))] if by_model else []
    return Tile("tokens", _("Tokens"), value, address, notes)


def _costs(by_model: Sequence[ModelTokens]) -> Iterator[str]:
    priced = [one.cost for one in by_model if one.cost is not None]
    if priced:
        yield _("estimated cost %(cost)s") % {"cost": cost_shown(sum(priced))}
    if len(priced) > 1:
        for one in by_model:
            if one.cost is not None:
                values = {"model": one.model, "cost": cost_shown(one.cost)}
                yield _("%(model)s: %(cost)s") % values
    unpriced = [one.model or _("a model without a name") for one in by_model if one.cost is None]
    if unpriced:
        yield _("no price set for %(models)s") % {"models": ", ".join(unpriced)}


def _charts(found: PeriodFigures, to: Places) -> Iterator[Chart]:
    def link(name: str, **filters: str) -> Callable[[str], str]:
        return lambda when: to.list_of(name, when, **filters)

    if to.may("sessions_app.view_message"):
        user = link(figure_links.MESSAGES, role__exact="user")
        ours = link(figure_links.MESSAGES, role__exact="assistant")
        series = [
            Series(_("From people"), "--chart-1", lambda one: one.messages_in, link=user),
            Series(_("From the assistant"), "--chart-2", lambda one: one.messages_out, link=ours),
        ]
        yield _chart("messages", _("Messages"), "bar", series, found)
    if to.may("sessions_app.view_chat"):
        chats = Series(
            _("Active chats"), "--chart-2", lambda one: one.chats, link=link(figure_links.CHATS)
        )
        yield _chart("chats", _("Active chats"), "bar", [chats], found)
    if to.may("sessions_app.view_turn"):
        yield _chart("turns", _("Answers"), "bar", _turn_series(link), found)
        times = [
            Series(_("Median"), "--chart-1", lambda one: one.p50, seconds_shown),
            Series(_("95 of 100"), "--chart-3", lambda one: one.p95, seconds_shown),
        ]
        yield _chart("times", _("Answer time in seconds"), "line", times, found)
        tokens = [
            Series(_("Tokens in"), "--chart-1", lambda one: one.tokens_in),
            Series(_("Tokens out"), "--chart-2", lambda one: one.tokens_out),
        ]
        yield _chart("tokens", _("Tokens"), "bar", tokens, found)
    memories = list(_memory_series(link, to))
    if memories:
        yield _chart("memories", _("Memory"), "bar", memories, found)


def _turn_series(link: Callable[..., Callable[[str], str]]) -> list[Series]:
    sent, failed, missed = (
        link(figure_links.TURNS, state__exact=state) for state in ("sent", "failed", "missed")
    )
    return [
        Series(_("Answered"), "--chart-1", lambda one: one.answers, link=sent),
        Series(_("Failed"), "--chart-bad", lambda one: one.failed, link=failed),
        Series(_("Missed"), "--chart-3", lambda one: one.missed, link=missed),
    ]


def _memory_series(link: Callable[..., Callable[[str], str]], to: Places) -> Iterator[Series]:
    if to.may("memories_app.view_memory"):
        address = link(figure_links.MEMORIES, **figure_links.ALL_MEMORIES)
        yield Series(_("Added"), "--chart-1", lambda one: one.memories_added, link=address)
    if to.may("sessions_app.view_forgetreceipt"):
        address = link(figure_links.RECEIPTS)
        yield Series(_("Erasures"), "--chart-3", lambda one: one.receipts, link=address)


def _chart(
    key: str, title: str, kind: str, series: Sequence[Series], found: PeriodFigures
) -> Chart:
    labels = [slot_shown(slot.start, found.period) for slot in found.slots]
    data = {
        "labels": labels,
        "series": [
            {"title": one.title, "colour": one.colour, "values": _values(one, found.slots)}
            for one in series
        ],
    }
    rows = [
        (label, [_cell(one, slot) for one in series])
        for label, slot in zip(labels, found.slots, strict=True)
    ]
    return Chart(key, title, kind, json.dumps(data), [one.title for one in series], rows)


def _values(series: Series, slots: Sequence[Figures]) -> list[float | None]:
    values = map(series.value, slots)
    return [value if value is None else round(value, 2) for value in values]


def _cell(series: Series, slot: Figures) -> Note:
    value = series.value(slot)
    return Note(series.shown(value), series.link(span_key(slot.start, slot.end)) if value else "")


def _limits(to: Places, now: datetime) -> Tile:
    """Return the tile of the chats that reached a limit, with what all clients used today."""
    limits = build_usage_limits()
    found = clients_day(limits.day_of(now))
    calls = ngettext("%(number)s model call", "%(number)s model calls", found.used.calls) % {
        "number": count_shown(found.used.calls)
    }
    tokens = _("%(number)s tokens") % {"number": count_shown(found.used.tokens)}
    notes = [Note(_("clients today: %(calls)s, %(tokens)s") % {"calls": calls, "tokens": tokens})]
    cost = cost_shown(found.used.cost)
    budget = limits.daily_budget
    if budget:
        values = {"cost": cost, "budget": cost_shown(budget)}
        notes.append(Note(_("%(cost)s of the budget of %(budget)s") % values))
    elif limits.prices:
        notes.append(Note(_("estimated cost %(cost)s") % {"cost": cost}, to.costs(TODAY)))
    is_spent = bool(budget) and found.used.cost >= budget
    tone = "bad" if is_spent else "warn" if found.limited else ""
    address = to.list_of(figure_links.CHATS, **figure_links.LIMITED)
    return Tile("limits", _("Limits reached"), count_shown(found.limited), address, notes, tone)


def _now(to: Places, now: datetime) -> Iterator[Tile]:
    if to.may("sessions_app.view_turn"):
        found = health.waiting_turns()
        notes = []
        if found.since:
            oldest = since_shown(found.since, now=now)
            notes.append(Note(_("the oldest for %(time)s") % {"time": oldest}))
        address = to.list_of(figure_links.TURNS, **figure_links.WAITING)
        yield Tile("waiting", _("Awaiting answer"), count_shown(found.turns), address, notes)
    if to.may("sessions_app.view_chat"):
        yield _limits(to, now)
    if to.may("sessions_app.view_inbounddelivery") and (failed := unprocessed_count()):
        address = to.list_of(figure_links.DELIVERIES, **figure_links.UNPROCESSED)
        hint = [Note(_("tried again by themselves for 17 hours"))]
        number = count_shown(failed)
        yield Tile("unprocessed", _("Events not processed"), number, address, hint, "bad")
    if to.may("dashboard.operate_server"):
        yield from _alerts(to)
        yield from _machine(health.server_state(now=now), to, now)


def _alerts(to: Places) -> Iterator[Tile]:
    """One tile for all open alerts; none where nothing is wrong."""
    if alerts := alerts_open():
        notes = [Note(translate_error(alert.text)) for alert in alerts[:3]]
        number = count_shown(len(alerts))
        yield Tile("alerts", _("Alerts"), number, to.operations(), notes, "bad")


def _machine(found: health.Machine, to: Places, now: datetime) -> Iterator[Tile]:
    operations = to.operations()
    queued = to.list_of(figure_links.QUEUE) or operations
    value = _("unknown") if found.queued is None else count_shown(found.queued)
    tone = "warn" if found.queued is None else ""
    yield Tile("queue", _("Jobs in the queue"), value, queued, tone=tone)
    if found.clusters:
        workers = count_shown(found.workers)
        yield Tile("workers", _("Workers"), workers, operations, [Note(_("running"))], "good")
    else:
        hint = [Note(_("Nothing is answered. Start them: manage.py qcluster"))]
        yield Tile("workers", _("Workers"), _("none running"), operations, hint, "bad")
    yield _schedules(found, to.list_of(figure_links.SCHEDULES) or operations, now)
    free = [Note(_("%(size)s free on the disk") % {"size": filesizeformat(found.free_bytes)})]
    tone = "bad" if found.is_full else ""
    size = filesizeformat(found.database_bytes)
    yield Tile("storage", _("Database"), size, operations, free, tone, is_restless=True)


def _schedules(found: health.Machine, address: str, now: datetime) -> Tile:
    title, number = _("Schedules"), {"number": count_shown(found.schedules)}
    if not found.schedules:
        hint = [Note(_("Install them: manage.py install_schedules"))]
        return Tile("schedules", title, _("none installed"), address, hint, "bad")
    if found.late_since is None:
        every = ngettext("%(number)s schedule", "%(number)s schedules", found.schedules) % number
        return Tile("schedules", title, _("on time"), address, [Note(every)], "good")
    late = ngettext("%(number)s late", "%(number)s late", found.late)
    since = _("the latest by %(time)s") % {"time": since_shown(found.late_since, now=now)}
    value = late % {"number": count_shown(found.late)}
    return Tile("schedules", title, value, address, [Note(since)], "bad")
