"""Long work over REST: asked for, looked after, cut off, cancelled, and its results."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.utils import timezone

from memories_app.models import Memory
from sessions_app.jobs import run_jobs
from sessions_app.jobs.run_jobs import job_run, jobs_abandoned, jobs_drop
from sessions_app.models import Chat, Job, JobPart
from sessions_app.tasks import run_job, sweep_work
from tests.api.calling import Api, api_with, error_of
from tests.api.test_chat import CLIENT, OTHER, say

pytestmark = pytest.mark.django_db(transaction=True)


def work() -> None:
    """What the workers do."""
    for key in Job.objects.order_by("created_at").values_list("pk", flat=True):
        run_job(str(key))


def asked(answer: Any) -> str:
    """The address of the job that was made."""
    assert answer.status_code == 202, answer.content
    path = str(answer["Location"]).removeprefix("/api/v1/")
    assert path == f"jobs/{answer.json()['job_id']}/"
    return path


def lines(count: int, first: int = 0) -> bytes:
    facts = ({"content": f"Fact {n} of many", "visibility": "public"} for n in range(first, count))
    return b"".join(json.dumps(fact).encode() + b"\n" for fact in facts)


def import_of(api: Api, body: bytes, **headers: str) -> str:
    named = {"Content_Type": "application/x-ndjson", **headers}
    return asked(api.call("POST", "jobs/import/", body, **named))


def test_an_import_goes_on_where_it_was_cut_off_and_says_how_far_it_is(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_jobs, "LINES_A_PART", 4)
    path = import_of(api, lines(5) + b"no JSON\n" + lines(9, 5), Idempotency_Key="k")
    assert import_of(api, lines(5) + b"no JSON\n" + lines(9, 5), Idempotency_Key="k") == path
    queued = api.get(path).json()
    assert (queued["state"], queued["progress"]) == ("queued", {"done": 0, "total": 10})
    assert not Memory.objects.exists()
    # A worker has time for one part only, and is killed in the next one.
    job_id = UUID(queued["job_id"])
    assert job_run(job_id, seconds=0) == "running"
    assert api.get(path).json()["progress"] == {"done": 4, "total": 10}
    monkeypatch.undo()
    Job.objects.update(**Job.lease_values(uuid4(), timezone.now()))
    assert jobs_abandoned(timezone.now()) == []
    Job.objects.update(lease_until=timezone.now())
    sweep_work()
    work()
    done = api.get(path).json()
    assert (done["state"], done["progress"]) == ("done", {"done": 10, "total": 10})
    assert (done["result"]["created"], done["result"]["errors"][0]["line"]) == (9, 6)
    assert (Memory.objects.count(), JobPart.objects.count()) == (9, 0)
    assert error_of(api.delete(path), 409)
    assert api.walk("jobs/?kind=import&state=done") == [done]
    empty = import_of(api, b"")
    work()
    assert api.get(empty).json()["result"] == {"created": 0, "duplicates": 0, "errors": []}


def test_an_export_holds_what_the_caller_may_see_until_something_is_forgotten(api: Api) -> None:
    for chat in (CLIENT, OTHER):
        say(api, f"/remember the gate code of {chat[:11]}", chat)
    bound = api_with(chat_ids=[Chat.objects.get(whatsapp_chat=CLIENT).pk])
    paths = {caller: asked(caller.post("jobs/export/")) for caller in (api, bound)}
    error_of(api.get(f"{paths[api]}result/"), 409)
    work()
    for caller, count in ((api, 2), (bound, 1)):
        job = caller.get(paths[caller]).json()
        assert job["progress"] == {"done": count, "total": count}
        made = b"".join(caller.get(job["result_url"]))
        assert len(made.splitlines()) == count
        assert (OTHER.encode() in made) is (caller is api)
    direct = b"".join(api.get("memories/export/"))
    assert b"".join(api.get(f"{paths[api]}result/")) == direct
    error_of(bound.get(paths[api]), 404)
    error_of(api_with(name="other").get(f"{paths[api]}result/"), 404)
    error_of(bound.post("jobs/export/", {"whatsapp_chat": OTHER}), 404)
    waiting = asked(api.post("jobs/export/", {"whatsapp_chat": CLIENT}))
    erasing = asked(api.post("jobs/erase/", {"whatsapp_chat": CLIENT}))
    job_run(UUID(erasing.split("/")[1]))
    erased = api.get(erasing).json()
    assert (erased["state"], erased["progress"]) == ("done", {"done": 1, "total": 1})
    receipt = api.get(erased["result_url"]).json()
    assert (receipt["kind"], receipt["left"]) == ("chat", [])
    for path in (waiting, paths[api]):
        assert api.get(path).json()["state"] == "failed"
        error_of(api.get(f"{path}result/"), 409)
    assert not JobPart.objects.exists()
    error_of(api.post("jobs/erase/", {"whatsapp_chat": CLIENT}), 404)


def test_vectors_are_made_and_a_cancelled_job_does_nothing(api: Api) -> None:
    cancelled = import_of(api, lines(3))
    assert api.delete(cancelled).json()["state"] == "cancelled"
    path = asked(api.post("jobs/reembed/"))
    work()
    job = api.get(path).json()
    assert (job["state"], job["error"]) == ("done", "")
    assert job["result"]["model"]
    assert (Memory.objects.count(), JobPart.objects.count()) == (0, 0)
    error_of(api.post("jobs/reembed/", {"model": "x"}), 400)


def test_an_import_cancelled_within_a_part_says_what_it_stored(api: Api) -> None:
    path = import_of(api, lines(3))
    with connection.cursor() as cursor:
        # Somebody cancels it while the worker stores the memories.
        cursor.execute("""
            CREATE FUNCTION cancel_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            UPDATE sessions_app_job SET state = 'cancelled', lease_token = NULL;
            RETURN NULL; END $$;
            CREATE TRIGGER cancelling AFTER INSERT ON memories_app_memory
            EXECUTE FUNCTION cancel_all()
        """)
    try:
        work()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION cancel_all CASCADE")
    job = api.get(path).json()
    assert (job["state"], job["progress"]) == ("cancelled", {"done": 3, "total": 3})
    assert job["result"]["created"] == Memory.objects.count() == 3


def test_what_fails_is_tried_again_and_then_says_so(api: Api) -> None:
    path = import_of(api, lines(1))

    def broken(*_: Any) -> bool:
        raise ValueError("It quotes Fact 0 of many")

    for attempt in range(1, run_jobs.MAX_ATTEMPTS + 1):
        Job.objects.update(due_at=timezone.now())
        job_run(Job.objects.get().pk, steps={"import": broken})
        job = api.get(path).json()
        assert job["error"] == "ValueError"
        assert (job["state"] == "failed") is (attempt == run_jobs.MAX_ATTEMPTS)
    jobs_drop(timezone.now() + run_jobs.JOB_KEPT * 2)
    assert not Job.objects.exists()
