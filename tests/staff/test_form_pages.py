"""An address that takes POST only leads a GET to the page of its form: whoever switches the
language on a page that answered a POST, loads it again, or logs in meanwhile, comes there."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memoryproject.staff_site.site import FORM_PAGES
from sessions_app.models import Turn
from tests.staff.expected import PAGES
from tests.staff.furnish import furnish, rows
from tests.staff.roles import address_of
from tests.world import World, new_world

pytestmark = pytest.mark.django_db

REPLY = "sessions_app_chat_takeover_reply"


@pytest.fixture(scope="module")
def furnished(module_rows: None) -> World:
    world = new_world()
    furnish(world)
    return world


def test_every_address_that_takes_post_only_has_its_page() -> None:
    assert {name for name, page in PAGES.items() if page.get is None} == set(FORM_PAGES)


def test_it_leads_to_a_page(furnished: World, admin_client: Client) -> None:
    pages, keys = set(), rows()
    for name in FORM_PAGES:
        address = address_of(name, PAGES[name], keys)
        answer = admin_client.get(address, {"p": "1"})
        assert answer.status_code == 302, name
        pages.add(answer["Location"])
        assert answer["Location"] != address
        assert answer["Location"].endswith("?p=1"), name
    for page in pages:
        answer = admin_client.get(page, follow=True)
        assert answer.status_code == 200, page
        assert "<h1" in b"".join(answer).decode(), page


def test_a_post_from_another_site_is_refused(furnished: World, admin_user: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin_user)
    keys = rows()
    for name, page in PAGES.items():
        if page.post is not None:
            answer = strict.post(address_of(name, page, keys), page.data)
            assert answer.status_code == 403, name


@pytest.mark.parametrize(
    ("name", "posted"),
    [
        (REPLY, {"text": "Good morning"}),
        ("sessions_app_chat_takeover_template", {"name": "A B", "language": "en"}),
        ("sessions_app_chat_takeover_pause", {"lasts": "at", "until": "yesterday"}),
        ("sessions_app_turn_teach", {"for": "client", "content": ""}),
    ],
)
def test_the_language_is_switched_where_a_post_was_refused(
    furnished: World, admin_client: Client, name: str, posted: dict[str, Any]
) -> None:
    keys = {**rows(), "sessions_app.turn": Turn.objects.earliest("pk").pk}
    answer = admin_client.post(address_of(name, PAGES[name], keys), posted)
    page = answer.content.decode()
    assert 'role="alert"' in page
    (here,) = re.findall(r'<input type="hidden" name="next" value="([^"]*)">', page)
    answer = admin_client.post(
        "/admin/language/", {"next": unescape(here), "language": "he"}, follow=True
    )
    assert answer.status_code == 200
    assert '<html lang="he" dir="rtl">' in answer.content.decode()


def test_who_logs_in_after_a_session_comes_to_the_page(furnished: World, client: Client) -> None:
    User.objects.create_superuser("late", password="late-pass-1")
    address = address_of(REPLY, PAGES[REPLY], rows())
    login = client.post(address, {"text": "Good morning"}).headers["Location"]
    answer = client.post(login, {"username": "late", "password": "late-pass-1"}, follow=True)
    assert answer.status_code == 200
    assert 'id="takeover"' in answer.content.decode()
