"""How workers take jobs, whatever PostgreSQL believes of the queue, and keep hold of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from memoryproject.foundation.process.brokers import HOLD, DatabaseBroker, jobs_hold
from tests.threads import elsewhere, in_threads

pytestmark = pytest.mark.django_db(transaction=True)

LANE = "tests"
JOBS = 12
QUEUE = OrmQ._meta.db_table
# Each switch leaves the planner another way to join the queue with what is to be taken from it.
PLANS = {
    "as planned": (),
    "nested loops": ("hashjoin", "mergejoin"),
    "nested loops that keep nothing": ("hashjoin", "mergejoin", "material", "memoize"),
    "nested loops over the table": (
        *("hashjoin", "mergejoin", "material", "memoize"),
        *("indexscan", "indexonlyscan", "bitmapscan"),
    ),
    "nested loops over an index": (
        *("hashjoin", "mergejoin", "material", "memoize", "seqscan", "hashagg", "sort"),
    ),
    "hash joins": ("nestloop", "mergejoin", "indexscan", "bitmapscan"),
    "merge joins": ("nestloop", "hashjoin", "sort"),
}


@pytest.fixture(autouse=True)
def data_dir(tmp_path: object) -> Iterator[None]:
    poll, Conf.POLL = Conf.POLL, 0.0
    with override_settings(DATA_DIR=tmp_path):
        yield
    Conf.POLL = poll


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture(params=[0, 1, 1_000], ids=lambda rows: f"statistics of {rows} rows")
def statistics(request: pytest.FixtureRequest) -> Iterator[None]:
    """What PostgreSQL last saw in the queue; it doesn't look again."""
    execute(f"ALTER TABLE {QUEUE} SET (autovacuum_enabled = off)")
    now = timezone.now()
    OrmQ.objects.bulk_create(
        OrmQ(key=LANE, payload="a job", lock=now) for _ in range(request.param)
    )
    # VACUUM counts the table's pages; without it an empty table is taken for ten pages.
    execute(f"VACUUM ANALYZE {QUEUE}")
    OrmQ.objects.all().delete()
    yield
    execute(f"ALTER TABLE {QUEUE} RESET (autovacuum_enabled)")
    execute(f"ANALYZE {QUEUE}")


@pytest.fixture(params=PLANS.values(), ids=list(PLANS))
def plan(request: pytest.FixtureRequest) -> Iterator[None]:
    for name in request.param:
        execute(f"SET enable_{name} = off")
    yield
    for name in request.param:
        execute(f"RESET enable_{name}")


def queued(count: int = JOBS) -> list[int]:
    broker = DatabaseBroker(LANE)
    return [broker.enqueue(SignedPackage.dumps({"name": str(n)})) for n in range(count)]


def keys_of(given: list[tuple[int, str]] | None) -> list[int]:
    return [key for key, _ in given or []]


def taken() -> set[int]:
    return set(OrmQ.objects.filter(lock__gt=timezone.now()).values_list("pk", flat=True))


def locked_until(key: int) -> datetime:
    return OrmQ.objects.values_list("lock", flat=True).get(pk=key) or datetime.max


def test_one_job_is_taken_at_a_time_under_every_plan(statistics: None, plan: None) -> None:
    keys = queued()
    broker = DatabaseBroker(LANE)
    for number, key in enumerate(keys, start=1):
        assert keys_of(broker.dequeue()) == [key]
        assert taken() == set(keys[:number])
    assert broker.dequeue() is None


def test_jobs_that_others_are_just_taking_are_passed_over(statistics: None) -> None:
    keys = queued()
    with transaction.atomic():
        list(OrmQ.objects.select_for_update().filter(pk__in=keys[:2]))
        assert keys_of(elsewhere(lambda: DatabaseBroker(LANE).dequeue())) == [keys[2]]
    assert taken() == {keys[2]}


def test_workers_that_ask_at_once_get_each_job_once(statistics: None) -> None:
    keys = queued()

    def work() -> list[int]:
        broker, done = DatabaseBroker(LANE), []
        while given := broker.dequeue():
            done += keys_of(given)
        return done

    assert sorted(key for done in in_threads(work, 4) for key in done) == keys


def test_a_job_that_a_worker_has_is_held_however_long_it_takes() -> None:
    (key,) = queued(1)
    broker = DatabaseBroker(LANE)
    assert keys_of(broker.dequeue()) == [key]
    # The time has nearly run out when its worker's leader extends it.
    later = locked_until(key) - timedelta(seconds=1)
    jobs_hold(held=[key], left=[], now=later)
    assert locked_until(key) == later + HOLD
    assert broker.dequeue() is None


def test_a_job_whose_worker_ended_is_given_out_at_once() -> None:
    keys = queued(2)
    broker = DatabaseBroker(LANE)
    assert keys_of(broker.dequeue()) + keys_of(broker.dequeue()) == keys
    jobs_hold(held=keys[1:], left=keys[:1], now=timezone.now())
    assert keys_of(broker.dequeue()) == keys[:1]
    assert broker.dequeue() is None


def test_a_job_that_nobody_extends_is_given_out_again_soon() -> None:
    """Its worker ended with everything around it, or took it and doesn't know."""
    (key,) = queued(1)
    assert keys_of(DatabaseBroker(LANE).dequeue()) == [key]
    assert locked_until(key) <= timezone.now() + timedelta(seconds=30)


def test_a_job_that_is_locked_for_longer_than_workers_lock_it_is_given_out_at_once() -> None:
    """Earlier versions locked jobs for eleven minutes, and took some that they never did."""
    keys = queued(2)
    OrmQ.objects.update(lock=timezone.now() + timedelta(seconds=660))
    jobs_hold(held=keys[:1], left=[], now=timezone.now())
    assert keys_of(DatabaseBroker(LANE).dequeue()) == keys[1:]


def test_a_job_that_is_done_meanwhile_is_not_brought_back() -> None:
    (key,) = queued(1)
    OrmQ.objects.all().delete()
    jobs_hold(held=[key], left=[key], now=timezone.now())
    assert not OrmQ.objects.exists()
