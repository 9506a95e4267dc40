"""Accounts and groups in the admin: nobody gives what he lacks, or takes over who has more."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.foundation.audit.models import AuditEvent
from tests.forms import save
from tests.staff.people import (
    CODE,
    LOGIN,
    PASSWORD,
    TWO_FACTOR,
    code_now,
    half_way,
    is_in,
    person,
    set_up_two_factor,
    told,
    type_password,
)

pytestmark = pytest.mark.django_db

USERS = "/admin/auth/user/"
GROUPS = "/admin/auth/group/"
FAILED = "/admin/dashboard/failedlogin/"
INBOX = "/admin/sessions_app/chat/"
NEW = "a-quite-new-password"


@pytest.fixture
def administrator(client: Client) -> Client:
    person("ada", "Administrator")
    type_password(client, "ada")
    return client


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss", password=PASSWORD)


def page_of(user: User) -> str:
    return f"{USERS}{user.pk}/change/"


def values_of(user: User, **changes: Any) -> dict[str, Any]:
    """What the form of an account posts, unchanged but for ``changes``."""
    values: dict[str, Any] = {
        "username": user.username,
        "first_name": user.first_name,
        "last_name": user.last_name,
        "email": user.email,
        "groups": list(user.groups.values_list("pk", flat=True)),
        "user_permissions": list(user.user_permissions.values_list("pk", flat=True)),
    }
    values |= {name: "on" for name in ("is_active", "is_staff") if getattr(user, name)}
    return {name: value for name, value in {**values, **changes}.items() if value is not None}


def group(name: str) -> Group:
    return Group.objects.get(name=name)


def removed(client: Client, address: str, *rows: Any) -> Any:
    """By the list's action."""
    chosen = [row.pk for row in rows]
    return client.post(
        address, {"action": "delete_selected", "_selected_action": chosen, "post": "yes"}
    )


def set_password(client: Client, user: User, written: str = "{}") -> Any:
    address = f"{USERS}{written.format(user.pk)}/password/"
    return client.post(address, {"password1": NEW, "password2": NEW})


def right_to(*codenames: str) -> Any:
    return Permission.objects.filter(content_type__app_label="auth", codename__in=codenames)


