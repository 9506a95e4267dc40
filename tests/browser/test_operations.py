"""The server's pages in a real browser: wide and narrow, light and dark, in Hebrew, by keyboard."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from django_q.models import Failure, Task
from playwright.sync_api import Page, expect

from sessions_app.schedules import schedules_install
from tests.browser.visit import Visit, looked_at
from tests.loopback.graph import GraphServer
from tests.world import CLIENT, World

pytestmark = pytest.mark.browser
ROOM = "/admin/operations/"
PAGES = ("", "settings/", "queue/", "schedules/", "turns/", "provider/")


@pytest.fixture
def troubled(staff: Page, world: World) -> Page:
    """A server with something on each page."""
    schedules_install()
    now = timezone.now()
    Task.objects.create(
        id="f" * 32,
        name="vectors",
        func="sessions_app.tasks.embed_session",
        args=(),
        kwargs={},
        started=now,
        stopped=now,
        success=False,
    )
    world.say(CLIENT, "Good morning")
    world.chat(CLIENT).turns.update(state="failed", error="HTTP 401: no")
    return staff


def test_pages_fit_and_keep_nobody_out(troubled: Page, visit: Visit) -> None:
    for name in PAGES:
        troubled.goto(f"{ROOM}{name}")
        assert looked_at(troubled) == [], name
    assert visit.troubles() == []


def test_a_failed_job_is_removed_by_keyboard(troubled: Page) -> None:
    troubled.goto(f"{ROOM}queue/")
    button = troubled.get_by_role("button", name="Remove")
    button.focus()
    with troubled.expect_navigation():
        troubled.keyboard.press("Enter")
    expect(troubled.get_by_text("The failed job was removed.")).to_be_visible()
    expect(troubled.get_by_text("No job has failed.")).to_be_visible()
    assert not Failure.objects.exists()


def test_somebody_sends_himself_a_message(staff: Page, settings: Any) -> None:
    with GraphServer(access_token="token") as graph:
        settings.WHATSAPP_CLOUD_API_URL = f"{graph.url}/v24.0"
        settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = graph.phone_number_id
        settings.WHATSAPP_CLOUD_ACCESS_TOKEN = "token"
        staff.goto(f"{ROOM}provider/")
        staff.get_by_label("Phone number").fill("+972 50 123 4567")
        with staff.expect_navigation():
            staff.get_by_role("button", name="Send a test message").click()
        expect(staff.get_by_role("main").get_by_role("status")).to_contain_text(
            "The provider took the message."
        )
        assert [sent["to"] for sent in graph.sent] == ["972501234567"]
        expect(staff.get_by_label("Phone number")).to_have_value("")
