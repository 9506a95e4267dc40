"""Deliveries and replays by months: what the schedule makes and drops, and what stays unique."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from django.utils.timezone import now
from psycopg import sql

from sessions_app.models import InboundDelivery, Message, Turn, TurnReplay
from sessions_app.partitions import partitions_tend
from sessions_app.tasks import tend_partitions
from tests.threads import begin_blocked
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db

DELIVERIES, REPLAYS = "sessions_app_inbounddelivery", "sessions_app_turnreplay"


def place_of(row: InboundDelivery | TurnReplay) -> str:
    """The partition in which a row is."""
    table, key = row._meta.db_table, row._meta.pk.column
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT tableoid::regclass FROM "{table}" WHERE "{key}" = %s', [row.pk])
        (place,) = cursor.fetchone()
    return str(place).removeprefix(f"{table}_")


def months() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_class"
            " ON oid = inhrelid WHERE relkind = 'r'"
        )
        return {name for (name,) in cursor.fetchall()}


def tend(at: datetime, *, raw_days: int = 30, replay_days: int | None = None) -> list[str]:
    kept = timedelta(days=replay_days) if replay_days else None
    return partitions_tend(now=at, deliveries_kept=timedelta(days=raw_days), replays_kept=kept)


def receive(world: World, text: str) -> InboundDelivery:
    event = message_from(CLIENT, text)
    world.receive(event)
    return InboundDelivery.objects.get(delivery_key=event.delivery_key)


def put_at(row: InboundDelivery, at: datetime) -> None:
    """As if it had come then."""
    InboundDelivery.objects.filter(pk=row.pk).update(received_at=at)


@pytest.mark.parametrize("days", [-400, -1, 31, 400])
def test_a_delivery_of_another_month_is_known(world: World, days: int) -> None:
    """Whatever the clock said when it came the first time."""
    tend_partitions()
    event = message_from(CLIENT, "said once")
    world.receive(event)
    put_at(InboundDelivery.objects.get(), now() + timedelta(days=days))
    world.receive(event, event)
    assert InboundDelivery.objects.count() == Message.objects.count() == 1


def test_the_schedule_makes_the_next_months_once() -> None:
    assert tend_partitions() in (4, 6)
    made = months()
    assert tend_partitions() == 0
    following = now().replace(day=1) + timedelta(days=32)
    for table in (DELIVERIES, REPLAYS):
        assert f"{table}_{following:%Y_%m}" in made
        assert {f"{table}_before", f"{table}_rest"} <= made


def test_rows_of_months_that_are_not_there_are_kept_and_move_into_theirs(world: World) -> None:
    """A clock that is ahead, and a schedule that did not run."""
    row = receive(world, "from the future")
    at = datetime(2041, 3, 31, 23, 59, 59, tzinfo=timezone.utc)
    put_at(row, at)
    assert place_of(row) == "rest"
    tend(at)
    assert place_of(row) == "2041_03"
    row.refresh_from_db()
    assert row.received_at == at
    assert row.raw is not None
    assert tend(at) == []


@pytest.mark.django_db(transaction=True)
def test_a_row_that_comes_while_its_month_is_made_is_kept(world: World) -> None:
    at = datetime(2043, 3, 31, tzinfo=timezone.utc)
    row, late = receive(world, "first"), receive(world, "late")
    put_at(row, at)
    begun = []

    def beside(execute: Callable[..., Any], statement: Any, *rest: Any) -> Any:
        result = execute(statement, *rest)
        if isinstance(statement, sql.Composed) and "TEMP TABLE" in statement.as_string():
            begun.append(begin_blocked(lambda: put_at(late, at)))
        return result

    with connection.execute_wrapper(beside):
        made = tend(at)
    begun[0].result()
    assert place_of(row) == place_of(late) == "2043_03"
    with connection.cursor() as cursor:
        for name in made:
            cursor.execute(f"DROP TABLE {name}")


def test_a_clock_that_is_ahead_drops_nothing_young(world: World) -> None:
    old = datetime(2025, 1, 15, tzinfo=timezone.utc)
    begin = receive(world, "from before the first month")
    put_at(begin, old)
    assert place_of(begin) == "before"
    tend(now())
    assert place_of(begin) == "before"
    young = receive(world, "now")
    # The database's own clock counts, too: one that is ahead drops nothing young.
    tend(now() + timedelta(days=4000))
    assert {begin.pk, young.pk} == set(InboundDelivery.objects.values_list("pk", flat=True))


def test_partitions_and_the_rest_lose_what_is_old(world: World) -> None:
    with connection.cursor() as cursor:
        for table in (DELIVERIES, REPLAYS):
            cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {table}_before")
    month = datetime(2025, 1, 1, tzinfo=timezone.utc)
    tend(month)
    rows = {name: receive(world, name) for name in ("2025_01", "2025_03", "rest")}
    for name, at in (("2025_01", month), ("2025_03", month + timedelta(days=60))):
        put_at(rows[name], at)
        assert place_of(rows[name]) == name
    put_at(rows["rest"], month - timedelta(days=400))
    young = receive(world, "young")
    # Of this test's own transaction.
    connection.check_constraints()
    dropped = set(tend(now(), raw_days=1, replay_days=31))
    assert {f"{DELIVERIES}_2025_01", f"{DELIVERIES}_2025_03", f"{REPLAYS}_2025_03"} <= dropped
    assert list(InboundDelivery.objects.all()) == [young]
    assert Message.objects.count() == 4


def test_an_answer_made_again_in_another_month_has_one_record(world: World) -> None:
    tend_partitions()
    world.receive(message_from(CLIENT, "how much is it?"))
    later = now() + timedelta(days=31)
    earlier = TurnReplay.objects.create(turn=Turn.objects.get(), made_at=later, model="old")
    assert place_of(earlier) not in ("before", "rest")
    world.work()
    assert TurnReplay.objects.get().model == "scripted"
