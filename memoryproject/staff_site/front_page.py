"""The first page, and the health and metrics endpoints."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Count, Min, Model
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from django.views.defaults import page_not_found
from django_q.models import Schedule
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from memories_app.models import Memory
from memoryproject import __version__, folders
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS, provider_states
from memoryproject.foundation.outside_services.models import ServiceName, services_sick
from memoryproject.foundation.process.own_address import absolute_url
from memoryproject.foundation.process.storage import free_bytes
from memoryproject.foundation.replica import replica_state
from memoryproject.staff_site import server_state
from memoryproject.staff_site.alerts import alerts_open
from sessions_app.conversations.history_queries import profile_current
from sessions_app.embedding.facade import texts_waiting
from sessions_app.models import Chat, ChatSession, Message, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseNotFound:
    """Say that there is nothing, in the language of the browser on any page."""
    with translation.override(translation.get_language_from_request(request)):
        return page_not_found(request, exception)


@csrf_exempt
@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Respond that the web server runs."""
    return JsonResponse({"status": "ok"})


@csrf_exempt
@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 if everything is up, else 503 with the parts that aren't.

    Outside services that don't answer are named. The server is ready without them.
    """
    found = server_state.parts()
    ready = all(part.ready for part in found)
    body = {
        "status": "ready" if ready else "not ready",
        "parts": {part.name: "ready" if part.ready else part.hint for part in found},
        "services": _services(),
    }
    return JsonResponse(body, status=200 if ready else 503)


def _services() -> dict[str, str]:
    """Return the sick services by name, with the time since which they don't answer."""
    try:
        sick = services_sick()
    except DatabaseError:
        return {}
    return {
        each.name: f"not answering since {each.sick_since or each.changed_at:%Y-%m-%dT%H:%M:%SZ}"
        for each in sick
    }


@csrf_exempt
@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics in the format that Prometheus requests."""
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(ServerCollector()), content_type=content_type)


@require_safe
@never_cache
def home(request: HttpRequest) -> HttpResponse:
    """Show what the server is, whether it runs, and the next steps."""
    found = server_state.parts()
    try:
        name = profile_current().name
    except DatabaseError:
        name = _("The assistant")
    context = {
        "assistant": name,
        "parts": found,
        "ready": all(part.ready for part in found),
        # Where the person types: in a clone, or with the wheel.
        "is_clone": folders.IS_CLONE,
        "commands": folders.TYPED,
        "memory_enabled": settings.ENABLE_MEMORY_SYSTEM,
        "webhooks": [absolute_url(reverse(f"webhook-{name}"), request) for name in PROVIDERS],
        "has_owner": bool(settings.GODFATHER_PHONE),
        "has_model": settings.CHAT_MODEL == "openai",
        "has_whatsapp": any(each.configured and not each.demo for each in provider_states()),
    }
    return render(request, "dashboard/home.html", context)


# The metrics for Prometheus.


# Names and labels are stable: docs/operations.md lists them, and a test compares.
TABLES: Mapping[str, type[Model]] = {
    "chats": Chat,
    "sessions": ChatSession,
    "messages": Message,
    "answers": Turn,
    "memories": Memory,
    "events": AuditEvent,
}
OTHER_OPEN_STATES = (TurnState.DEFERRED, TurnState.SENDING)
OPEN_STATES = (*WAITING_STATES, *OTHER_OPEN_STATES)
RECENT = timedelta(hours=1)
# In a busier hour only the newest turns are read, so that the cost is limited.
RECENT_TURNS = 10_000
QUANTILES = (0.5, 0.95)

RECENT_SQL = """
SELECT state, count(*), percentile_cont(%s) WITHIN GROUP
       (ORDER BY extract(epoch FROM finished_at - created_at))
FROM (SELECT state, created_at, finished_at, by_hand FROM {table} ORDER BY id DESC LIMIT %s)
     AS newest
WHERE finished_at > %s AND NOT by_hand GROUP BY state
"""
ROWS_SQL = """
SELECT relname, n_live_tup, n_tup_ins FROM pg_stat_user_tables WHERE relname = ANY(%s)
"""


class ServerCollector(Collector):
    """Collects all metrics for each scrape.

    If the database can't be reached, the metrics that need it are missing, and
    ``memory_part_ready`` reports it.
    """

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("memory_server", "The version.", {"version": __version__})
        found = server_state.parts()
        yield _readiness(found)
        yield GaugeMetricFamily(
            "memory_data_dir_free_bytes", "Room left for DATA_DIR.", free_bytes(settings.DATA_DIR)
        )
        if any(part.name == "migrations" and part.ready for part in found):
            for made in (_waiting, _recent, _rows, _attention, _jobs, _replica):
                yield from _of_database(made)


def _of_database(made: Callable[[], Iterable[Metric]]) -> list[Metric]:
    try:
        return list(made())
    except (DatabaseError, server_state.BrokerGoneError):
        return []


def _readiness(found: list[server_state.Part]) -> Metric:
    text = "1 where a part of the server is ready, as in /readyz."
    return _gauge("memory_part_ready", text, "part", {part.name: part.ready for part in found})


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return a gauge with a value for each value of its label."""
    gauge = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        gauge.add_metric([key], float(value))
    return gauge


