"""The pages of operations: who may see them, what they say of queue, schedules and dead turns, and
what their buttons do."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Failure, OrmQ, Schedule, Task
from django_q.tasks import async_task

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.models import Turn
from sessions_app.schedules import schedules_install
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
ROOM = "/admin/operations/"
PAGES = [
    f"{ROOM}{name}" for name in ("", "settings/", "queue/", "schedules/", "turns/", "provider/")
]
PRIVATE = "Dana owes us 5,000 shekels"
TRACE = f"""{PRIVATE} : Traceback (most recent call last):
  File "/opt/x/django_q/worker.py", line 99, in worker
    res = f(*task["args"], **task["kwargs"])
  File "/opt/x/sessions_app/embedding/message_vectors.py", line 41, in session_embed
    raise EmbedderError("{PRIVATE}")
memoryproject.foundation.integrations.embedders.base.EmbedderError: {PRIVATE}
of two lines
"""


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def words(shown: str) -> str:
    """The page's text as it is read."""
    main = shown[shown.index('class="ops"') :]
    return " ".join(re.sub(r"<[^>]*>", " ", main).split())


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


def said(client: Client, path: str, **posted: str) -> str:
    answer = client.post(path, posted, follow=True)
    assert answer.status_code == 200
    return " ".join(str(message) for message in answer.context["messages"])


def last_event() -> tuple[str, str, dict[str, Any]]:
    event = AuditEvent.objects.latest("id")
    assert (event.actor_kind, event.actor) == ("staff", "admin")
    return event.action, event.object_id, event.details


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_for_those_who_look_after_the_server(client: Client, path: str) -> None:
    assert "/admin/login/" in client.get(path)["Location"]
    user = User.objects.create_user("reviewer", is_staff=True)
    client.force_login(user)
    assert client.get(path).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="operate_server"))
    assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["queue/00000000000000000000000000000000/retry/", "schedules/1/run/", "turns/1/take-up/"],
)
def test_a_button_is_for_them_too(client: Client, path: str) -> None:
    client.force_login(User.objects.create_user("reviewer", is_staff=True))
    failed_job()
    assert client.post(f"{ROOM}{path}").status_code == 403
    assert Failure.objects.count() == 1
    assert OrmQ.objects.count() == 0


def test_empty_pages_say_that_there_is_nothing(admin_client: Client) -> None:
    queue = words(page(admin_client, f"{ROOM}queue/"))
    assert "No jobs waiting" in queue
    assert "No job has failed." in queue
    assert "No workers run" in queue
    assert "Every answer got out." in words(page(admin_client, f"{ROOM}turns/"))
    assert "No schedules are installed." in words(page(admin_client, f"{ROOM}schedules/"))
    assert "No provider is configured" in words(page(admin_client, f"{ROOM}provider/"))


def test_waiting_jobs_stand_by_kind_and_tell_nothing_of_their_contents(
    admin_client: Client,
) -> None:
    for _ in range(3):
        async_task("sessions_app.tasks.answer_chat", PRIVATE, task_name=PRIVATE)
    async_task("sessions_app.tasks.make_cards", [PRIVATE])
    taken = OrmQ.objects.latest("id")
    OrmQ.objects.filter(pk=taken.pk).update(lock=timezone.now() + timedelta(minutes=10))
    shown = page(admin_client, f"{ROOM}queue/")
    assert PRIVATE not in shown
    text = words(shown)
    assert re.search(r"Waiting 3 3 Answer a chat", text)
    assert re.search(r"Being done 1 Make cards of sessions", text)


def test_a_job_of_another_key_does_not_break_the_page(admin_client: Client) -> None:
    OrmQ.objects.create(key="memory", payload="not signed by us", lock=timezone.now())
    assert "A job of another version or key" in page(admin_client, f"{ROOM}queue/")


def test_a_failed_job_tells_what_went_wrong_and_not_what_it_was_about(
    admin_client: Client,
) -> None:
    failed_job()
    failed_job(func="x.y", result="ValueError: unreadable")
    shown = page(admin_client, f"{ROOM}queue/")
    assert PRIVATE not in shown
    assert "of two lines" not in shown
    assert "The embedding model could not be used." in shown
    assert re.search(r"EmbedderError, sessions_app/embedding/message_vectors\.py:\d+", shown)
    assert "It is not known why." in shown


def test_a_failed_job_is_done_again_once(admin_client: Client) -> None:
    job = failed_job()
    path = f"{ROOM}queue/{job.id}/retry/"
    assert "in the queue again" in said(admin_client, path)
    (waiting,) = OrmQ.objects.all()
    assert waiting.task["func"] == "sessions_app.tasks.embed_session"
    assert waiting.task["args"] == (PRIVATE,)
    assert last_event() == ("job.retry", job.id, {"task": "sessions_app.tasks.embed_session"})
    assert "somebody was faster" in said(admin_client, path)
    assert OrmQ.objects.count() == 1


def test_a_failed_job_is_removed(admin_client: Client) -> None:
    job, kept = failed_job(), failed_job()
    said(admin_client, f"{ROOM}queue/{job.id}/drop/")
    assert list(Failure.objects.all()) == [kept]
    assert last_event()[:2] == ("job.drop", job.id)
    assert OrmQ.objects.count() == 0


def test_a_job_that_went_well_can_not_be_done_again(admin_client: Client) -> None:
    job = failed_job(success=True)
    assert "somebody was faster" in said(admin_client, f"{ROOM}queue/{job.id}/retry/")
    assert Task.objects.count() == 1


