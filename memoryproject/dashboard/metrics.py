"""Numbers for Prometheus, in its text format. They hold no content and name nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connection, models
from django.db.models import Count, Min, Q
from django.utils import timezone
from django_q.models import OrmQ

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.audit.models import AuditEvent
from memoryproject.dashboard.readiness import Part
from sessions_app.models import Chat, ChatSession, ForgetReceipt, InboundDelivery, Message, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTED: tuple[type[models.Model], ...] = (
    AuditEvent, Chat, ChatSession, ForgetReceipt, InboundDelivery, Memory, MemoryEmbedding,
    Message, Turn,
)  # fmt: skip


@dataclass(frozen=True)
class Gauge:
    """A number that goes up and down. ``values`` has each with its label's value; a gauge
    without a label has one, under an empty text."""

    name: str
    help: str
    values: dict[str, float]
    label: str = ""

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} gauge"
        for of, value in self.values.items():
            yield (
                f'{self.name}{{{self.label}="{of}"}} {value:g}'
                if self.label
                else (f"{self.name} {value:g}")
            )


def metrics_text(found: Iterable[Part]) -> str:
    """What can be told: without a database only that it isn't there. ``found``: the server's
    parts, see readiness."""
    ready = {part.name: float(part.ready) for part in found}
    gauges = [Gauge("memory_part_ready", "1 where the part of the server is up.", ready, "part")]
    # Where it is down, memory_part_ready says so.
    with suppress(DatabaseError):
        gauges += _of_the_database()
    return "".join(f"{line}\n" for gauge in gauges for line in gauge.lines())


def _of_the_database() -> list[Gauge]:
    """By indexes and PostgreSQL's own statistics alone: a scrape costs the same however much
    is stored."""
    turns = Turn.objects.filter(state__in=WAITING_STATES).aggregate(
        number=Count("pk"), oldest=Min("created_at", filter=Q(state=TurnState.PENDING))
    )
    waited = (timezone.now() - turns["oldest"]).total_seconds() if turns["oldest"] else 0
    sending = Turn.objects.filter(state=TurnState.SENDING).count()
    return [
        _one("memory_turns_waiting", "Messages that wait for their answer.", turns["number"]),
        _one("memory_turns_sending", "Answers handed to a provider, not yet sure.", sending),
        _one("memory_oldest_turn_seconds", "How long the oldest of them has waited.", waited),
        _one("memory_jobs_queued", "Jobs in PostgreSQL's queue.", OrmQ.objects.count()),
        Gauge("memory_rows", "Rows stored, as PostgreSQL estimates.", _rows(), "table"),
    ]


def _one(name: str, text: str, value: Any) -> Gauge:
    return Gauge(name, text, {"": float(value)})


def _rows() -> dict[str, float]:
    tables = [model._meta.db_table for model in COUNTED]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, n_live_tup FROM pg_stat_user_tables"
            " WHERE schemaname = current_schema() AND relname = ANY(%s) ORDER BY relname",
            [tables],
        )
        return {name: float(rows) for name, rows in cursor.fetchall()}