class TestAccounts:
    def test_administrators_make_change_and_remove_somebody(self, administrator: Client) -> None:
        new = {"username": "vera", "password1": NEW, "password2": NEW, "is_staff": "on"}
        answer = administrator.post(f"{USERS}add/", {**new, "groups": [group("Viewer").pk]})
        assert answer.status_code == 302
        vera = User.objects.get(username="vera")
        assert (vera.is_staff, vera.is_superuser) == (True, False)
        assert list(vera.groups.all()) == [group("Viewer")]
        assert type_password(Client(), "vera", NEW).url == "/admin/"
        save(administrator, page_of(vera), values_of(vera, groups=[group("Reviewer").pk]))
        assert list(vera.groups.all()) == [group("Reviewer")]
        two, key = person("two"), str(vera.pk)
        administrator.post(f"{USERS}{vera.pk}/delete/", {"post": "yes"})
        removed(administrator, USERS, two)
        assert not User.objects.filter(username__in=["vera", "two"]).exists()
        # It is told by names of fields.
        for action, fields in (
            ("user.create", ["groups", "is_staff", "password", "username"]),
            ("user.change", ["groups"]),
        ):
            (event,) = told(action)
            assert (event.actor, event.object_id) == ("ada", key)
            assert event.details == {"fields": fields}
        assert [event.object_id for event in told("user.remove")] == [key, str(two.pk)]

    def test_only_superusers_change_superusers(self, administrator: Client, boss: User) -> None:
        vera = person("vera")
        save(administrator, page_of(vera), values_of(vera, is_superuser="on"))
        assert not User.objects.get(pk=vera.pk).is_superuser
        posted = {"password1": NEW, "password2": NEW, "post": "yes", "username": "x"}
        for page in ("change", "password", "delete", "second-factor"):
            answer = administrator.post(f"{USERS}{boss.pk}/{page}/", posted)
            assert answer.status_code == 403, page
        removed(administrator, USERS, boss)
        assert User.objects.get(pk=boss.pk).check_password(PASSWORD)
        client = half_way("boss")
        save(client, page_of(vera), values_of(vera, is_superuser="on"))
        assert User.objects.get(pk=vera.pk).is_superuser
        # Nor does one lock oneself out.
        values = values_of(boss, is_active=None, is_staff=None, first_name="Bo")
        assert save(client, page_of(boss), values).status_code == 302
        boss.refresh_from_db()
        assert (boss.first_name, boss.is_active, boss.is_staff) == ("Bo", True, True)
        assert boss.is_superuser

    def test_nobody_lifts_himself(self, administrator: Client) -> None:
        ada = User.objects.get(username="ada")
        every = list(Permission.objects.values_list("pk", flat=True))
        lifted = {"is_superuser": "on", "user_permissions": every, "groups": []}
        save(administrator, page_of(ada), values_of(ada, **lifted, first_name="Ada"))
        ada = User.objects.get(username="ada")
        assert (ada.first_name, ada.is_superuser) == ("Ada", False)
        assert ada.user_permissions.count() == 0
        assert list(ada.groups.all()) == [group("Administrator")]
        assert administrator.post(f"{USERS}{ada.pk}/delete/", {"post": "yes"}).status_code == 403

    def test_nobody_gives_what_he_lacks(self, client: Client) -> None:
        lead, vera = person("lead", "Viewer"), person("vera")
        lead.user_permissions.set(right_to("view_user", "change_user"))
        type_password(client, "lead")
        forget = Permission.objects.get(codename="forget")
        for change in ({"groups": [group("Reviewer").pk]}, {"user_permissions": [forget.pk]}):
            assert save(client, page_of(vera), values_of(vera, **change)).status_code == 200
        assert not User.objects.get(pk=vera.pk).get_all_permissions()
        own = lead.user_permissions.get(codename="view_user")
        given = {"groups": [group("Viewer").pk], "user_permissions": [own.pk]}
        save(client, page_of(vera), values_of(vera, **given))
        assert list(vera.groups.all()) == [group("Viewer")]
        assert list(vera.user_permissions.all()) == [own]

    @pytest.mark.parametrize("is_active", [True, False])
    def test_nobody_takes_over_who_may_more(self, client: Client, is_active: bool) -> None:
        lead = person("lead", "Viewer")
        lead.user_permissions.set(
            right_to(*(f"{each}_user" for each in ("add", "change", "delete", "view")))
        )
        type_password(client, "lead")
        manager = person("manager", "Memory manager", is_active=is_active)
        assert set_password(client, manager).status_code == 403
        assert save(client, page_of(manager), values_of(manager)).status_code == 403
        assert User.objects.get(pk=manager.pk).check_password(PASSWORD)

    @pytest.mark.parametrize(
        "written", ["{}", "+{}", "%20{}", "{:012d}", "%0A{}", "{}_0A", "_2B{}", "{}%C2%A0"]
    )
    def test_a_new_password_logs_out_and_is_told(self, administrator: Client, written: str) -> None:
        """However the address writes the account."""
        vera = person("vera", "Viewer")
        client = half_way("vera")
        assert set_password(administrator, vera, written).status_code == 302
        assert not is_in(client)
        assert User.objects.get(pk=vera.pk).check_password(NEW)
        (event,) = told("user.password")
        assert (event.actor, event.object_id) == ("ada", str(vera.pk))
        assert NEW not in str(AuditEvent.objects.values_list())

    @pytest.mark.parametrize("written", ["{}", "+{}", "{:012d}"])
    @pytest.mark.parametrize("name", ["ada", "boss"])
    def test_ones_own_is_changed_by_its_own_page(self, boss: User, name: str, written: str) -> None:
        person("ada", "Administrator")
        client = half_way(name)
        user = User.objects.get(username=name)
        opened = client.get(f"{USERS}{written.format(user.pk)}/password/")
        for answer in (opened, set_password(client, user, written)):
            assert answer["Location"] == "/admin/password_change/"
        assert User.objects.get(pk=user.pk).check_password(PASSWORD)
        assert told("user.password") == []

    def test_whether_there_is_a_password_is_told(self, administrator: Client, boss: User) -> None:
        without = person("without", "Viewer")
        without.set_unusable_password()
        without.save()
        # A superuser's page is read-only to others.
        for user, said in (
            (person("vera", "Viewer"), "A password is set."),
            (boss, "A password is set."),
            (without, "No password is set."),
        ):
            page = administrator.get(page_of(user)).content.decode()
            assert said in page
            assert not any(part[:6] in page for part in user.password.split("$")[-2:])

    def test_administrators_reset_second_factors_of_others(self, administrator: Client) -> None:
        vera = person("vera", "Viewer")
        client = half_way("vera")
        set_up_two_factor(client)
        assert "Reset it" in administrator.get(page_of(vera)).content.decode()
        address = f"{USERS}{vera.pk}/second-factor/"
        assert "vera" in administrator.get(address).content.decode()
        assert administrator.post(address).status_code == 302
        assert not TOTPDevice.objects.exists()
        assert not StaticDevice.objects.exists()
        assert type_password(Client(), "vera").url == "/admin/"
        (event,) = told("second_factor.reset")
        assert (event.actor, event.object_id) == ("ada", str(vera.pk))
        # The own one goes by the own page alone.
        set_up_two_factor(administrator)
        ada = User.objects.get(username="ada")
        assert administrator.post(f"{USERS}{ada.pk}/second-factor/")["Location"] == TWO_FACTOR
        assert TOTPDevice.objects.exists()


