"""The pages of operations: who may see them, what they say of queue, schedules and dead turns, and
what their buttons do."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Failure, OrmQ, Schedule, Task
from django_q.tasks import async_task

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Turn
from sessions_app.schedules import schedules_install
from tests.dashboard.staff import page
from tests.shown import said, words_of
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
ROOM = "/admin/operations/"
PRIVATE = "Dana owes us 5,000 shekels"
TRACE = f"""{PRIVATE} : Traceback (most recent call last):
  File "/opt/x/django_q/worker.py", line 99, in worker
    res = f(*task["args"], **task["kwargs"])
  File "/opt/x/sessions_app/embedding/message_vectors.py", line 41, in session_embed
    raise EmbedderError("{PRIVATE}")
memoryproject.foundation.integrations.embedders.base.EmbedderError: {PRIVATE}
of two lines
"""


def words(shown: str) -> str:
    """The page's text as it is read."""
    return words_of(shown[shown.index('class="ops"') :])


def read(client: Client, name: str) -> str:
    shown = page(client, f"{ROOM}{name}/")
    assert PRIVATE not in shown
    return words(shown)


def failed_job(**changes: Any) -> Task:
    now = timezone.now()
    values = {
        "id": f"{Task.objects.count():032x}",
        "name": "vectors",
        "func": "sessions_app.tasks.embed_session",
        "args": (PRIVATE,),
        "kwargs": {},
        "started": now,
        "stopped": now,
        "success": False,
        "result": TRACE,
        "attempt_count": 3,
    }
    return Task.objects.create(**{**values, **changes})


def posted(client: Client, path: str) -> str:
    return said(client.post(f"{ROOM}{path}", follow=True))


def last_event() -> tuple[str, str, dict[str, Any]]:
    event = AuditEvent.objects.latest("id")
    assert (event.actor_kind, event.actor) == ("staff", "admin")
    return event.action, event.object_id, event.details


def test_empty_pages_say_that_there_is_nothing(admin_client: Client) -> None:
    for name, texts in (
        ("queue", ["No jobs waiting", "No job has failed.", "No workers run"]),
        ("turns", ["Every answer got out."]),
        ("schedules", ["No schedules are installed."]),
        ("provider", ["No provider is configured"]),
    ):
        shown = read(admin_client, name)
        for text in texts:
            assert text in shown


def test_jobs_stand_by_kind_and_tell_nothing_of_their_contents(admin_client: Client) -> None:
    for _ in range(3):
        async_task("sessions_app.tasks.embed_session", PRIVATE, task_name=PRIVATE)
    async_task("sessions_app.tasks.make_cards", [PRIVATE])
    taken = OrmQ.objects.latest("id")
    OrmQ.objects.filter(pk=taken.pk).update(lock=timezone.now() + timedelta(minutes=10))
    OrmQ.objects.create(key="memory", payload="not signed by us", lock=timezone.now())
    failed_job()
    failed_job(func="x.y", result="ValueError: unreadable")
    shown = read(admin_client, "queue")
    for text in (
        *("3 Make vectors of messages", "Being done 1 Make cards of sessions"),
        "A job of another version or key",
        *("The embedding model could not be used.", "It is not known why."),
    ):
        assert text in shown
    assert "of two lines" not in shown
    assert re.search(r"EmbedderError, sessions_app/embedding/message_vectors\.py:\d+", shown)


def test_a_failed_job_is_done_again_once_or_removed(admin_client: Client) -> None:
    job, other = failed_job(), failed_job()
    assert "in the queue again" in posted(admin_client, f"queue/{job.id}/retry/")
    (waiting,) = OrmQ.objects.all()
    assert waiting.task["func"] == "sessions_app.tasks.embed_session"
    assert waiting.task["args"] == (PRIVATE,)
    assert last_event() == ("job.retry", job.id, {"task": "sessions_app.tasks.embed_session"})
    assert "somebody was faster" in posted(admin_client, f"queue/{job.id}/retry/")
    posted(admin_client, f"queue/{other.id}/drop/")
    assert last_event()[:2] == ("job.drop", other.id)
    assert not Failure.objects.exists()
    assert OrmQ.objects.count() == 1


def test_schedules_say_what_they_do_how_it_went_and_what_is_late(admin_client: Client) -> None:
    schedules_install()
    job = failed_job(func="sessions_app.tasks.sweep_work")
    now = timezone.now()
    Schedule.objects.update(next_run=now + timedelta(minutes=5))
    late = Schedule.objects.filter(name="Sweep work")
    late.update(task=job.id, next_run=now - timedelta(minutes=30))
    Schedule.objects.filter(name="Propose merges").delete()
    shown = read(admin_client, "schedules")
    for text in (
        "Retry stuck work each minute failed",
        "The embedding model could not be used.",
        *("Not installed: Propose merges.", "every 5 minutes"),
        "Remove audit events after 90 days each day not yet",
    ):
        assert text in shown
    assert shown.count("late by") == 1
    # It runs now, and its clock goes on.
    schedule = Schedule.objects.get(name="Expire sessions")
    assert "Expire sessions" in posted(admin_client, f"schedules/{schedule.pk}/run/")
    (waiting,) = OrmQ.objects.all()
    assert waiting.task["func"] == "sessions_app.tasks.expire_sessions"
    again = Schedule.objects.get(pk=schedule.pk)
    assert (again.next_run, again.task) == (schedule.next_run, waiting.task["id"])
    assert last_event()[:2] == ("schedule.run", "Expire sessions")


@pytest.fixture
def dead(world: World) -> Callable[..., Turn]:
    """A turn in which something was said, brought into a state."""

    def make(state: str, whatsapp_chat: str = CLIENT, age: int = 60, **changes: Any) -> Turn:
        event = message_from(whatsapp_chat, PRIVATE)
        world.receive(event)
        turn = world.turn_of(event.provider_message_id)
        changes["created_at"] = timezone.now() - timedelta(minutes=age)
        Turn.objects.filter(pk=turn.pk).update(state=state, **changes)
        turn.refresh_from_db()
        return turn

    return make


def test_dead_turns_have_age_and_reason(admin_client: Client, dead: Callable[..., Turn]) -> None:
    dead("failed", error=f"IntegrityError: row ({PRIVATE})")
    dead("failed", OTHER_CLIENT, error="HTTP 401: token")
    dead("unconfirmed")
    dead("missed", age=3_000)
    dead("pending", age=10)
    dead("sent")
    dead("running", OTHER_CLIENT, age=1)
    text = read(admin_client, "turns")
    assert "Failed 2 Unconfirmed 1 Missed 1 Stuck 1" in text
    assert text.count("Test User") == 2
    for reason in (
        "The database refused what was to be stored.",
        "The provider did not accept our credentials (HTTP 401).",
        "it may have arrived.",
        "24 hours before it could be answered",
        "No worker has taken it up.",
    ):
        assert reason in text
    assert "2 days, 2 hours ago" in text.replace("\xa0", " ")
    only = words(page(admin_client, f"{ROOM}turns/?kind=missed"))
    assert "24 hours before it could be answered" in only
    assert "HTTP 401" not in only


def test_a_stuck_turn_is_given_to_a_worker(admin_client: Client, dead: Callable[..., Turn]) -> None:
    turn = dead("pending", age=10)
    with CaptureQueriesContext(connection) as queries:
        assert "A worker takes it up now." in posted(admin_client, f"turns/{turn.pk}/take-up/")
    assert "NOTIFY turns" in [query["sql"] for query in queries]
    assert AuditEvent.objects.filter(action="turn.take_up").count() == 1
