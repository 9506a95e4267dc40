"""The dashboard of one person: tiles with figures, and charts with their tables."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Count, Min
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _, ngettext
from django_q.models import Schedule

from memoryproject.foundation.admin_kit.display import cost_shown
from memoryproject.foundation.admin_kit.list_filters import TODAY, period_named, span_key
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.integrations.llm.base import ModelTokens
from memoryproject.foundation.process.storage import MIN_FREE_BYTES, free_bytes
from memoryproject.staff_site import server_state
from memoryproject.staff_site.alerts import alerts_open
from memoryproject.staff_site.dashboard.figures import (
    ALL_MEMORIES,
    CHATS,
    DELIVERIES,
    LIMITED,
    MEMORIES,
    MESSAGES,
    QUEUE,
    RECEIPTS,
    SCHEDULES,
    TURNS,
    UNPROCESSED,
    WAITING,
    Figures,
    Note,
    PeriodFigures,
    Places,
    Tile,
    answer_tiles,
    count_shown,
    figures_of,
    rarer_tiles,
    review_tiles,
    seconds_shown,
    since_shown,
    slot_shown,
    usual_for,
)
from sessions_app.inbound.facade import unprocessed_count
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.limits.figures import clients_day
from sessions_app.models import Turn
from sessions_app.models.turns import WAITING_STATES

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

    ``figure``: the name of a slot's figure. ``colour`` names a CSS variable. ``rows`` is the list
    of what is counted, with its filters.
    """

    title: str
    figure: str
    colour: str
    rows: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)
    shown: Callable[[Any], str] = count_shown


def sees_figures(user: Any) -> bool:
    return any(user.has_perm(right) for right in RIGHTS)


def board_for(user: Any, *, period: str, now: datetime) -> dict[str, Any]:
    """Return the dashboard for a person: its tiles and charts. ``period``: of ``periods.DAYS``.

    The number of queries is constant.
    """
    to = Places(user)
    found = figures_of(period_named(period, now=now))
    usual = usual_for(found.period, now=now)
    current = list(_now(to, now))
    urgent = [tile for tile in current if tile.tone == "bad"]
    return {
        "period": period,
        "is_empty": found.is_empty,
        "needed": [*urgent, *review_tiles(to)],
        "answered": list(answer_tiles(found.whole, to, usual)),
        "happened": [*_happened(found.whole, period, to), *rarer_tiles(found.whole, to, usual)],
        "charts": [] if found.is_empty else list(_charts(found, to)),
        "now": [tile for tile in current if tile not in urgent],
    }


def _happened(figures: Figures, when: str, to: Places) -> Iterator[Tile]:
    if to.may("sessions_app.view_message"):
        yield _messages(figures, when, to)
    if to.may("sessions_app.view_chat"):
        yield Tile("chats", _("Active chats"), figures.chats, to.list_of(CHATS, when))
    if to.may("sessions_app.view_turn"):
        yield _tokens(figures, to.costs(when))
    if to.may("memories_app.view_memory"):
        address = to.list_of(MEMORIES, when, **ALL_MEMORIES)
        yield Tile("added", _("Memories added"), figures.memories_added, address)
    if to.may("sessions_app.view_forgetreceipt"):
        number = figures.memories_forgotten
        memories = ngettext("with %(number)s memory", "with %(number)s memories", number)
        notes = [Note(memories % {"number": count_shown(number)})] if number else []
        address = to.list_of(RECEIPTS, when)
        yield Tile("forgotten", _("Erasures"), figures.receipts, address, notes)


def _messages(figures: Figures, when: str, to: Places) -> Tile:
    from_people = _("%(number)s from people") % {"number": count_shown(figures.messages_in)}
    ours = _("%(number)s from the assistant") % {"number": count_shown(figures.messages_out)}
    notes = [
        Note(from_people, to.list_of(MESSAGES, when, role__exact="user")),
        Note(ours, to.list_of(MESSAGES, when, role__exact="assistant")),
    ]
    address = to.list_of(MESSAGES, when)
    return Tile("messages", _("Messages"), figures.messages, address, notes)


