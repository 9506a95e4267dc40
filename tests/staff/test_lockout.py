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
OWN_PASSWORD = "/admin/password_change/"


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


def test_the_fifth_failure_locks_also_a_name_that_nobody_has(client: Client, dana: User) -> None:
    our_number = set()
    for name in ("nobody", "dana"):
        assert fail(client, 4, name).status_code == 200
        answer = fail(client, 1, name)
        assert answer.status_code == 429
        assert "Too many failed logins" in answer.content.decode()
        assert "15 minutes" in answer.content.decode()
        our_number.add((answer["Retry-After"], answer.content))
    assert len(our_number) == 1
    assert answer["Retry-After"] == "900"
    assert type_password(client, "dana").status_code == 429
    assert not is_in(client)


def test_another_name_and_another_address_are_free(client: Client, dana: User) -> None:
    person("omer")
    fail(client, 5)
    assert type_password(Client(REMOTE_ADDR="192.0.2.7"), "dana").url == "/admin/"
    assert type_password(Client(), "omer").url == "/admin/"


@pytest.mark.parametrize("header", ["user-agent", "x-forwarded-for"])
def test_made_up_headers_do_not_escape_it(dana: User, header: str) -> None:
    for number in range(4):
        fail(Client(headers={header: f"203.0.113.{number}"}), 1)
    assert fail(Client(headers={header: "203.0.113.99"}), 1).status_code == 429


def test_it_ends_by_itself_and_trying_on_does_not_lengthen_it(client: Client, dana: User) -> None:
    fail(client, 5)
    let_pass(14)
    assert "1 minute." in fail(client, 3).content.decode()
    let_pass(16)
    # A login that succeeds begins the count anew.
    for _ in range(2):
        assert type_password(client, "dana").url == "/admin/"
        client.logout()
        assert fail(client, 4).status_code == 200


def test_the_settings_say_how_many_and_how_long(client: Client, dana: User, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = settings.LOGIN_FAILURES = 2
    settings.LOGIN_LOCK_MINUTES = 60
    settings.AXES_COOLOFF_TIME = timedelta(minutes=60)
    fail(client, 1)
    assert "60 minutes" in fail(client, 1).content.decode()


def test_what_is_wrong_with_a_new_password_counts_for_nothing(client: Client, dana: User) -> None:
    type_password(client, "dana")
    for new, status in (*[("short", 200)] * 6, ("another-passw0rd-9", 302)):
        typed = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
        assert client.post(OWN_PASSWORD, typed).status_code == status
    assert not told("login.failed")
    dana.refresh_from_db()
    assert dana.check_password("another-passw0rd-9")


def test_what_was_typed_is_nowhere(client: Client, dana: User) -> None:
    type_password(client, "dana")
    # The second failure is written to the row of the first.
    for _ in range(2):
        typed = {
            "old_password": "my-passw0rd",
            "new_password1": "another-passw0rd-9",
            "new_password2": "another-passw0rd-9",
            "a_field_of_another_page": "yet-an0ther",
        }
        client.post(f"{OWN_PASSWORD}?password=in-the-addr3ss", typed)
    assert AccessAttempt.objects.get().failures_since_start == 2
    fail(client, 3, "my-passw0rd")
    fail(client, 2, "dana")
    rows = str([list(model.objects.values()) for model in STORED])
    for secret in ("dana", "my-passw0rd", "another-passw0rd-9", "yet-an0ther", "in-the-addr3ss"):
        assert secret not in rows


def test_the_lock_is_one_event_and_failures_stay_events(client: Client, dana: User) -> None:
    fail(client, 7)
    (event,) = told("login.locked")
    of = (event.actor_kind, event.object_type, event.object_id)
    assert of == ("system", "user", str(dana.pk))
    assert len(told("login.failed")) == 7
    fail(client, 5, "nobody")
    assert told("login.locked")[1].object_type == "typed name"


class TestTheCommand:
    def test_it_sets_one_name_free_everywhere(
        self, client: Client, dana: User, capsys: Any
    ) -> None:
        person("omer")
        elsewhere = Client(REMOTE_ADDR="192.0.2.7")
        # A name in another form is the same one.
        for where, name in ((client, "ｄana"), (elsewhere, "dana"), (client, "omer")):
            assert fail(where, 5, name).status_code == 429
        assert type_password(client, "dana").status_code == 429
        call_command("unlock_login", "ｄana")
        assert "free again" in capsys.readouterr().out
        assert type_password(client, "omer").status_code == 429
        for where in (client, elsewhere):
            assert type_password(where, "dana").url == "/admin/"
        done = {(event.actor_kind, event.object_id) for event in told("login.unlock")}
        assert done == {("command", str(dana.pk))}
        with pytest.raises(CommandError, match="There are no failed logins"):
            call_command("unlock_login", "dana")
        with pytest.raises(CommandError, match="name"):
            call_command("unlock_login")

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
    settings: Any, proxies: int, forwarded: str, found: str | None
) -> None:
    settings.TRUSTED_PROXIES = proxies
    request = RequestFactory(REMOTE_ADDR="192.0.2.1").get("/", HTTP_X_FORWARDED_FOR=forwarded)
    assert client_address(request) == found
