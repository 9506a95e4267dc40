"""A headless Chromium before a live server, with an admin who is logged in.

Playwright keeps an event loop running in this thread, and Django then refuses its ORM; the tests
of this folder use both by turns, never at once, so the guard is lifted here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from memoryproject.foundation.integrations.whatsapp.events import Party
from tests.browser.visit import Visit, with_its_requests
from tests.world import CLIENT, World, message_from

USERNAME, PASSWORD = "staff", "sample-pass-1"
# Playwright's own five seconds are too short on a machine that is busy with other tests.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Debian's Chromium, without the parts for a screen if there is such a one: they
    take a third of the time. Missing, it is a skip for a user and a failure in CI."""
    found = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if found is None:
        missing = "Chromium is not installed (Debian: apt-get install chromium)"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@pytest.fixture(scope="session")
def live_server(django_db_setup: None, live_server: LiveServer) -> LiveServer:
    """The server of all tests. It ends before the database is removed, with its last request."""
    return with_its_requests(live_server)


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        # A graphics card would be imitated; one process renders all pages, which starts once.
        args = ["--no-sandbox", "--disable-gpu", "--renderer-process-limit=1"]
        started = playwright.chromium.launch(executable_path=chromium, args=args)
        yield started
        started.close()


@pytest.fixture(scope="package")
def context(browser: Browser, live_server: LiveServer) -> Iterator[BrowserContext]:
    """Of all tests: scripts and styles are loaded once, and come from its cache after that. An
    empty page keeps the process that renders between the tests."""
    made = browser.new_context(base_url=live_server.url, viewport={"width": 1280, "height": 800})
    made.new_page()
    yield made
    made.close()


@pytest.fixture
def visit(context: BrowserContext, live_server: LiveServer) -> Iterator[Visit]:
    """A visitor who isn't logged in, and of whom the browser knows nothing."""
    page = context.new_page()
    yield Visit(page, live_server.url)
    origin = {"origin": live_server.url, "storageTypes": "all"}
    context.new_cdp_session(page).send("Storage.clearDataForOrigin", origin)
    context.clear_cookies()
    for each in context.pages[1:]:
        each.close()


@pytest.fixture
def staff(visit: Visit, transactional_db: None) -> Page:
    """An admin's page, logged in, before it went anywhere. How a login goes is tested once, in
    test_login.py."""
    users = get_user_model()._default_manager
    user = users.create_superuser(username=USERNAME, password=PASSWORD, email="staff@example.com")
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    cookie = {"name": name, "value": client.cookies[name].value, "url": visit.url}
    visit.page.context.add_cookies([cookie])  # type: ignore[list-item]
    return visit.page


@pytest.fixture
def timed(staff: Page, visit: Visit, browser: Browser) -> Iterator[Visit]:
    """The admin in a context of their own, whose clock a test moves: all later pages of a context
    keep a clock that was moved."""
    state = staff.context.storage_state()
    context = browser.new_context(
        base_url=visit.url, viewport={"width": 1280, "height": 800}, storage_state=state
    )
    context.clock.install()
    yield Visit(context.new_page(), visit.url)
    context.close()


@pytest.fixture
def omar(world: World) -> None:
    """Somebody who wrote, beside another client: Omar Haddad, 055-010-0101."""
    party = Party(phone="972550100101", name="Omar Haddad")
    world.receive(message_from("972550100101@c.us", "shalom", party=party))
    world.say(CLIENT, "hello")
