"""The workers' heartbeats, read in each language: django-q2 stores a text that is translated."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing import Queue
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.signing import SignedPackage
from django_q.status import Stat

from sessions_app.turns.answering import BEATS, Heartbeat

PROGRAMS = ("answer", "qcluster")


def beat(state: str, programs: Sequence[str] = PROGRAMS) -> None:
    """Store the heartbeats of these programs, that of the cluster in this state for a minute."""
    if "answer" in programs:
        beat = Heartbeat("host:1:0.00", timezone.now(), threads=18, busy=0)
        cache.set(BEATS, {beat.name: beat}, 60)
    if "qcluster" in programs:
        _beat(state)


def _beat(state: str) -> None:
    """Store one as its sentinel does."""
    sentinel = SimpleNamespace(
        parent_pid=1,
        pid=2,
        cluster_id=uuid4(),
        broker=ORM(),
        tob=timezone.now(),
        reincarnations=0,
        status=lambda: state,
        result_queue=Queue(),
        task_queue=Queue(),
        monitor=None,
        pusher=None,
        pool=[SimpleNamespace(pid=3)],
    )
    stat = Stat(sentinel)
    stat.broker.set_stat(stat.key, SignedPackage.dumps(stat, True), 60)


@pytest.mark.parametrize("language", ["en", "he"])
@pytest.mark.parametrize(
    ("state", "ready"), [(Conf.IDLE, True), (Conf.WORKING, True), (Conf.STOPPING, False)]
)
@pytest.mark.django_db
def test_readiness_does_not_depend_on_the_language(
    client: Client, language: str, state: str, ready: bool
) -> None:
    beat(state)
    answer = client.get("/readyz", headers={"accept-language": language})
    assert answer.status_code == (200 if ready else 503)
    assert (answer.json()["parts"]["workers"] == "ready") is ready
    page = client.get("/", headers={"accept-language": language})
    assert page.context["ready"] is ready


@pytest.mark.django_db
@pytest.mark.parametrize("runs", PROGRAMS)
def test_a_program_that_does_not_run_is_named(client: Client, runs: str) -> None:
    beat(Conf.IDLE, [runs])
    answer = client.get("/readyz")
    assert answer.status_code == 503
    (missing,) = {*PROGRAMS} - {runs}
    assert answer.json()["parts"]["workers"] == f"Run `python manage.py {missing}`."


@pytest.mark.parametrize(
    ("language", "idle", "stopping"), [("en", "idle", "stopping"), ("he", "פנוי", "בעצירה")]
)
def test_staff_read_the_state_in_their_language(
    admin_client: Client, language: str, idle: str, stopping: str
) -> None:
    for state, shown in ((Conf.IDLE, idle), (Conf.STOPPING, stopping)):
        beat(state)
        page = admin_client.get("/admin/operations/queue/", headers={"accept-language": language})
        tone = "good" if state == Conf.IDLE else "bad"
        assert f'<span class="state {tone}">{shown}</span>' in page.content.decode()
