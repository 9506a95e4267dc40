"""The second factor: set up, asked for, used once, removed and reset."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.staff_site.accounts.second_factor import (
    second_factor_begin,
    second_factor_remove,
)
from tests.staff.people import (
    CODE,
    PASSWORD,
    TWO_FACTOR,
    begin_two_factor,
    code_now,
    forget_last_code,
    half_way,
    is_in,
    person,
    set_up_two_factor,
    told,
    type_password,
    wrong_code,
)

pytestmark = pytest.mark.django_db

OWN_PASSWORD = "/admin/password_change/"
WRONG = "my-passw0rd"


@pytest.fixture
def dana() -> User:
    return person("dana", "Viewer")


@pytest.fixture
def logged_in(client: Client, dana: User) -> Client:
    type_password(client, "dana")
    return client


@pytest.fixture
def device(logged_in: Client) -> TOTPDevice:
    return set_up_two_factor(logged_in)[0]


def proofs(device: TOTPDevice, do: str) -> dict[str, str]:
    return {"do": do, "password": PASSWORD, "code": code_now(device)}


def backup_codes() -> set[str]:
    return set(StaticToken.objects.values_list("token", flat=True))


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        (OWN_PASSWORD, "old_password"),
        (TWO_FACTOR, "password"),
        (TWO_FACTOR, "code"),
        (CODE, "code"),
    ],
)
def test_wrong_proofs_lock(logged_in: Client, device: TOTPDevice, address: str, wrong: str) -> None:
    """Who finds a session open could guess them there."""
    client = half_way() if address == CODE else logged_in
    changed = {"new_password1": "another-passw0rd-9", "new_password2": "another-passw0rd-9"}
    right = {**proofs(device, "remove"), "old_password": PASSWORD, **changed}
    for status in (200, 200, 200, 200, 429):
        typed = {**right, wrong: wrong_code(device) if wrong == "code" else WRONG}
        assert client.post(address, typed).status_code == status
        forget_last_code(device.user)
    assert client.post(address, right).status_code == 429
    assert type_password(Client(), "dana").status_code == 429
    assert TOTPDevice.objects.filter(confirmed=True).exists()
    assert User.objects.get().check_password(PASSWORD)
    step = {"step": "code" if wrong == "code" else "password"}
    assert [event.details for event in told("login.failed")[:5]] == [step] * 5
    # Who is logged in elsewhere, reads on.
    assert is_in(logged_in)
    assert not (address == CODE and is_in(client))


class TestSettingItUp:
    def test_a_secret_is_drawn_and_a_code_turns_it_on(self, logged_in: Client, dana: User) -> None:
        assert is_in(logged_in), "without one the password alone lets in"
        begin_two_factor(logged_in)
        page = logged_in.get(TWO_FACTOR)
        assert "<svg" in page.content.decode()
        assert page.context["secret"] in page.content.decode()
        TOTPDevice.objects.all().delete()
        device, codes = set_up_two_factor(logged_in)
        assert (device.user, device.confirmed) == (dana, True)
        assert is_in(logged_in)
        (event,) = told("second_factor.set_up")
        assert (event.actor, event.object_type, event.object_id) == ("dana", "user", str(dana.pk))
        # Backup codes are shown once, and secrets are nowhere else.
        assert len(set(codes)) == 10
        assert codes[0] not in logged_in.get(TWO_FACTOR).content.decode()
        assert backup_codes().isdisjoint(code.replace("-", "") for code in codes)
        rows = str(AuditEvent.objects.values_list())
        for secret in (device.key, *codes):
            assert secret not in rows

    def test_it_takes_the_password_and_wrong_ones_lock(self, logged_in: Client) -> None:
        for typed in ({}, {"password": ""}, *[{"password": WRONG}] * 4):
            page = logged_in.post(TWO_FACTOR, {"do": "begin", **typed})
            assert page.context["begin_form"].errors["password"]
        assert len(told("login.failed")) == 4
        for password in (WRONG, PASSWORD):
            assert begin_two_factor(logged_in, password).status_code == 429
        assert not TOTPDevice.objects.exists()

    def test_what_began_elsewhere_is_neither_shown_nor_turned_on(self, logged_in: Client) -> None:
        """Who finds another session of hers open has given no password there."""
        elsewhere = half_way()
        begin_two_factor(logged_in)
        page = elsewhere.get(TWO_FACTOR)
        assert (page.context["secret"], page.context["qr_code"]) == ("", None)
        device = TOTPDevice.objects.get()
        confirmed = {"do": "confirm", "code": code_now(device)}
        answer = elsewhere.post(TWO_FACTOR, confirmed, follow=True)
        assert "Start over" in answer.content.decode()
        assert not TOTPDevice.objects.get().confirmed
        # A wrong code does not turn it on, either, and the next one is looked at at once.
        page = logged_in.post(TWO_FACTOR, {"do": "confirm", "code": wrong_code(device)})
        assert "This code is wrong" in page.content.decode()
        assert not TOTPDevice.objects.get().confirmed
        logged_in.post(TWO_FACTOR, confirmed)
        assert TOTPDevice.objects.get().confirmed

    def test_what_was_begun_long_ago_counts_no_more(self, logged_in: Client) -> None:
        begin_two_factor(logged_in)
        session = logged_in.session
        begun = session["second_factor_begun"]
        session["second_factor_begun"] = {**begun, "at": begun["at"] - 901}
        session.save()
        assert logged_in.get(TWO_FACTOR).context["secret"] == ""
        code = code_now(TOTPDevice.objects.get())
        logged_in.post(TWO_FACTOR, {"do": "confirm", "code": code})
        assert not TOTPDevice.objects.get().confirmed

    def test_sessions_that_it_did_not_prove_end(self, logged_in: Client, dana: User) -> None:
        """Those that were begun without one, and with one before."""
        without = half_way()
        first, _ = set_up_two_factor(logged_in)
        answer = without.get("/admin/sessions_app/chat/")
        assert answer["Location"] == "/admin/login/?next=%2Fadmin%2Fsessions_app%2Fchat%2F"
        assert not is_in(without)
        before = half_way()
        before.post(CODE, {"code": code_now(first)})
        assert is_in(before)
        forget_last_code(dana)
        logged_in.post(TWO_FACTOR, proofs(first, "remove"))
        set_up_two_factor(logged_in)
        assert is_in(logged_in)
        assert not is_in(before)


class TestLoggingIn:
    @pytest.mark.parametrize(
        ("asked_for", "led_to"),
        [
            ("/admin/sessions_app/chat/", "/admin/sessions_app/chat/"),
            ("https://evil.example/", "/admin/"),
        ],
    )
    def test_password_then_code_lead_in(
        self, device: TOTPDevice, asked_for: str, led_to: str
    ) -> None:
        client = Client()
        typed = {"username": "dana", "password": PASSWORD}
        assert client.post(f"/admin/login/?next={asked_for}", typed)["Location"] == CODE
        assert not is_in(client)
        assert "code that your app shows" in client.get(CODE).content.decode()
        assert client.post(CODE, {"code": code_now(device)})["Location"] == led_to
        assert is_in(client)
        assert len(told("login.success")) == 2

    def test_each_code_counts_once(self, logged_in: Client, dana: User) -> None:
        device, codes = set_up_two_factor(logged_in)
        code = code_now(device)
        typed = f" {code[:3]} {code[3:]} "
        for written, comes_in in (
            *((typed, True), (typed, False)),
            *((codes[0].upper(), True), (codes[0], False)),
        ):
            client = half_way()
            client.post(CODE, {"code": written})
            assert is_in(client) is comes_in
            TOTPDevice.objects.update(throttling_failure_count=0)
        assert StaticToken.objects.count() == 9
        assert len(told("second_factor.backup_code")) == 1

    def test_everybody_comes_in_by_the_own_codes_alone(self, logged_in: Client, dana: User) -> None:
        person("omer", "Viewer")
        codes = {"dana": set_up_two_factor(logged_in), "omer": set_up_two_factor(half_way("omer"))}
        for name, owner in (("dana", "omer"), ("omer", "dana"), ("dana", "dana"), ("omer", "omer")):
            device, papers = codes[owner]
            for typed in (code_now(device), papers[0]):
                TOTPDevice.objects.update(throttling_failure_count=0, last_t=-1)
                StaticDevice.objects.update(throttling_failure_count=0)
                client = half_way(name)
                client.post(CODE, {"code": typed})
                assert is_in(client) is (name == owner), f"{name} by {owner}'s {typed}"

    def test_a_secret_only_begun_lets_nobody_in(self, device: TOTPDevice, dana: User) -> None:
        client = half_way()
        second_factor_remove(user=dana, actor=Actor("staff", "ada"))
        begun = second_factor_begin(user=dana)
        client.post(CODE, {"code": code_now(begun)})
        assert not is_in(client)

    def test_who_was_logged_in_before_is_out_and_the_session_new(self, device: TOTPDevice) -> None:
        person("omer", "Viewer")
        client = half_way("omer")
        before = client.session.session_key
        type_password(client, "dana")
        assert not is_in(client)
        assert not Session.objects.filter(session_key=before).exists()
        between = client.session.session_key
        client.post(CODE, {"code": code_now(device)})
        assert client.session.session_key not in (before, between)
        # The second step is over.
        assert client.get(CODE)["Location"] == "/admin/login/"

    def test_a_wrong_code_makes_the_next_one_wait(self, device: TOTPDevice) -> None:
        client = half_way()
        page = client.post(CODE, {"code": wrong_code(device)})
        assert "This code is wrong" in page.content.decode()
        page = client.post(CODE, {"code": code_now(device)})
        assert "Too many wrong codes" in page.content.decode()
        forget_last_code(device.user)
        client.post(CODE, {"code": code_now(device)})
        assert is_in(client)

    @pytest.mark.parametrize("change", ["password", "inactive", "no staff", "late", "nobody"])
    def test_the_second_step_counts_right_after_it(self, device: TOTPDevice, change: str) -> None:
        client = Client() if change == "nobody" else half_way()
        user = device.user
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
        client = half_way()
        assert client.post(CODE, {"code": code}).status_code == 200
        assert not is_in(client)


class TestLoweringTheGuard:
    @pytest.mark.parametrize("do", ["codes", "remove"])
    def test_it_takes_both_proofs(self, logged_in: Client, device: TOTPDevice, do: str) -> None:
        before = backup_codes()
        for wrong in ("password", "code"):
            typed = {**proofs(device, do), wrong: wrong_code(device)}
            assert "wrong" in logged_in.post(TWO_FACTOR, typed).content.decode()
            forget_last_code(device.user)
            assert backup_codes() == before
            assert TOTPDevice.objects.filter(confirmed=True).exists()
        page = logged_in.post(TWO_FACTOR, proofs(device, do))
        assert is_in(logged_in)
        if do == "codes":
            assert len(page.context["codes"]) == len(backup_codes()) == 10
            assert before.isdisjoint(backup_codes())
        else:
            assert page["Location"] == TWO_FACTOR
            assert TOTPDevice.objects.count() == StaticToken.objects.count() == 0
            assert type_password(Client(), "dana").url == "/admin/"
        (event,) = told("second_factor.backup_codes" if do == "codes" else "second_factor.remove")
        assert event.actor == "dana"


@pytest.fixture
def required(settings: Any) -> None:
    settings.STAFF_TWO_FACTOR = "required"


def test_where_required_nothing_else_is_there_until_then(required: None, logged_in: Client) -> None:
    for address in ("/admin/", "/admin/sessions_app/chat/", OWN_PASSWORD):
        assert logged_in.get(address)["Location"] == TWO_FACTOR
    assert logged_in.post(OWN_PASSWORD, {}).status_code == 403
    assert logged_in.get("/admin/", headers={"X-Requested-With": "live"}).status_code == 403
    assert logged_in.get("/api/v1/sessions/").status_code == 401
    # Who sets it up is not idle.
    for _ in range(2):
        session = logged_in.session
        session["seen"] -= 479 * 60
        session.save()
        assert logged_in.get(TWO_FACTOR).status_code == 200