@pytest.mark.parametrize(
    "path",
    [
        "queue/a%00b/retry/",
        "queue/abc/eat/",
        "schedules/99999999999999999999/run/",
        "turns/99999999999999999999/take-up/",
    ],
)
def test_forged_addresses_are_not_found(admin_client: Client, path: str) -> None:
    assert admin_client.post(f"{ROOM}{path}").status_code == 404


@pytest.mark.parametrize("path", ["queue/abc/retry/", "schedules/1/run/", "turns/1/take-up/"])
def test_reading_an_address_that_acts_leads_to_its_page(admin_client: Client, path: str) -> None:
    page = f"{ROOM}{path.partition('/')[0]}/"
    assert admin_client.get(f"{ROOM}{path}").headers["Location"] == page


@pytest.mark.parametrize("query", ["page=0", "page=99999999999", "page=x", "kind=%00", "kind=x"])
@pytest.mark.parametrize("name", ["queue", "turns"])
def test_what_makes_no_sense_shows_the_first_or_last_page(
    admin_client: Client, name: str, query: str
) -> None:
    page(admin_client, f"{ROOM}{name}/?{query}")


def test_schedules_say_what_they_do_how_it_went_and_what_is_late(admin_client: Client) -> None:
    schedules_install()
    job = failed_job(func="sessions_app.tasks.sweep_work")
    now = timezone.now()
    Schedule.objects.update(next_run=now + timedelta(minutes=5))
    Schedule.objects.filter(name="Sweep work").update(
        task=job.id, next_run=now - timedelta(minutes=30)
    )
    Schedule.objects.filter(name="Propose merges").delete()
    shown = words(page(admin_client, f"{ROOM}schedules/"))
    assert "Retry stuck work each minute failed" in shown
    assert "The embedding model could not be used." in shown
    assert shown.count("late by") == 1
    assert "Not installed: Propose merges." in shown
    assert "every 5 minutes" in shown
    assert "Remove audit events after 90 days each day not yet" in shown
    assert PRIVATE not in shown


def test_every_planned_schedule_has_words(admin_client: Client) -> None:
    schedules_install()
    shown = words(page(admin_client, f"{ROOM}schedules/"))
    assert ".tasks." not in shown.replace("message_vectors.py", "")


def test_a_schedule_runs_now_and_its_clock_goes_on(admin_client: Client) -> None:
    schedules_install()
    schedule = Schedule.objects.get(name="Expire sessions")
    assert "Expire sessions" in said(admin_client, f"{ROOM}schedules/{schedule.pk}/run/")
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


def test_dead_turns_stand_by_chat_with_age_and_reason(
    admin_client: Client, dead: Callable[..., Turn]
) -> None:
    dead("failed", error=f"IntegrityError: row ({PRIVATE})")
    dead("failed", OTHER_CLIENT, error="HTTP 401: token")
    dead("unconfirmed")
    dead("missed", age=3_000)
    dead("pending", age=10)
    dead("sent")
    dead("running", OTHER_CLIENT, age=1)
    shown = page(admin_client, f"{ROOM}turns/")
    assert PRIVATE not in shown
    text = words(shown)
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


def test_a_failed_answer_leads_to_where_it_is_run_again(admin_client: Client, world: World) -> None:
    world.provider.fail_next(SendError("HTTP 400: no", permanent=True, code=100))
    world.say(CLIENT, "Good morning")
    turn = Turn.objects.get()
    assert turn.state == "failed"
    address = re.search(r'href="([^"]*/rerun/)"', page(admin_client, f"{ROOM}turns/"))
    assert address
    assert admin_client.get(address[1]).status_code == 200
    assert "Nothing was done" in said(admin_client, f"{ROOM}turns/{turn.pk}/take-up/")
    assert OrmQ.objects.count() == 0


def test_a_stuck_turn_is_handed_to_a_worker(
    admin_client: Client, dead: Callable[..., Turn]
) -> None:
    turn = dead("pending", age=10)
    assert "A worker takes it up now." in said(admin_client, f"{ROOM}turns/{turn.pk}/take-up/")
    (waiting,) = OrmQ.objects.all()
    assert waiting.task["args"] == (str(turn.chat_id),)
    assert AuditEvent.objects.filter(action="turn.take_up").count() == 1


def test_answering_again_needs_its_own_right(client: Client, dead: Callable[..., Turn]) -> None:
    turn = dead("failed")
    user = User.objects.create_user("operator", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="operate_server"))
    client.force_login(user)
    shown = page(client, f"{ROOM}turns/")
    assert "Answer again" not in shown
    assert "15550100123" not in shown, "who may not see chats is told no names"
    assert client.post(f"{ROOM}turns/{turn.pk}/take-up/").status_code == 403
    turn.refresh_from_db()
    assert turn.state == "failed"


def test_the_overview_leads_to_what_is_wrong(
    admin_client: Client, dead: Callable[..., Turn]
) -> None:
    failed_job()
    dead("failed")
    shown = words(page(admin_client, ROOM))
    assert "Failed jobs 1" in shown
    assert "Unsent answers 1 failed 0 unconfirmed, 0 missed, 0 stuck" in shown
    assert "Schedules not installed" in shown


@pytest.mark.slow
def test_pages_take_as_many_queries_for_three_rows_as_for_many(
    admin_client: Client, dead: Callable[..., Turn]
) -> None:
    schedules_install()
    counts: list[list[int]] = []
    for more in (3, 17):
        for number in range(more):
            failed_job()
            async_task("sessions_app.tasks.answer_chat", str(number))
            dead("failed", f"1555020{number:04d}@c.us")
        found = []
        for path in PAGES:
            with CaptureQueriesContext(connection) as asked:
                page(admin_client, path)
            found.append(len(asked))
        counts.append(found)
    assert counts[0] == counts[1]
    assert max(counts[0]) < 40
