"""The second factor: set up, asked for, used once, removed and reset."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.staff_site.accounts.second_factor import (
    second_factor_begin,
    second_factor_confirm,
    second_factor_remove,
)
from tests.staff.people import (
    CODE,
    PASSWORD,
    TWO_FACTOR,
    begin_two_factor,
    code_now,
    forget_last_code,
    is_in,
    person,
    set_up_two_factor,
    told,
    type_password,
    wrong_code,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def dana() -> User:
    return person("dana", "Viewer")


@pytest.fixture
def logged_in(client: Client, dana: User) -> Client:
    type_password(client, "dana")
    return client


def test_without_one_the_password_alone_lets_in(client: Client, dana: User) -> None:
    assert type_password(client, "dana").url == "/admin/"
    assert is_in(client)


class TestSettingItUp:
    def test_the_page_draws_the_secret_and_writes_it(self, logged_in: Client, dana: User) -> None:
        assert "Set up</button>" in logged_in.get(TWO_FACTOR).content.decode()
        begin_two_factor(logged_in)
        page = logged_in.get(TWO_FACTOR)
        text = page.content.decode()
        assert "<svg" in text
        assert page.context["secret"] in text
        assert not re.search(r"<script(?![^>]*src=)[^>]*>|\son\w+=", _of_ours(text))
        assert "no-store" in page["Cache-Control"]

    def test_a_code_turns_it_on_and_shows_backup_codes_once(
        self, logged_in: Client, dana: User
    ) -> None:
        device, codes = set_up_two_factor(logged_in)
        assert device.user == dana
        assert device.confirmed
        assert len(set(codes)) == 10
        assert codes[0] not in logged_in.get(TWO_FACTOR).content.decode()
        assert is_in(logged_in)
        (event,) = told("second_factor.set_up")
        assert (event.actor, event.object_type, event.object_id) == ("dana", "user", str(dana.pk))

    @pytest.mark.parametrize("typed", [{}, {"password": ""}, {"password": "my-passw0rd"}])
    def test_it_takes_the_password(
        self, logged_in: Client, dana: User, typed: dict[str, str]
    ) -> None:
        page = logged_in.post(TWO_FACTOR, {"do": "begin", **typed})
        assert page.context["begin_form"].errors["password"]
        assert not TOTPDevice.objects.exists()
        assert len(told("login.failed")) == (1 if typed.get("password") else 0)

    def test_wrong_passwords_lock_as_failed_logins_do(self, logged_in: Client, dana: User) -> None:
        for _ in range(4):
            assert begin_two_factor(logged_in, "my-passw0rd").status_code == 200
        assert begin_two_factor(logged_in, "my-passw0rd").status_code == 429
        assert begin_two_factor(logged_in).status_code == 429
        assert not TOTPDevice.objects.exists()
        assert type_password(Client(), "dana").status_code == 429

    def test_another_secret_takes_it_again(self, logged_in: Client, dana: User) -> None:
        begin_two_factor(logged_in)
        before = TOTPDevice.objects.get()
        page = begin_two_factor(logged_in, "my-passw0rd")
        assert "The password is wrong." in page.content.decode()
        assert TOTPDevice.objects.get() == before

    def test_what_was_begun_elsewhere_is_neither_shown_nor_turned_on(
        self, logged_in: Client, dana: User
    ) -> None:
        """Who finds another session of hers open has given no password there."""
        elsewhere = Client()
        type_password(elsewhere, "dana")
        begin_two_factor(logged_in)
        page = elsewhere.get(TWO_FACTOR)
        assert page.context["secret"] == ""
        assert page.context["qr_code"] is None
        code = code_now(TOTPDevice.objects.get())
        answer = elsewhere.post(TWO_FACTOR, {"do": "confirm", "code": code}, follow=True)
        assert "Start over" in answer.content.decode()
        assert not TOTPDevice.objects.get().confirmed
        logged_in.post(TWO_FACTOR, {"do": "confirm", "code": code})
        assert TOTPDevice.objects.get().confirmed

    def test_what_was_begun_long_ago_counts_no_more(self, logged_in: Client, dana: User) -> None:
        begin_two_factor(logged_in)
        session = logged_in.session
        begun = session["second_factor_begun"]
        session["second_factor_begun"] = {**begun, "at": begun["at"] - 901}
        session.save()
        device = TOTPDevice.objects.get()
        assert logged_in.get(TWO_FACTOR).context["secret"] == ""
        logged_in.post(TWO_FACTOR, {"do": "confirm", "code": code_now(device)})
        assert not TOTPDevice.objects.get().confirmed

    def test_a_wrong_code_does_not(self, logged_in: Client, dana: User) -> None:
        begin_two_factor(logged_in)
        device = TOTPDevice.objects.get()
        page = logged_in.post(TWO_FACTOR, {"do": "confirm", "code": wrong_code(device)})
        assert "This code is wrong" in page.content.decode()
        assert not TOTPDevice.objects.get().confirmed
        # The next one is looked at at once.
        logged_in.post(TWO_FACTOR, {"do": "confirm", "code": code_now(device)})
        assert TOTPDevice.objects.get().confirmed

    def test_begun_and_not_confirmed_it_is_not_asked_for(
        self, logged_in: Client, dana: User, client: Client
    ) -> None:
        begin_two_factor(logged_in)
        assert type_password(Client(), "dana").url == "/admin/"

    def test_sessions_that_were_begun_without_it_end(self, logged_in: Client, dana: User) -> None:
        elsewhere = Client()
        type_password(elsewhere, "dana")
        set_up_two_factor(logged_in)
        answer = elsewhere.get("/admin/sessions_app/chat/")
        assert answer["Location"] == "/admin/login/?next=%2Fadmin%2Fsessions_app%2Fchat%2F"
        assert not is_in(elsewhere)

    def test_sessions_that_one_before_proved_end(self, logged_in: Client, dana: User) -> None:
        first, _ = set_up_two_factor(logged_in)
        elsewhere = Client()
        type_password(elsewhere, "dana")
        elsewhere.post(CODE, {"code": code_now(first)})
        assert is_in(elsewhere)
        forget_last_code(dana)
        proof = {"do": "remove", "password": PASSWORD, "code": code_now(first)}
        logged_in.post(TWO_FACTOR, proof)
        set_up_two_factor(logged_in)
        assert is_in(logged_in)
        assert not is_in(elsewhere)

    def test_the_secret_is_nowhere_else(self, logged_in: Client, dana: User) -> None:
        device, codes = set_up_two_factor(logged_in)
        assert not StaticToken.objects.filter(token__in=[code.replace("-", "") for code in codes])
        rows = str(AuditEvent.objects.values_list())
        for secret in (device.key, *codes):
            assert secret not in rows

    def test_nothing_is_done_where_there_is_one(self, logged_in: Client, dana: User) -> None:
        device, _ = set_up_two_factor(logged_in)
        begin_two_factor(logged_in)
        logged_in.post(TWO_FACTOR, {"do": "confirm", "code": code_now(device)})
        assert list(TOTPDevice.objects.values_list("pk", "key")) == [(device.pk, device.key)]

    def test_begun_anew_the_secret_before_counts_no_more(
        self, logged_in: Client, dana: User
    ) -> None:
        begin_two_factor(logged_in)
        before = TOTPDevice.objects.get()
        begin_two_factor(logged_in)
        after = TOTPDevice.objects.get()
        assert after.key != before.key
        logged_in.post(TWO_FACTOR, {"do": "confirm", "code": code_now(before)})
        assert not TOTPDevice.objects.get().confirmed

    def test_one_that_was_begun_while_another_was_confirmed_stays_begun(
        self, logged_in: Client, dana: User
    ) -> None:
        device, _ = set_up_two_factor(logged_in)
        begun = second_factor_begin(user=dana)
        assert second_factor_confirm(user=dana, code=code_now(begun)) is None
        logged_in.post(TWO_FACTOR, {"do": "confirm", "code": code_now(begun)})
        assert TOTPDevice.objects.get(confirmed=True) == device


@pytest.fixture
def device(logged_in: Client, dana: User) -> TOTPDevice:
    return set_up_two_factor(logged_in)[0]


class TestLoggingIn:
    def test_the_password_leads_to_the_code_and_the_code_in(self, device: TOTPDevice) -> None:
        client = Client()
        address = "/admin/login/?next=/admin/sessions_app/chat/"
        step = client.post(address, {"username": "dana", "password": PASSWORD})
        assert step["Location"] == CODE
        assert not is_in(client)
        assert "code that your app shows" in client.get(CODE).content.decode()
        answer = client.post(CODE, {"code": code_now(device)})
        assert answer["Location"] == "/admin/sessions_app/chat/"
        assert is_in(client)
        assert len(told("login.success")) == 2

    def test_an_address_of_another_site_is_not_gone_to(self, device: TOTPDevice) -> None:
        client = Client()
        client.post(
            "/admin/login/?next=https://evil.example/", {"username": "dana", "password": PASSWORD}
        )
        assert client.post(CODE, {"code": code_now(device)})["Location"] == "/admin/"

    def test_a_code_counts_once(self, device: TOTPDevice) -> None:
        code = code_now(device)
        for client, comes_in in ((Client(), True), (Client(), False)):
            type_password(client, "dana")
            client.post(CODE, {"code": f" {code[:3]} {code[3:]} "})
            assert is_in(client) is comes_in

    def test_a_backup_code_counts_once(self, logged_in: Client, dana: User) -> None:
        _, codes = set_up_two_factor(logged_in)
        for client, typed, comes_in in (
            (Client(), codes[0].upper(), True),
            (Client(), codes[0], False),
        ):
            type_password(client, "dana")
            client.post(CODE, {"code": typed})
            assert is_in(client) is comes_in
        assert StaticToken.objects.count() == 9
        assert len(told("second_factor.backup_code")) == 1

    def test_where_no_backup_codes_are_left_none_counts(
        self, device: TOTPDevice, dana: User
    ) -> None:
        StaticDevice.objects.all().delete()
        client = Client()
        type_password(client, "dana")
        client.post(CODE, {"code": "abcde-fghij"})
        assert not is_in(client)

    def test_everybody_comes_in_by_the_own_codes_alone(self, logged_in: Client, dana: User) -> None:
        person("omer", "Viewer")
        other = Client()
        type_password(other, "omer")
        codes = {"dana": set_up_two_factor(logged_in), "omer": set_up_two_factor(other)}
        for name, owner in (("dana", "omer"), ("omer", "dana"), ("dana", "dana"), ("omer", "omer")):
            device, papers = codes[owner]
            for typed in (code_now(device), papers[0]):
                TOTPDevice.objects.update(throttling_failure_count=0, last_t=-1)
                StaticDevice.objects.update(throttling_failure_count=0)
                client = Client()
                type_password(client, name)
                client.post(CODE, {"code": typed})
                assert is_in(client) is (name == owner), f"{name} by {owner}'s {typed}"

    def test_a_secret_that_was_only_begun_lets_nobody_in(
        self, device: TOTPDevice, dana: User
    ) -> None:
        client = Client()
        type_password(client, "dana")
        second_factor_remove(user=dana, actor=Actor("staff", "ada"))
        begun = second_factor_begin(user=dana)
        client.post(CODE, {"code": code_now(begun)})
        assert not is_in(client)

    def test_whoever_was_logged_in_here_before_is_out_and_the_session_is_another(
        self, device: TOTPDevice
    ) -> None:
        person("omer", "Viewer")
        client = Client()
        type_password(client, "omer")
        before = client.session.session_key
        type_password(client, "dana")
        assert not is_in(client)
        assert not Session.objects.filter(session_key=before).exists()
        half_way = client.session.session_key
        client.post(CODE, {"code": code_now(device)})
        assert client.session.session_key not in (before, half_way)
        # The second step is over.
        assert client.get(CODE)["Location"] == "/admin/login/"

    def test_codes_that_have_to_wait_count_for_nothing(self, device: TOTPDevice) -> None:
        client = Client()
        type_password(client, "dana")
        for _ in range(7):
            assert client.post(CODE, {"code": wrong_code(device)}).status_code == 200
        assert len(told("login.failed")) == 1
        assert AccessAttempt.objects.get().failures_since_start == 1

    def test_a_wrong_code_is_a_failed_login_and_makes_the_next_one_wait(
        self, device: TOTPDevice
    ) -> None:
        client = Client()
        type_password(client, "dana")
        page = client.post(CODE, {"code": wrong_code(device)})
        assert "This code is wrong" in page.content.decode()
        (event,) = told("login.failed")
        assert event.details == {"step": "code"}
        page = client.post(CODE, {"code": code_now(device)})
        assert "Too many wrong codes" in page.content.decode()
        forget_last_code(device.user)
        client.post(CODE, {"code": code_now(device)})
        assert is_in(client)

    def test_wrong_codes_lock_as_wrong_passwords_do(self, device: TOTPDevice) -> None:
        client = Client()
        type_password(client, "dana")
        for _ in range(4):
            assert client.post(CODE, {"code": wrong_code(device)}).status_code == 200
            forget_last_code(device.user)
        assert client.post(CODE, {"code": wrong_code(device)}).status_code == 429
        forget_last_code(device.user)
        assert client.post(CODE, {"code": code_now(device)}).status_code == 429
        assert type_password(Client(), "dana").status_code == 429
        assert not is_in(client)

    @pytest.mark.parametrize("change", ["password", "inactive", "no staff", "late", "nobody"])
    def test_the_second_step_counts_only_right_after_the_first(
        self, device: TOTPDevice, change: str
    ) -> None:
        client = Client()
        if change != "nobody":
            type_password(client, "dana")
        user = User.objects.get(username="dana")
        if change == "password":
            user.set_password("another")
        user.is_active = change != "inactive"
        user.is_staff = change != "no staff"
        user.save()
        if change == "late":
            session = client.session
            session["half_way"] = {**session["half_way"], "at": session["half_way"]["at"] - 301}
            session.save()
        assert client.post(CODE, {"code": code_now(device)})["Location"] == "/admin/login/"
        assert not is_in(client)

    @pytest.mark.parametrize("code", ["", "0", "a" * 70, "\0", "٣٣٣٣٣٣", "12345678901", "😀"])
    def test_what_is_no_code_is_refused(self, device: TOTPDevice, code: str) -> None:
        client = Client()
        type_password(client, "dana")
        assert client.post(CODE, {"code": code}).status_code == 200
        assert not is_in(client)


class TestLoweringTheGuard:
    def test_new_backup_codes_replace_the_old_ones(
        self, logged_in: Client, device: TOTPDevice
    ) -> None:
        before = set(StaticToken.objects.values_list("token", flat=True))
        proof = {"do": "codes", "password": PASSWORD, "code": code_now(device)}
        page = logged_in.post(TWO_FACTOR, proof)
        assert len(page.context["codes"]) == 10
        assert before.isdisjoint(StaticToken.objects.values_list("token", flat=True))
        assert StaticToken.objects.count() == 10
        (event,) = told("second_factor.backup_codes")
        assert event.actor == "dana"

    @pytest.mark.parametrize("do", ["codes", "remove"])
    @pytest.mark.parametrize("wrong", ["password", "code"])
    def test_it_takes_the_password_and_a_code(
        self, logged_in: Client, device: TOTPDevice, do: str, wrong: str
    ) -> None:
        before = set(StaticToken.objects.values_list("token", flat=True))
        proof = {"do": do, "password": PASSWORD, "code": code_now(device)}
        proof[wrong] = wrong_code(device)
        assert "wrong" in logged_in.post(TWO_FACTOR, proof).content.decode()
        assert set(StaticToken.objects.values_list("token", flat=True)) == before
        assert TOTPDevice.objects.filter(confirmed=True).exists()

    @pytest.mark.parametrize("wrong", ["password", "code"])
    def test_wrong_proofs_lock_as_failed_logins_do(
        self, logged_in: Client, device: TOTPDevice, wrong: str
    ) -> None:
        right = {"do": "remove", "password": PASSWORD, "code": code_now(device)}
        proof = {**right, wrong: wrong_code(device)}
        for _ in range(4):
            assert logged_in.post(TWO_FACTOR, proof).status_code == 200
            forget_last_code(device.user)
        assert logged_in.post(TWO_FACTOR, proof).status_code == 429
        forget_last_code(device.user)
        assert logged_in.post(TWO_FACTOR, right).status_code == 429
        assert TOTPDevice.objects.filter(confirmed=True).exists()
        assert type_password(Client(), "dana").status_code == 429
        assert [event.details for event in told("login.failed")[:5]] == [{"step": wrong}] * 5
        # Who is logged in elsewhere, reads on.
        assert logged_in.get(TWO_FACTOR).status_code == 200

    def test_removed_it_is_not_asked_for(self, logged_in: Client, device: TOTPDevice) -> None:
        proof = {"do": "remove", "password": PASSWORD, "code": code_now(device)}
        assert logged_in.post(TWO_FACTOR, proof)["Location"] == TWO_FACTOR
        assert TOTPDevice.objects.count() == StaticToken.objects.count() == 0
        assert is_in(logged_in)
        assert type_password(Client(), "dana").url == "/admin/"
        (event,) = told("second_factor.remove")
        assert event.actor == "dana"

    def test_what_others_set_up_stays(self, logged_in: Client, device: TOTPDevice) -> None:
        person("omer", "Viewer")
        other = Client()
        type_password(other, "omer")
        theirs, _ = set_up_two_factor(other)
        proof = {"do": "remove", "password": PASSWORD, "code": code_now(device)}
        logged_in.post(TWO_FACTOR, proof)
        assert TOTPDevice.objects.get() == theirs
        assert StaticToken.objects.count() == 10

    def test_while_the_name_is_locked_there_no_code_is_used_up(
        self, logged_in: Client, device: TOTPDevice
    ) -> None:
        for _ in range(5):
            type_password(Client(), "dana", "wrong")
        proof = {"do": "remove", "password": PASSWORD, "code": code_now(device)}
        assert logged_in.post(TWO_FACTOR, proof).status_code == 429
        AccessAttempt.objects.all().delete()
        assert logged_in.post(TWO_FACTOR, proof)["Location"] == TWO_FACTOR
        assert not TOTPDevice.objects.exists()


class TestRequired:
    @pytest.fixture(autouse=True)
    def required(self, settings: Any) -> None:
        settings.STAFF_TWO_FACTOR = "required"

    def test_until_it_is_set_up_there_is_nothing_else(self, logged_in: Client) -> None:
        for address in ("/admin/", "/admin/sessions_app/chat/", "/admin/password_change/"):
            assert logged_in.get(address)["Location"] == TWO_FACTOR
        assert logged_in.post("/admin/password_change/", {}).status_code == 403
        live = {"X-Requested-With": "live"}
        assert logged_in.get("/admin/", headers=live).status_code == 403
        assert logged_in.get("/api/v1/sessions/").status_code == 401
        assert logged_in.get(TWO_FACTOR).status_code == 200

    def test_who_sets_it_up_stays(self, logged_in: Client) -> None:
        for _ in range(2):
            session = logged_in.session
            session["seen"] -= 479 * 60
            session.save()
            assert logged_in.get(TWO_FACTOR).status_code == 200

    def test_then_all_is_open(self, logged_in: Client) -> None:
        set_up_two_factor(logged_in)
        assert logged_in.get("/admin/").status_code == 200
        assert logged_in.get("/api/v1/sessions/").status_code == 200

    def test_logging_out_is_open_before(self, logged_in: Client) -> None:
        assert logged_in.post("/admin/logout/").status_code == 200


def _of_ours(page: str) -> str:
    """The part of the page that isn't every page's."""
    return page.partition('<div class="access">')[2].partition("</ol>")[0]
