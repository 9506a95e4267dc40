"""Redis as the broker is gone, or takes connections and says nothing: pages say so, and soon."""

from __future__ import annotations

import html
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from django.test import Client
from django_q.models import Failure, Schedule

from memoryproject.staff_site import server_state
from sessions_app.models import Turn
from sessions_app.schedules import schedules_install
from tests.dashboard.staff import page
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


@pytest.mark.usefixtures("gone")
def test_every_page_is_there_and_it_is_told(admin_client: Client) -> None:
    rooms = ("", "settings/", "queue/", "schedules/", "turns/", "provider/")
    for path in (*(f"{ROOM}{name}" for name in rooms), "/admin/", "/", "/metrics"):
        assert admin_client.get(path).status_code == 200, path
    queue = html.unescape(page(admin_client, f"{ROOM}queue/"))
    assert "The queue's broker (Q_BROKER) doesn't answer." in queue
    assert "out of reach" in page(admin_client, ROOM)
    answer = admin_client.get("/readyz")
    assert answer.status_code == 503
    assert "Q_BROKER" in answer.json()["parts"]["workers"]


@pytest.mark.usefixtures("gone")
def test_jobs_schedules_and_turns_stay_where_they_are(admin_client: Client, world: World) -> None:
    failed = failed_job("x")
    schedules_install()
    schedule = Schedule.objects.earliest("pk")
    for path in (f"queue/{failed.id}/retry/", f"schedules/{schedule.pk}/run/"):
        answer = admin_client.post(f"{ROOM}{path}", follow=True)
        assert "nothing was done" in answer.content.decode()
    kept = Failure.objects.get()
    assert (kept.id, kept.func, kept.args) == (failed.id, failed.func, failed.args)
    assert Schedule.objects.get(pk=schedule.pk).task is None
    # A stuck turn is left to the sweep.
    world.receive(message_from(CLIENT, "Good morning"))
    turn = Turn.objects.get()
    answer = admin_client.post(f"{ROOM}turns/{turn.pk}/take-up/", follow=True)
    assert answer.status_code == 200
    turn.refresh_from_db()
    assert turn.state == "pending"
