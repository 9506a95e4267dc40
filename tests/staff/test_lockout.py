"""The lock after failed logins."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client, RequestFactory
from django.utils import timezone

from memoryproject.staff_site.accounts.lockout import client_address
from tests.staff.people import PASSWORD, is_in, person, told, type_password

pytestmark = pytest.mark.django_db

# Where django-axes could keep something.
STORED = (AccessAttempt, AccessFailureLog, AccessLog)


@pytest.fixture
def dana() -> User:
    return person("dana", "Viewer")


def fail(client: Client, times: int, name: str = "dana", **more: Any) -> Any:
    answer = None
    for _ in range(times):
        answer = type_password(client, name, "my-passw0rd", **more)
    return answer


def let_pass(minutes: int) -> None:
    then = timezone.now() - timedelta(minutes=minutes)
    AccessAttempt.objects.update(attempt_time=then)


def test_the_fifth_failure_locks_and_says_so_in_words(client: Client, dana: User) -> None:
    assert fail(client, 4).status_code == 200
    answer = fail(client, 1)
    assert answer.status_code == 429
    text = answer.content.decode()
    assert "Too many failed logins" in text
    assert "15 minutes" in text
    assert answer["Retry-After"] == "900"
    assert type_password(client, "dana").status_code == 429
    assert not is_in(client)


def test_names_that_nobody_has_lock_in_the_same_way(client: Client) -> None:
    person("dana")
    told_apart = set()
    for name in ("nobody", "dana"):
        assert fail(client, 4, name).status_code == 200
        answer = fail(client, 1, name)
        assert answer.status_code == 429
        told_apart.add((answer["Retry-After"], answer.content))
    assert len(told_apart) == 1


def test_another_name_and_another_address_are_free(client: Client, dana: User) -> None:
    person("omer")
    fail(client, 5)
    assert type_password(Client(REMOTE_ADDR="192.0.2.7"), "dana").url == "/admin/"
    assert type_password(Client(), "omer").url == "/admin/"


def test_who_changes_the_browser_is_not_free(dana: User) -> None:
    for number in range(4):
        fail(Client(HTTP_USER_AGENT=f"browser {number}"), 1)
    assert fail(Client(HTTP_USER_AGENT="browser 5"), 1).status_code == 429


def test_it_ends_by_itself_and_trying_on_does_not_lengthen_it(client: Client, dana: User) -> None:
    fail(client, 5)
    let_pass(14)
    assert "1 minute." in fail(client, 3).content.decode()
    let_pass(16)
    assert type_password(client, "dana").url == "/admin/"


def test_a_login_that_succeeds_begins_the_count_anew(client: Client, dana: User) -> None:
    fail(client, 4)
    assert type_password(client, "dana").url == "/admin/"
    client.logout()
    assert fail(client, 4).status_code == 200


def test_the_settings_say_how_many_and_how_long(client: Client, dana: User, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = settings.LOGIN_FAILURES = 2
    settings.LOGIN_LOCK_MINUTES = 60
    settings.AXES_COOLOFF_TIME = timedelta(minutes=60)
    fail(client, 1)
    assert "60 minutes" in fail(client, 1).content.decode()


class TestTheOwnPassword:
    """Who finds a session open could guess the old password where it is changed."""

    ADDRESS = "/admin/password_change/"

    def change(self, client: Client, old: str, new: str = "another-passw0rd-9") -> Any:
        typed = {"old_password": old, "new_password1": new, "new_password2": new}
        return client.post(self.ADDRESS, typed)

    def test_wrong_ones_lock(self, client: Client, dana: User) -> None:
        type_password(client, "dana")
        for _ in range(4):
            answer = self.change(client, "my-passw0rd")
            assert answer.status_code == 200
            assert "old_password" in answer.context["form"].errors
        assert self.change(client, "my-passw0rd").status_code == 429
        assert self.change(client, PASSWORD).status_code == 429
        dana.refresh_from_db()
        assert dana.check_password(PASSWORD)
        assert type_password(Client(), "dana").status_code == 429
        details = [event.details for event in told("login.failed")[:5]]
        assert details == [{"step": "password"}] * 5
        # The page itself stays, and so does the session.
        assert client.get(self.ADDRESS).status_code == 200

    def test_what_is_wrong_with_the_new_one_counts_for_nothing(
        self, client: Client, dana: User
    ) -> None:
        type_password(client, "dana")
        for _ in range(6):
            assert self.change(client, PASSWORD, "short").status_code == 200
        assert not told("login.failed")
        assert self.change(client, PASSWORD).status_code == 302
        dana.refresh_from_db()
        assert dana.check_password("another-passw0rd-9")

    def test_neither_of_them_is_stored(self, client: Client, dana: User) -> None:
        type_password(client, "dana")
        # The second failure is written to the row of the first.
        for _ in range(2):
            typed = {
                "old_password": "my-passw0rd",
                "new_password1": "another-passw0rd-9",
                "new_password2": "another-passw0rd-9",
                "a_field_of_another_page": "yet-an0ther",
            }
            client.post(f"{self.ADDRESS}?password=in-the-addr3ss", typed)
        rows = str([list(model.objects.values()) for model in STORED])
        assert AccessAttempt.objects.get().failures_since_start == 2
        assert "my-passw0rd" not in rows
        assert "another-passw0rd-9" not in rows
        assert "yet-an0ther" not in rows
        assert "in-the-addr3ss" not in rows


def test_what_was_typed_is_nowhere(client: Client, dana: User) -> None:
    fail(client, 3, "my-passw0rd")
    fail(client, 2, "dana")
    rows = str([list(model.objects.values()) for model in STORED])
    assert "my-passw0rd" not in rows
    assert "dana" not in rows


def test_the_lock_is_one_event_and_failures_stay_events(client: Client, dana: User) -> None:
    fail(client, 7)
    (event,) = told("login.locked")
    assert (event.actor_kind, event.object_type, event.object_id) == (
        "system",
        "user",
        str(dana.pk),
    )
    assert len(told("login.failed")) == 7
    fail(client, 5, "nobody")
    assert told("login.locked")[1].object_type == "typed name"


def test_the_api_is_not_affected(client: Client, dana: User) -> None:
    fail(client, 5)
    bad = {"Authorization": "Token wrong"}
    for _ in range(7):
        assert client.get("/api/v1/sessions/", headers=bad).status_code == 401
    assert AccessAttempt.objects.count() == 1


class TestTheCommand:
    def test_it_sets_a_name_free(self, client: Client, dana: User, capsys: Any) -> None:
        fail(client, 5)
        call_command("unlock_login", "dana")
        assert "dana: free again" in capsys.readouterr().out
        assert type_password(client, "dana").url == "/admin/"
        (event,) = told("login.unlock")
        assert (event.actor_kind, event.object_id) == ("command", str(dana.pk))

    def test_all_and_the_list(self, client: Client, dana: User, capsys: Any) -> None:
        fail(client, 5)
        fail(client, 2, "nobody")
        call_command("unlock_login", "--list", "--json")
        assert json.loads(capsys.readouterr().out) == [
            {"name": "dana", "address": "127.0.0.1", "failures": 5, "locked": True},
            {"name": None, "address": "127.0.0.1", "failures": 2, "locked": False},
        ]
        call_command("unlock_login", "--all")
        assert not AccessAttempt.objects.exists()

    def test_it_sets_one_name_free_from_everywhere_and_no_other(
        self, client: Client, dana: User
    ) -> None:
        person("omer")
        elsewhere = Client(REMOTE_ADDR="192.0.2.7")
        for where, name in ((client, "dana"), (elsewhere, "dana"), (client, "omer")):
            assert fail(where, 5, name).status_code == 429
        call_command("unlock_login", "dana")
        assert type_password(client, "omer").status_code == 429
        for where in (client, elsewhere):
            assert type_password(where, "dana").url == "/admin/"

    def test_a_name_in_another_form_is_the_same_one(self, client: Client, dana: User) -> None:
        assert fail(client, 5, "ｄana").status_code == 429
        assert type_password(client, "dana").status_code == 429
        call_command("unlock_login", "ｄana")
        assert type_password(client, "dana").url == "/admin/"

    def test_what_is_over_is_not_listed(self, client: Client, dana: User, capsys: Any) -> None:
        fail(client, 5)
        let_pass(16)
        call_command("unlock_login", "--list", "--json")
        assert json.loads(capsys.readouterr().out) == []

    def test_who_is_not_locked_is_told(self, dana: User) -> None:
        with pytest.raises(CommandError, match="There are no failed logins"):
            call_command("unlock_login", "dana")
        with pytest.raises(CommandError, match="name"):
            call_command("unlock_login")


class TestWhereALoginComesFrom:
    @pytest.mark.parametrize(
        ("proxies", "forwarded", "found"),
        [
            (0, "203.0.113.9", "192.0.2.1"),
            (1, "203.0.113.9", "203.0.113.9"),
            (1, "10.6.6.6, 203.0.113.9", "203.0.113.9"),
            (2, "10.6.6.6, 203.0.113.9, 198.51.100.2", "203.0.113.9"),
            (2, "203.0.113.9", "203.0.113.9"),
            (1, "", "192.0.2.1"),
            (1, "203.0.113.9:4711", "203.0.113.9"),
            (1, "[2001:db8:1:2::7]:4711", "2001:db8:1:2::"),
            (1, "2001:db8:1:2:ffff::9", "2001:db8:1:2::"),
            (1, "::ffff:203.0.113.9", "203.0.113.9"),
            (1, "unknown\0, <b>", None),
        ],
    )
    def test_only_proxies_of_ours_are_believed(
        self, settings: Any, proxies: int, forwarded: str, found: str | None
    ) -> None:
        settings.TRUSTED_PROXIES = proxies
        request = RequestFactory(REMOTE_ADDR="192.0.2.1").get("/", HTTP_X_FORWARDED_FOR=forwarded)
        assert client_address(request) == found

    def test_a_made_up_header_does_not_escape_the_lock(self, dana: User) -> None:
        for number in range(4):
            fail(Client(HTTP_X_FORWARDED_FOR=f"203.0.113.{number}"), 1)
        assert fail(Client(HTTP_X_FORWARDED_FOR="203.0.113.99"), 1).status_code == 429