def _tokens(figures: Figures, address: str) -> Tile:
    by_model = figures.by_model(settings.MODEL_PRICES)
    in_out = _("%(tokens_in)s in, %(tokens_out)s out") % {
        "tokens_in": count_shown(figures.tokens_in),
        "tokens_out": count_shown(figures.tokens_out),
    }
    notes = [Note(in_out), *map(Note, _costs(by_model))] if by_model else []
    return Tile("tokens", _("Tokens"), figures.tokens_in + figures.tokens_out, address, notes)


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


def _chart(
    found: PeriodFigures, to: Places, key: str, title: str, *series: Series, kind: str = "bar"
) -> dict[str, Any]:
    """Return a chart.

    ``data``: the input of the script, as JSON. ``rows``: the same as a table, each row with its
    name and its cells, the texts with their addresses.
    """
    labels = [slot_shown(slot.start, found.period) for slot in found.slots]
    drawn = [
        {"title": one.title, "colour": one.colour, "values": _values(one, found.slots)}
        for one in series
    ]
    rows = [
        (label, [_cell(one, slot, to) for one in series])
        for label, slot in zip(labels, found.slots, strict=True)
    ]
    data = json.dumps({"labels": labels, "series": drawn})
    columns = [one.title for one in series]
    shown = {"data": data, "columns": columns, "rows": rows}
    return {"key": key, "title": title, "kind": kind, **shown}


def _charts(found: PeriodFigures, to: Places) -> Iterator[dict[str, Any]]:
    chart = partial(_chart, found, to)
    first, second, third = "--chart-1", "--chart-2", "--chart-3"
    if to.may("sessions_app.view_message"):
        user, ours = {"role__exact": "user"}, {"role__exact": "assistant"}
        yield chart(
            "messages",
            _("Messages"),
            Series(_("From people"), "messages_in", first, MESSAGES, user),
            Series(_("From the assistant"), "messages_out", second, MESSAGES, ours),
        )
    if to.may("sessions_app.view_chat"):
        chats = Series(_("Active chats"), "chats", second, CHATS)
        yield chart("chats", _("Active chats"), chats)
    if to.may("sessions_app.view_turn"):
        sent, failed, missed = ({"state__exact": each} for each in ("sent", "failed", "missed"))
        yield chart(
            "turns",
            _("Answers"),
            Series(_("Answered"), "answers", first, TURNS, sent),
            Series(_("Failed"), "failed", "--chart-bad", TURNS, failed),
            Series(_("Missed"), "missed", third, TURNS, missed),
        )
        median = Series(_("Median"), "p50", first, shown=seconds_shown)
        slow = Series(_("95 of 100"), "p95", third, shown=seconds_shown)
        yield chart("times", _("Answer time in seconds"), median, slow, kind="line")
        tokens_in = Series(_("Tokens in"), "tokens_in", first)
        tokens_out = Series(_("Tokens out"), "tokens_out", second)
        yield chart("tokens", _("Tokens"), tokens_in, tokens_out)
    memories = []
    if to.may("memories_app.view_memory"):
        added, every = _("Added"), ALL_MEMORIES
        memories.append(Series(added, "memories_added", first, MEMORIES, every))
    if to.may("sessions_app.view_forgetreceipt"):
        memories.append(Series(_("Erasures"), "receipts", third, RECEIPTS))
    if memories:
        yield chart("memories", _("Memory"), *memories)


def _values(series: Series, slots: Sequence[Figures]) -> list[float | None]:
    values = [getattr(slot, series.figure) for slot in slots]
    return [value if value is None else round(value, 2) for value in values]


def _cell(series: Series, slot: Figures, to: Places) -> Note:
    value, when = getattr(slot, series.figure), span_key(slot.start, slot.end)
    address = to.list_of(series.rows, when, **series.filters) if value and series.rows else ""
    return Note(series.shown(value), address)