class TestGroups:
    def test_the_groups_of_every_installation_keep_their_names(self, administrator: Client) -> None:
        viewer = group("Viewer")
        address = f"{GROUPS}{viewer.pk}/"
        kept = list(viewer.permissions.values_list("pk", flat=True))[:3]
        save(administrator, f"{address}change/", {"name": "Guests", "permissions": kept})
        viewer.refresh_from_db()
        assert viewer.name == "Viewer"
        assert set(viewer.permissions.values_list("pk", flat=True)) == set(kept)
        assert administrator.post(f"{address}delete/", {"post": "yes"}).status_code == 403
        (event,) = told("group.change")
        assert event.details == {"fields": ["permissions"]}

    def test_a_group_of_ones_own(self, administrator: Client) -> None:
        some = Permission.objects.get(codename="view_chat")
        for name in ("Night shift", "Day shift"):
            administrator.post(f"{GROUPS}add/", {"name": name, "permissions": [some.pk]})
            assert list(group(name).permissions.all()) == [some]
        administrator.post(f"{GROUPS}{group('Night shift').pk}/delete/", {"post": "yes"})
        removed(administrator, GROUPS, group("Day shift"))
        assert not Group.objects.filter(name__endswith="shift").exists()
        assert (len(told("group.create")), len(told("group.remove"))) == (2, 2)

    def test_nobody_puts_into_a_group_what_he_lacks(self, administrator: Client) -> None:
        beyond = Permission.objects.get(codename="change_permission")
        answer = administrator.post(f"{GROUPS}add/", {"name": "Lifted", "permissions": [beyond.pk]})
        assert answer.status_code == 200
        assert not Group.objects.filter(name="Lifted").exists()
        group("Viewer").permissions.add(beyond)
        lifted = Group.objects.create(name="Lifted")
        lifted.permissions.add(beyond)
        for address, posted in (
            (f"{GROUPS}{group('Viewer').pk}/change/", {"permissions": []}),
            (f"{GROUPS}{lifted.pk}/delete/", {"post": "yes"}),
        ):
            assert administrator.post(address, posted).status_code == 403


def test_administrators_see_whose_failed_logins_are_and_lift_locks(administrator: Client) -> None:
    person("vera")
    other = Client(REMOTE_ADDR="192.0.2.7")
    for name in (*["vera"] * 5, "my-passw0rd"):
        type_password(other, name, "wrong")

    def locks() -> list[str]:
        page = administrator.get(FAILED).content.decode()
        return re.findall(r"field-shown_lock.*?>\s*((?:not )?locked)\s*<", page, re.DOTALL)

    page = administrator.get(FAILED).content.decode()
    for text in ("vera", "a name that nobody has", "192.0.2.7"):
        assert text in page
    assert "my-passw0rd" not in page
    assert sorted(locks()) == ["locked", "not locked"]
    rows = list(AccessAttempt.objects.values_list("pk", flat=True))
    for row in rows:
        # No mark of who it is, and nothing that was posted.
        shown = administrator.get(f"{FAILED}{row}/change/").content.decode()
        assert AccessAttempt.objects.get(pk=row).username not in shown
        assert "csrfmiddlewaretoken=" not in shown
    administrator.post(FAILED, {"action": "unlock", "_selected_action": rows})
    assert type_password(other, "vera").url == "/admin/"
    type_password(other, "vera", "wrong")
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))
    assert locks() == [], "it is over"
    assert {event.actor for event in told("login.unlock")} == {"ada"}


@pytest.mark.parametrize(
    ("groups", "asked", "first"),
    [
        (["Reviewer"], "", INBOX),
        (["Memory manager"], "/admin/", INBOX),
        (["Reviewer"], "/admin/memories_app/memory/", "/admin/memories_app/memory/"),
        (["Viewer"], "", "/admin/"),
        (["Auditor"], "", "/admin/"),
        (["Administrator", "Reviewer"], "", "/admin/"),
    ],
)
def test_who_replies_begins_with_the_inbox(groups: list[str], asked: str, first: str) -> None:
    someone = person("noa", *groups)
    client = Client()
    typed = {"username": "noa", "password": PASSWORD, "next": asked}
    assert client.post(LOGIN, typed)["Location"] == first
    assert client.get(first).status_code == 200
    device = TOTPDevice.objects.create(user=someone, name="phone", confirmed=True)
    client = Client()
    client.post(LOGIN, typed)
    assert client.post(CODE, {"code": code_now(device)})["Location"] == first
