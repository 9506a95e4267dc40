"""Redis as the broker is gone, or takes connections and says nothing: pages say so, and soon."""

from __future__ import annotations

import html
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from django.test import Client
from django_q.models import Failure, Schedule, Task

from memoryproject.staff_site import server_state
from sessions_app.models import Turn
from sessions_app.schedules import schedules_install
from tests.jobs import failed_job
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db
ROOM = "/admin/operations/"


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"


@pytest.fixture
def closed() -> str:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return f"redis://127.0.0.1:{listening.getsockname()[1]}/0"


@pytest.fixture(params=["closed", "silent"])
def gone(request: pytest.FixtureRequest, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is waited for longer than these few milliseconds."""
    monkeypatch.setattr(server_state, "WAIT_SECONDS", 0.05)
    settings.Q_BROKER = request.getfixturevalue(request.param)


@pytest.fixture
def failed() -> Task:
    return failed_job("x")


@pytest.mark.parametrize("name", ["", "settings/", "queue/", "schedules/", "turns/", "provider/"])
@pytest.mark.usefixtures("gone")
def test_every_page_is_there(admin_client: Client, name: str) -> None:
    assert admin_client.get(f"{ROOM}{name}").status_code == 200


@pytest.mark.parametrize("path", ["/admin/", "/", "/metrics"])
@pytest.mark.usefixtures("gone")
def test_other_pages_are_there_too(admin_client: Client, path: str) -> None:
    assert admin_client.get(path).status_code == 200


@pytest.mark.usefixtures("gone")
def test_it_is_told(admin_client: Client) -> None:
    queue = html.unescape(admin_client.get(f"{ROOM}queue/").content.decode())
    assert "The queue's broker (Q_BROKER) doesn't answer." in queue
    assert "out of reach" in admin_client.get(ROOM).content.decode()


@pytest.mark.usefixtures("gone")
def test_a_failed_job_stays_where_it_is(admin_client: Client, failed: Task) -> None:
    answer = admin_client.post(f"{ROOM}queue/{failed.id}/retry/", follow=True)
    assert "nothing was done" in answer.content.decode()
    kept = Failure.objects.get()
    assert (kept.id, kept.func, kept.args) == (failed.id, failed.func, failed.args)


@pytest.mark.usefixtures("gone")
def test_a_schedule_is_left_alone(admin_client: Client) -> None:
    schedules_install()
    schedule = Schedule.objects.first()
    answer = admin_client.post(f"{ROOM}schedules/{schedule.pk}/run/", follow=True)
    assert "nothing was done" in answer.content.decode()
    assert Schedule.objects.get(pk=schedule.pk).task is None


@pytest.mark.usefixtures("gone")
def test_a_stuck_turn_is_left_to_the_sweep(admin_client: Client, world: World) -> None:
    event = message_from(CLIENT, "Good morning")
    world.receive(event)
    turn = Turn.objects.get()
    answer = admin_client.post(f"{ROOM}turns/{turn.pk}/take-up/", follow=True)
    assert answer.status_code == 200
    turn.refresh_from_db()
    assert turn.state == "pending"


@pytest.mark.usefixtures("gone")
def test_readiness_says_that_workers_can_not_be_asked(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "Q_BROKER" in answer.json()["parts"]["workers"]