def _replica() -> Iterator[Metric]:
    if not settings.DATABASE_REPLICA_URL:
        return
    state = replica_state()
    yield GaugeMetricFamily(
        "memory_replica_usable", "1 while staff's pages can read the replica.", not state.problem
    )
    if state.seconds is not None:
        text = "How far the replica is behind."
        yield GaugeMetricFamily("memory_replica_lag_seconds", text, state.seconds)


def _waiting() -> Iterator[Metric]:
    """Yield the number of unfinished turns.

    Each query has an index of its own, because it asks for that index's states and no others.
    """
    waiting = Turn.objects.filter(state__in=WAITING_STATES).order_by().values_list("state")
    rows = list(waiting.annotate(Count("id"), Min("created_at")))
    counted = {state: count for state, count, _oldest in rows}
    for state in OTHER_OPEN_STATES:
        counted[str(state)] = Turn.objects.filter(state=state).count()
    by_state = {str(state): counted.get(str(state), 0) for state in OPEN_STATES}
    text = "Messages whose answer is not out, by state."
    yield _gauge("memory_open_turns", text, "state", by_state)
    since = min((oldest for *_counted, oldest in rows), default=None)
    waited = (timezone.now() - since).total_seconds() if since else 0.0
    yield GaugeMetricFamily(
        "memory_oldest_waiting_turn_seconds", "How long the oldest of them waits.", max(waited, 0.0)
    )


def _recent() -> Iterator[Metric]:
    """Yield the results of the last hour's turns, and the durations of their answers."""
    with connection.cursor() as cursor:
        cursor.execute(
            RECENT_SQL.format(table=Turn._meta.db_table),
            [list(QUANTILES), RECENT_TURNS, timezone.now() - RECENT],
        )
        rows = {state: (count, seconds) for state, count, seconds in cursor.fetchall()}
    ended = [state for state in TurnState.values if state not in OPEN_STATES]
    numbers = {state: rows.get(state, (0, ()))[0] for state in ended}
    text = "Turns that ended in the last hour, by how."
    yield _gauge("memory_turns_last_hour", text, "state", numbers)
    # Without answers there is no duration, and none is reported.
    _, answered = rows.get(str(TurnState.SENT), (0, ()))
    took = dict(zip(map(str, QUANTILES), answered, strict=False))
    text = "From a message's arrival to its answer's end, of the last hour."
    yield _gauge("memory_answer_seconds_last_hour", text, "quantile", took)


def _rows() -> Iterator[Metric]:
    """Yield the database's own statistics: counting a million rows would take too long."""
    names = {model._meta.db_table: name for name, model in TABLES.items()}
    there = GaugeMetricFamily("memory_rows", "Rows, estimated.", labels=["of"])
    stored = CounterMetricFamily(
        "memory_rows_stored", "Rows stored since the statistics began.", labels=["of"]
    )
    with connection.cursor() as cursor:
        cursor.execute(ROWS_SQL, [list(names)])
        for table, live, inserted in cursor.fetchall():
            there.add_metric([names[table]], live)
            stored.add_metric([names[table]], inserted)
    yield there
    yield stored
    yield GaugeMetricFamily(
        "memory_database_bytes", "What the database takes.", server_state.database_bytes()
    )


def _attention() -> Iterator[Metric]:
    yield GaugeMetricFamily("memory_alerts_open", "What needs attention now.", len(alerts_open()))
    sick = {service.name for service in services_sick()}
    text = "1 while an outside service doesn't answer and is left alone."
    by_name = {name: name in sick for name in ServiceName.values}
    yield _gauge("memory_service_sick", text, "service", by_name)


def _jobs() -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "memory_queued_jobs", "Jobs that no worker has taken yet.", server_state.queue_depth()
    )
    yield GaugeMetricFamily(
        "memory_texts_without_vector",
        "Memories and messages that wait for their vector, and are found by their words.",
        texts_waiting(),
    )
    due = Schedule.objects.filter(next_run__isnull=False).aggregate(Min("next_run"))[
        "next_run__min"
    ]
    late = (timezone.now() - due).total_seconds() if due else 0.0
    yield GaugeMetricFamily(
        "memory_schedule_late_seconds", "By how much the latest schedule is late.", max(late, 0.0)
    )
