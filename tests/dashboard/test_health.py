"""What load balancers and a Prometheus server ask, the workers' heartbeats behind it, and the first
page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from multiprocessing import Queue
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import Schedule
from django_q.signing import SignedPackage
from django_q.status import Stat
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from sessions_app.models import Turn
from sessions_app.turns.queue import BEATS, Heartbeat
from tests.database import break_connection
from tests.programs import python
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
PROGRAMS = ("answer", "qcluster")


@pytest.mark.parametrize("address", ["/healthz", "/readyz", "/metrics"])
def test_health_is_only_asked_for(address: str) -> None:
    """A wrong method is told as one, not as a form without its token."""
    browser = Client(enforce_csrf_checks=True)
    for method in ("POST", "PUT", "OPTIONS"):
        answer = browser.generic(method, address)
        assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")


def test_healthz_needs_nothing(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_readyz_names_what_is_missing(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "qcluster" in answer.json()["parts"]["workers"]
    assert answer.json()["parts"]["migrations"] == "ready"


def test_the_first_page_tells_a_newcomer_what_to_do(client: Client) -> None:
    page = client.get("/").content.decode()
    for text in ("make demo", "manage.py chat", "GODFATHER_PHONE", "/webhooks/whatsapp/cloud/"):
        assert text in page
    assert "Not everything is up" in page


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
def test_readiness_has_no_language(client: Client, language: str, state: str, ready: bool) -> None:
    beat(state)
    answer = client.get("/readyz", headers={"accept-language": language})
    assert answer.status_code == (200 if ready else 503)
    assert (answer.json()["parts"]["workers"] == "ready") is ready
    page = client.get("/", headers={"accept-language": language})
    assert page.context["ready"] is ready


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
def test_staff_read_it_in_hebrew(
    admin_client: Client, language: str, idle: str, stopping: str
) -> None:
    for state, shown in ((Conf.IDLE, idle), (Conf.STOPPING, stopping)):
        beat(state)
        page = admin_client.get("/admin/operations/queue/", headers={"accept-language": language})
        tone = "good" if state == Conf.IDLE else "bad"
        assert f'<span class="state {tone}">{shown}</span>' in page.content.decode()


def figures(client: Client) -> dict[tuple[str, ...], float]:
    """Each sample by its name and its labels' values."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.content.decode())
    samples = [sample for family in families for sample in family.samples]
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def test_what_waits_and_for_how_long(client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, "hello"), message_from(OTHER_CLIENT, "hello"))
    Turn.objects.filter(chat=world.chat(CLIENT)).update(
        created_at=timezone.now() - timedelta(minutes=5)
    )
    found = figures(client)
    assert found["memory_open_turns", "pending"] == 2
    assert 300 <= found["memory_oldest_waiting_turn_seconds",] < 360
    world.work()
    found = figures(client)
    assert found["memory_open_turns", "pending"] == 0
    assert found["memory_oldest_waiting_turn_seconds",] == 0


def test_how_the_last_hours_turns_ended(client: Client, world: World) -> None:
    assert ("memory_answer_seconds_last_hour", "0.5") not in figures(client)
    for number in range(4):
        world.say(CLIENT, f"question {number}")
    now = timezone.now()
    for turn, seconds in zip(Turn.objects.order_by("id"), (1, 2, 3, 4), strict=True):
        Turn.objects.filter(pk=turn.pk).update(
            created_at=now - timedelta(seconds=60),
            finished_at=now - timedelta(seconds=60 - seconds),
        )
    Turn.objects.filter(pk=Turn.objects.earliest("id").pk).update(state="failed")
    long_ago = now - timedelta(hours=2)
    last = Turn.objects.latest("id").pk
    Turn.objects.filter(pk=last).update(created_at=long_ago, finished_at=long_ago)
    found = figures(client)
    assert found["memory_turns_last_hour", "sent"] == 2
    assert found["memory_turns_last_hour", "failed"] == 1
    assert found["memory_turns_last_hour", "missed"] == 0
    assert found["memory_answer_seconds_last_hour", "0.5"] == pytest.approx(2.5)
    assert found["memory_answer_seconds_last_hour", "0.95"] == pytest.approx(2.95)


def test_a_late_schedule_shows(client: Client) -> None:
    Schedule.objects.create(func="x", next_run=timezone.now() - timedelta(minutes=20))
    assert 1_200 <= figures(client)["memory_schedule_late_seconds",] < 1_260


def test_parts_sizes_and_the_version_are_there(client: Client) -> None:
    found = figures(client)
    assert found["memory_part_ready", "database"] == 1
    assert found["memory_part_ready", "workers"] == 0
    assert found["memory_database_bytes",] > 1_000_000
    assert found["memory_data_dir_free_bytes",] > 0
    assert {("memory_rows", "messages"), ("memory_rows_stored_total", "memories")} <= set(found)
    assert [key for key in found if key[0] == "memory_server_info"]


def test_it_speaks_openmetrics_where_that_is_asked_for(client: Client) -> None:
    answer = client.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert answer["Content-Type"].startswith("application/openmetrics-text")
    names = [family.name for family in openmetrics(answer.content.decode())]
    assert "memory_open_turns" in names


def test_it_holds_nothing_of_anybody(client: Client, world: World) -> None:
    world.say(CLIENT, "/remember TestCorp pays in 30 days")
    text = client.get("/metrics").content.decode()
    assert CLIENT.partition("@")[0] not in text
    assert "TestCorp" not in text


@pytest.mark.processes
def test_a_database_out_of_reach_is_told_and_no_fault() -> None:
    asking = (
        "import django; django.setup(); from django.test import Client; "
        "answer = Client().get('/metrics', headers={'host': 'localhost'}); "
        "print(answer.status_code); print(answer.text)"
    )
    nobody = "postgresql://user:x@127.0.0.1:1/none"
    told = python("-c", asking, DATABASE_URL=nobody).stdout
    assert told.startswith("200\n")
    assert 'memory_part_ready{part="database"} 0.0' in told
    assert "memory_open_turns" not in told


@pytest.mark.django_db(transaction=True)
def test_a_broken_connection_is_told_and_not_an_error(client: Client) -> None:
    break_connection()
    for _ in range(2):
        # Closed and not broken, the second time: psycopg reports that by another class of error.
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["parts"]["database"] not in ("", "ready")
    connection.close()
    assert client.get("/readyz").json()["parts"]["database"] == "ready"
