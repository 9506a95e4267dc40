"""The lease that all kinds of work share, and the sweep that takes up what was left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial

import psutil
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.leases import (
    Lease,
    LeasedKind,
    LeaseLostError,
    leases_sweep,
    this_process,
)
from sessions_app.extraction.extraction_claims import extractions_abandoned
from sessions_app.models import (
    Chat,
    ChatSession,
    ExtractionWork,
    ForgetRun,
    OutboundPart,
    SummaryWork,
    Turn,
)
from sessions_app.summaries.summary_store import summaries_abandoned
from sessions_app.tasks import sweep_work
from sessions_app.turns.turn_claims import sends_resolve, turns_sweep
from tests.threads import begin_blocked, in_threads

MINUTE = timedelta(minutes=1)


def claimed(run: ForgetRun, now: datetime | None = None) -> Lease[ForgetRun] | None:
    token = ForgetRun.objects.all().claim(run, now=now)
    return Lease(run, token) if token else None


def reread(run: ForgetRun) -> ForgetRun:
    return ForgetRun.objects.get(pk=run.pk)


def claim_one(seen: list[ForgetRun]) -> Lease[ForgetRun] | None:
    return claimed(seen.pop())


@pytest.fixture
def run(db: None) -> ForgetRun:
    return ForgetRun.objects.create(asked_by="dana")


@contextmanager
def another_process() -> Iterator[tuple[str, Callable[[], None]]]:
    """A process of this machine: its name as an owner, and how to kill it."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def kill() -> None:
        child.kill()
        child.communicate()

    started = psutil.Process(child.pid).create_time()
    try:
        yield f"{this_process().partition(':')[0]}:{child.pid}:{started:.2f}", kill
    finally:
        kill()


class TestOneHolder:
    @pytest.mark.django_db(transaction=True)
    def test_of_workers_at_once_one_gets_it(self) -> None:
        run = ForgetRun.objects.create(asked_by="dana")
        for _ in range(5):
            # All have read the row before anybody claims it.
            seen = [reread(run) for _ in range(6)]
            leases = [lease for lease in in_threads(partial(claim_one, seen), 6) if lease]
            assert len(leases) == 1
            assert isinstance(leases[0], Lease)
            assert reread(run).lease_token == leases[0].token
            assert leases[0].release()

    def test_what_was_read_before_a_claim_claims_nothing(self, run: ForgetRun) -> None:
        stale = reread(run)
        assert claimed(run) is not None
        assert claimed(stale) is None


class TestALostLease:
    @pytest.fixture
    def lost(self, run: ForgetRun) -> Lease[ForgetRun]:
        """It ended, and another worker has the row."""
        lease = claimed(run, timezone.now() - ForgetRun.lease_length)
        assert lease is not None
        assert claimed(reread(run)) is not None
        return lease

    def test_it_writes_nothing(self, lost: Lease[ForgetRun]) -> None:
        before = ForgetRun.objects.values().get()
        with pytest.raises(LeaseLostError):
            lost.renew(state="done")
        with pytest.raises(LeaseLostError), transaction.atomic():
            lost.lock()
        assert lost.release(state="done") is False
        assert ForgetRun.objects.values().get() == before

    @pytest.mark.django_db(transaction=True)
    def test_nobody_takes_a_row_that_its_holder_has_locked(self) -> None:
        """The claim waits for the lock, and then sees what the holder wrote."""
        run = ForgetRun.objects.create(asked_by="dana")
        lease = claimed(run, timezone.now() - ForgetRun.lease_length)
        assert lease is not None
        seen = reread(run)
        with transaction.atomic():
            lease.lock()
            claim = begin_blocked(lambda: claimed(seen))
            lease.release(state="done")
        assert claim.result() is None
        assert reread(run).state == "done"


class TestTheOwnersProcess:
    def test_only_a_dead_ones_row_is_free(self, run: ForgetRun) -> None:
        assert claimed(run) is not None
        with another_process() as (owner, kill):
            ForgetRun.objects.update(lease_owner=owner)
            assert reread(run).is_held(timezone.now())
            assert claimed(reread(run)) is None
            assert ForgetRun.objects.all().abandoned(timezone.now()) == []
            assert ForgetRun.objects.all().held(timezone.now()) == [run]
            kill()
            assert ForgetRun.objects.all().abandoned(timezone.now()) == [run]
            assert ForgetRun.objects.all().held(timezone.now()) == []
            assert claimed(reread(run)) is not None

    def test_on_another_machine_the_lease_ends_by_its_time(self, run: ForgetRun) -> None:
        assert claimed(run) is not None
        ForgetRun.objects.update(lease_owner="elsewhere:1:1.00")
        assert claimed(reread(run)) is None
        ForgetRun.objects.update(lease_until=timezone.now())
        assert claimed(reread(run)) is not None


def backlog(size: int) -> None:
    """So many chats in which everything waits: a turn, a fact to learn, a summary, a send."""
    now = timezone.now()
    for _ in range(size):
        number = Chat.objects.count()
        chat = Chat.objects.create(whatsapp_chat=f"1555{number:07}@c.us", provider="cloud")
        session = ChatSession.objects.create(chat=chat, created_at=now, last_active=now)
        SummaryWork.objects.create(session=session, due=True)
        said = {"chat": chat, "provider": "cloud", "asked_at": now}
        Turn.objects.create(**said)
        ExtractionWork.objects.create(turn=Turn.objects.create(**said, state="sent"))
        sending = Turn.objects.create(**said, state="sending")
        OutboundPart.objects.create(
            turn=sending, number=1, provider="cloud", state="sending", started_at=now
        )


@pytest.mark.django_db
class TestTheSweep:
    @pytest.mark.parametrize(
        "sweep",
        [
            lambda now: turns_sweep(unconfirmed_after=15 * MINUTE, now=now),
            extractions_abandoned,
            summaries_abandoned,
            lambda now: sends_resolve(now=now, unconfirmed_after=15 * MINUTE),
        ],
    )
    def test_a_backlog_costs_no_more_queries(self, sweep: Callable[[datetime], object]) -> None:
        counts = []
        for more in (1, 20):
            backlog(more)
            with CaptureQueriesContext(connection) as queries:
                sweep(timezone.now())
            counts.append(len(queries))
        assert counts[0] == counts[1] <= 5

    def test_a_kind_that_fails_keeps_no_other_waiting_and_is_told(self) -> None:
        found: list[str] = []

        def fails(_: datetime) -> list[str]:
            raise ValueError("the first one")

        kinds = [
            LeasedKind("first", fails, found.append),
            LeasedKind("second", lambda _: ["a", "b"], found.append),
        ]
        with pytest.raises(ValueError, match="the first one"):
            leases_sweep(kinds)
        assert found == ["a", "b"]
        assert leases_sweep(kinds[1:]) == {"second": 2}

    def test_one_task_takes_up_all_kinds(self) -> None:
        swept = sweep_work()
        assert {"documents", "forgettings", "webhooks"} <= set(swept)
        assert set(swept.values()) == {0}