def _limits(to: Places, now: datetime) -> Tile:
    """Return the tile of the chats that reached a limit, with what all clients used today."""
    limits = build_usage_limits()
    today, limited = clients_day(limits.day_of(now))
    calls = ngettext("%(number)s model call", "%(number)s model calls", today.calls)
    used = {
        "calls": calls % {"number": count_shown(today.calls)},
        "tokens": _("%(number)s tokens") % {"number": count_shown(today.tokens)},
    }
    notes = [Note(_("clients today: %(calls)s, %(tokens)s") % used)]
    cost = cost_shown(today.cost)
    budget = limits.daily_budget
    if budget:
        values = {"cost": cost, "budget": cost_shown(budget)}
        notes.append(Note(_("%(cost)s of the budget of %(budget)s") % values))
    elif limits.prices:
        notes.append(Note(_("estimated cost %(cost)s") % {"cost": cost}, to.costs(TODAY)))
    is_spent = bool(budget) and today.cost >= budget
    tone = "bad" if is_spent else "warn" if limited else ""
    address = to.list_of(CHATS, **LIMITED)
    return Tile("limits", _("Limits reached"), limited, address, notes, tone)


def _now(to: Places, now: datetime) -> Iterator[Tile]:
    if to.may("sessions_app.view_turn"):
        waiting = Turn.objects.filter(state__in=WAITING_STATES).order_by()
        found = waiting.aggregate(turns=Count("id"), since=Min("created_at"))
        notes = []
        if found["since"]:
            oldest = since_shown(found["since"], now=now)
            notes.append(Note(_("the oldest for %(time)s") % {"time": oldest}))
        address = to.list_of(TURNS, **WAITING)
        yield Tile("waiting", _("Awaiting answer"), found["turns"], address, notes)
    if to.may("sessions_app.view_chat"):
        yield _limits(to, now)
    if to.may("sessions_app.view_inbounddelivery") and (failed := unprocessed_count()):
        address = to.list_of(DELIVERIES, **UNPROCESSED)
        hint = [Note(_("tried again by themselves for 17 hours"))]
        yield Tile("unprocessed", _("Events not processed"), failed, address, hint, "bad")
    if to.may("dashboard.operate_server"):
        if alerts := alerts_open():
            notes = [Note(translate_error(alert.text)) for alert in alerts[:3]]
            yield Tile("alerts", _("Alerts"), len(alerts), to.operations(), notes, "bad")
        yield from _machine(to, now)


def _machine(to: Places, now: datetime) -> Iterator[Tile]:
    operations = to.operations()
    try:
        working, queued = server_state.clusters_working(), count_shown(server_state.jobs_known())
    except server_state.BrokerGoneError:
        working, queued = [], ""
    address = to.list_of(QUEUE) or operations
    title, tone = _("Jobs in the queue"), "" if queued else "warn"
    yield Tile("queue", title, queued or _("unknown"), address, tone=tone)
    if working:
        workers = sum(len(cluster.workers) for cluster in working)
        yield Tile("workers", _("Workers"), workers, operations, [Note(_("running"))], "good")
    else:
        hint = [Note(_("Nothing is answered. Start them: manage.py qcluster"))]
        yield Tile("workers", _("Workers"), _("none running"), operations, hint, "bad")
    yield _schedules(to.list_of(SCHEDULES) or operations, now)
    free = free_bytes(settings.DATA_DIR)
    notes = [Note(_("%(size)s free on the disk") % {"size": filesizeformat(free)})]
    tone = "bad" if free < MIN_FREE_BYTES else ""
    size = filesizeformat(server_state.database_bytes())
    yield Tile("storage", _("Database"), size, operations, notes, tone, is_restless=True)


def _schedules(address: str, now: datetime) -> Tile:
    title, found = _("Schedules"), Schedule.objects.exclude(repeats=0).count()
    if not found:
        hint = [Note(_("Install them: manage.py install_schedules"))]
        return Tile("schedules", title, _("none installed"), address, hint, "bad")
    late = server_state.schedules_late(now)
    if not late:
        every = ngettext("%(number)s schedule", "%(number)s schedules", found)
        notes = [Note(every % {"number": count_shown(found)})]
        return Tile("schedules", title, _("on time"), address, notes, "good")
    value = ngettext("%(number)s late", "%(number)s late", len(late))
    since = since_shown(late[0].next_run, now=now)
    notes = [Note(_("the latest by %(time)s") % {"time": since})]
    return Tile(
        "schedules", title, value % {"number": count_shown(len(late))}, address, notes, "bad"
    )
