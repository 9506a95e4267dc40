"""How long staff stay logged in, and when they are logged out."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.staff.people import PASSWORD, half_way, is_in, person, told, type_password

pytestmark = pytest.mark.django_db

LIVE = {"X-Requested-With": "live"}
PAGE = "/admin/sessions_app/chat/"


@pytest.fixture
def dana() -> Client:
    person("dana", "Viewer")
    return half_way()


def be_idle(client: Client, minutes: float) -> None:
    session = client.session
    session["seen"] -= int(minutes * 60)
    session.save()


@pytest.mark.parametrize(("minutes", "words"), [(480, "8 hours"), (45, "45 minutes")])
def test_idle_for_too_long(dana: Client, settings: Any, minutes: int, words: str) -> None:
    settings.STAFF_SESSION_MINUTES = minutes
    be_idle(dana, minutes + 1)
    answer = dana.get(f"{PAGE}?q=a")
    assert answer["Location"] == "/admin/login/?next=%2Fadmin%2Fsessions_app%2Fchat%2F%3Fq%3Da"
    page = dana.get(answer["Location"]).content.decode()
    assert f"logged out after {words} without activity" in page
    assert not is_in(dana)
    back = dana.post(answer["Location"], {"username": "dana", "password": PASSWORD})
    assert back["Location"] == f"{PAGE}?q=a"


def test_who_does_something_stays(dana: Client) -> None:
    for _ in range(3):
        be_idle(dana, 479)
        assert dana.get(PAGE).status_code == 200


def test_a_page_that_asks_by_itself_keeps_nothing_alive(dana: Client) -> None:
    be_idle(dana, 479)
    before = dana.session["seen"]
    assert dana.get(PAGE, headers=LIVE).status_code == 200
    assert dana.session["seen"] == before
    be_idle(dana, 2)
    answer = dana.get(PAGE, headers=LIVE)
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/json"


def test_what_was_to_be_posted_is_not_gone_back_to(dana: Client) -> None:
    be_idle(dana, 481)
    assert dana.post(PAGE, {})["Location"] == "/admin/login/?next=%2Fadmin%2F"


def test_the_api_takes_no_idle_session(dana: Client) -> None:
    assert dana.get("/api/v1/sessions/").status_code == 200
    be_idle(dana, 481)
    assert dana.get("/api/v1/sessions/").status_code == 401


def test_the_session_is_written_at_most_once_a_minute(dana: Client) -> None:
    def writes() -> int:
        with CaptureQueriesContext(connection) as queries:
            dana.get(PAGE)
        return sum('UPDATE "django_session"' in query["sql"] for query in queries)

    assert writes() == 0
    be_idle(dana, 1)
    assert writes() == 1
    assert writes() == 0


def test_a_new_password_logs_out_everywhere_else(dana: Client) -> None:
    elsewhere, new = half_way(), "a-quite-new-password"
    changed = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    dana.post("/admin/password_change/", changed)
    assert is_in(dana)
    assert not is_in(elsewhere)
    (event,) = told("user.password")
    assert event.actor == "dana"
    assert new not in str(event.details)


def test_who_is_switched_off_is_out_at_once(dana: Client) -> None:
    User.objects.filter(username="dana").update(is_active=False)
    assert not is_in(dana)


def test_cookies_go_by_https_alone_where_it_is_said(client: Client, settings: Any) -> None:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    person("dana")
    client.get("/admin/login/")
    type_password(client, "dana")
    for name in ("sessionid", "csrftoken"):
        assert client.cookies[name]["secure"]
    assert client.cookies["sessionid"]["httponly"]
    assert client.cookies["sessionid"]["max-age"] == ""


def test_a_form_that_is_sent_too_late_leads_back_to_its_page() -> None:
    """Before its token is checked, which went with the login's cookies."""
    strict = Client(enforce_csrf_checks=True)
    page = "/admin/sessions_app/assistantprofile/1/change/?x=1"
    for before, back in (
        (f"http://testserver{page}", page),
        ("https://elsewhere.example/admin/", PAGE),
        ("http://testserver/other/", PAGE),
        ("", PAGE),
    ):
        answer = strict.post(PAGE, {"text": "x"}, headers={"referer": before})
        assert answer["Location"] == f"/admin/login/?{urlencode({'next': back})}"


def test_only_a_stored_form_is_confirmed_to_the_browser(dana: Client) -> None:
    token = {"draft_token": "1a-2b-3c-4d", "language": "en"}
    saved = dana.post("/admin/language/", token)
    assert saved.cookies["staff-saved"].value == "1a-2b-3c-4d"
    assert not saved.cookies["staff-saved"]["httponly"]
    for bad in ("", "a b; Path=/", "x" * 200):
        assert "staff-saved" not in dana.post("/admin/language/", {"draft_token": bad}).cookies
    assert "staff-saved" not in Client().post("/admin/language/", token).cookies


def test_a_page_of_somebody_else_is_told_that_its_login_is_over(dana: Client) -> None:
    own = str(User.objects.get().pk)
    assert dana.get(PAGE, headers={**LIVE, "X-Staff": own}).status_code != 401
    assert dana.get(PAGE, headers={**LIVE, "X-Staff": "0"}).status_code == 401
