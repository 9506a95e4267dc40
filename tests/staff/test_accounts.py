"""Accounts and groups in the admin: nobody gives what he lacks, or takes over who has more."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.foundation.audit.models import AuditEvent
from tests.forms import save
from tests.staff.people import (
    PASSWORD,
    TWO_FACTOR,
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


class TestAccounts:
    def test_an_administrator_makes_somebody_with_a_group(self, administrator: Client) -> None:
        answer = administrator.post(
            f"{USERS}add/",
            {
                "username": "vera",
                "password1": NEW,
                "password2": NEW,
                "is_staff": "on",
                "groups": [group("Viewer").pk],
            },
        )
        assert answer.status_code == 302
        vera = User.objects.get(username="vera")
        assert (vera.is_staff, vera.is_superuser) == (True, False)
        assert list(vera.groups.all()) == [group("Viewer")]
        assert type_password(Client(), "vera", NEW).url == "/admin/"
        (event,) = told("user.create")
        assert (event.actor, event.object_id) == ("ada", str(vera.pk))
        assert event.details == {"fields": ["groups", "is_staff", "password", "username"]}

    def test_and_changes_them_told_by_names_of_fields(self, administrator: Client) -> None:
        vera = person("vera", "Viewer")
        save(administrator, page_of(vera), values_of(vera, groups=[group("Reviewer").pk]))
        assert list(vera.groups.all()) == [group("Reviewer")]
        (event,) = told("user.change")
        assert event.details == {"fields": ["groups"]}

    def test_nobody_but_a_superuser_makes_superusers(
        self, administrator: Client, boss: User
    ) -> None:
        vera = person("vera")
        save(administrator, page_of(vera), values_of(vera, is_superuser="on"))
        assert not User.objects.get(pk=vera.pk).is_superuser
        client = Client()
        type_password(client, "boss")
        save(client, page_of(vera), values_of(vera, is_superuser="on"))
        assert User.objects.get(pk=vera.pk).is_superuser

    def test_nobody_but_a_superuser_changes_superusers(
        self, administrator: Client, boss: User
    ) -> None:
        addresses = (page_of(boss), f"{USERS}{boss.pk}/password/", f"{USERS}{boss.pk}/delete/")
        for address in (*addresses, f"{USERS}{boss.pk}/second-factor/"):
            answer = administrator.post(
                address, {"password1": NEW, "password2": NEW, "post": "yes", "username": "x"}
            )
            assert answer.status_code == 403, address
        administrator.post(
            USERS,
            {"action": "delete_selected", "_selected_action": [boss.pk], "post": "yes"},
        )
        assert User.objects.get(pk=boss.pk).check_password(PASSWORD)

    def test_nobody_lifts_himself(self, administrator: Client) -> None:
        ada = User.objects.get(username="ada")
        every = list(Permission.objects.values_list("pk", flat=True))
        save(
            administrator,
            page_of(ada),
            values_of(ada, is_superuser="on", user_permissions=every, groups=[], first_name="Ada"),
        )
        ada = User.objects.get(username="ada")
        assert (ada.first_name, ada.is_superuser) == ("Ada", False)
        assert ada.user_permissions.count() == 0
        assert list(ada.groups.all()) == [group("Administrator")]
        assert administrator.post(f"{USERS}{ada.pk}/delete/", {"post": "yes"}).status_code == 403

    def test_nobody_gives_what_he_lacks(self, client: Client) -> None:
        lead = person("lead", "Viewer")
        lead.user_permissions.set(
            Permission.objects.filter(
                content_type__app_label="auth", codename__in=["view_user", "change_user"]
            )
        )
        type_password(client, "lead")
        vera = person("vera")
        forget = Permission.objects.get(codename="forget")
        for change in (
            {"groups": [group("Reviewer").pk]},
            {"user_permissions": [forget.pk]},
        ):
            assert save(client, page_of(vera), values_of(vera, **change)).status_code == 200
        assert not User.objects.get(pk=vera.pk).get_all_permissions()
        own = lead.user_permissions.get(codename="view_user")
        given = {"groups": [group("Viewer").pk], "user_permissions": [own.pk]}
        save(client, page_of(vera), values_of(vera, **given))
        assert list(vera.groups.all()) == [group("Viewer")]
        assert list(vera.user_permissions.all()) == [own]

    def test_a_superuser_does_not_lock_himself_out(self, client: Client, boss: User) -> None:
        type_password(client, "boss")
        values = values_of(boss, is_active=None, is_staff=None, first_name="Bo")
        assert save(client, page_of(boss), values).status_code == 302
        boss.refresh_from_db()
        assert (boss.first_name, boss.is_active, boss.is_staff, boss.is_superuser) == (
            *("Bo", True, True, True),
        )

    @pytest.mark.parametrize("is_active", [True, False])
    def test_nobody_takes_over_who_may_more(self, client: Client, is_active: bool) -> None:
        lead = person("lead", "Viewer")
        lead.user_permissions.set(
            Permission.objects.filter(content_type__app_label="auth", codename__contains="_user")
        )
        type_password(client, "lead")
        manager = person("manager", "Memory manager", is_active=is_active)
        answer = client.post(f"{USERS}{manager.pk}/password/", {"password1": NEW, "password2": NEW})
        assert answer.status_code == 403
        assert save(client, page_of(manager), values_of(manager)).status_code == 403
        assert User.objects.get(pk=manager.pk).check_password(PASSWORD)

    def test_a_new_password_logs_the_person_out_and_is_told(self, administrator: Client) -> None:
        vera = person("vera", "Viewer")
        client = Client()
        type_password(client, "vera")
        answer = administrator.post(
            f"{USERS}{vera.pk}/password/", {"password1": NEW, "password2": NEW}
        )
        assert answer.status_code == 302
        assert not is_in(client)
        (event,) = told("user.password")
        assert (event.actor, event.object_id) == ("ada", str(vera.pk))
        assert NEW not in str(AuditEvent.objects.values_list())

    @pytest.mark.parametrize(
        "written", ["+{}", "%20{}", "{:012d}", "%0A{}", "{}_0A", "_2B{}", "{}%C2%A0"]
    )
    def test_it_is_told_however_the_address_writes_the_account(
        self, administrator: Client, written: str
    ) -> None:
        vera = person("vera", "Viewer")
        address = f"{USERS}{written.format(vera.pk)}/password/"
        administrator.post(address, {"password1": NEW, "password2": NEW})
        assert User.objects.get(pk=vera.pk).check_password(NEW)
        (event,) = told("user.password")
        assert (event.actor, event.object_id) == ("ada", str(vera.pk))

    @pytest.mark.parametrize("written", ["{}", "+{}", "{:012d}"])
    @pytest.mark.parametrize("name", ["ada", "boss"])
    def test_ones_own_is_changed_by_the_page_that_asks_for_the_old_one(
        self, boss: User, name: str, written: str
    ) -> None:
        person("ada", "Administrator")
        client = Client()
        type_password(client, name)
        user = User.objects.get(username=name)
        address = f"{USERS}{written.format(user.pk)}/password/"
        assert client.get(address)["Location"] == "/admin/password_change/"
        posted = client.post(address, {"password1": NEW, "password2": NEW})
        assert posted["Location"] == "/admin/password_change/"
        assert User.objects.get(pk=user.pk).check_password(PASSWORD)
        assert told("user.password") == []

    def test_a_password_that_is_refused_is_not_told(self, administrator: Client) -> None:
        vera = person("vera", "Viewer")
        two = {"password1": NEW, "password2": "another-one-of-tests"}
        administrator.post(f"{USERS}{vera.pk}/password/", two)
        assert User.objects.get(pk=vera.pk).check_password(PASSWORD)
        assert told("user.password") == []

    def test_whether_there_is_a_password_is_told_and_nothing_of_its_hash(
        self, administrator: Client, boss: User
    ) -> None:
        without = person("without", "Viewer")
        without.set_unusable_password()
        without.save()
        # A superuser's page is read-only to others.
        for user in (person("vera", "Viewer"), boss):
            page = administrator.get(f"{USERS}{user.pk}/change/").content.decode()
            assert "A password is set." in page
            assert not any(part[:6] in page for part in user.password.split("$")[-2:])
        page = administrator.get(f"{USERS}{without.pk}/change/").content.decode()
        assert "No password is set." in page

    def test_who_is_removed_is_told(self, administrator: Client) -> None:
        one, two = person("one"), person("two")
        administrator.post(f"{USERS}{one.pk}/delete/", {"post": "yes"})
        administrator.post(
            USERS, {"action": "delete_selected", "_selected_action": [two.pk], "post": "yes"}
        )
        assert [event.object_id for event in told("user.remove")] == [str(one.pk), str(two.pk)]
        assert not User.objects.filter(pk__in=[one.pk, two.pk]).exists()

    @pytest.mark.parametrize("key", ["0", "99999999", "x", "1" * 40, "%00"])
    @pytest.mark.parametrize("page", ["change", "password", "second-factor"])
    def test_who_is_not_there(self, administrator: Client, key: str, page: str) -> None:
        assert administrator.get(f"{USERS}{key}/{page}/").status_code in (302, 404)

    def test_the_list_takes_as_many_queries_whoever_is_there(self, administrator: Client) -> None:
        counts = []
        for number in range(40):
            person(f"p{number}", "Viewer")
            if number in (3, 39):
                with CaptureQueriesContext(connection) as queries:
                    assert administrator.get(USERS).status_code == 200
                counts.append(len(queries))
        assert counts[0] == counts[1]


class TestSecondFactorOfOthers:
    def test_an_administrator_resets_it(self, administrator: Client) -> None:
        vera = person("vera", "Viewer")
        client = Client()
        type_password(client, "vera")
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

    def test_the_own_one_goes_by_the_own_page_alone(self, administrator: Client) -> None:
        set_up_two_factor(administrator)
        ada = User.objects.get(username="ada")
        assert administrator.post(f"{USERS}{ada.pk}/second-factor/")["Location"] == TWO_FACTOR
        assert TOTPDevice.objects.exists()

    def test_the_packages_own_pages_which_show_secrets_are_gone(self, boss: User) -> None:
        client = Client()
        client.force_login(boss)
        for address in ("otp_totp/totpdevice", "otp_static/staticdevice", "axes/accessattempt"):
            assert client.get(f"/admin/{address}/").status_code == 404


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
        administrator.post(f"{GROUPS}add/", {"name": "Night shift", "permissions": [some.pk]})
        night = group("Night shift")
        assert list(night.permissions.all()) == [some]
        administrator.post(f"{GROUPS}{night.pk}/delete/", {"post": "yes"})
        administrator.post(f"{GROUPS}add/", {"name": "Day shift", "permissions": [some.pk]})
        chosen = {"action": "delete_selected", "_selected_action": [group("Day shift").pk]}
        administrator.post(GROUPS, {**chosen, "post": "yes"})
        assert not Group.objects.filter(name__endswith="shift").exists()
        assert [event.action for event in AuditEvent.objects.filter(object_type="group")] == [
            *("group.remove", "group.create", "group.remove", "group.create"),
        ]

    def test_nobody_puts_into_a_group_what_he_lacks(self, administrator: Client) -> None:
        beyond = Permission.objects.get(codename="change_permission")
        answer = administrator.post(f"{GROUPS}add/", {"name": "Lifted", "permissions": [beyond.pk]})
        assert answer.status_code == 200
        assert not Group.objects.filter(name="Lifted").exists()
        group("Viewer").permissions.add(beyond)
        address = f"{GROUPS}{group('Viewer').pk}/change/"
        assert administrator.post(address, {"permissions": []}).status_code == 403
        lifted = Group.objects.create(name="Lifted")
        lifted.permissions.add(beyond)
        address = f"{GROUPS}{lifted.pk}/delete/"
        assert administrator.post(address, {"post": "yes"}).status_code == 403


class TestFailedLogins:
    def test_an_administrator_sees_whose_they_are_and_lifts_the_lock(
        self, administrator: Client
    ) -> None:
        person("vera")
        other = Client(REMOTE_ADDR="192.0.2.7")
        for name in ("vera", "my-passw0rd"):
            for _ in range(5):
                type_password(other, name, "wrong")
        page = administrator.get(FAILED).content.decode()
        assert "vera" in page
        assert "a name that nobody has" in page
        assert "my-passw0rd" not in page
        assert "192.0.2.7" in page
        rows = list(AccessAttempt.objects.values_list("pk", flat=True))
        administrator.post(FAILED, {"action": "unlock", "_selected_action": rows})
        assert type_password(other, "vera").url == "/admin/"
        assert {event.actor for event in told("login.unlock")} == {"ada"}

    def test_the_lock_is_lifted_there_alone_where_it_was_chosen(
        self, administrator: Client
    ) -> None:
        person("vera")
        places = {name: Client(REMOTE_ADDR=name) for name in ("192.0.2.7", "192.0.2.8")}
        for client in places.values():
            for _ in range(5):
                type_password(client, "vera", "wrong")
        row = AccessAttempt.objects.get(ip_address="192.0.2.7")
        administrator.post(FAILED, {"action": "unlock", "_selected_action": [row.pk]})
        assert type_password(places["192.0.2.7"], "vera").url == "/admin/"
        assert type_password(places["192.0.2.8"], "vera").status_code == 429

    def test_each_says_whether_it_is_locked_and_goes_when_it_is_over(
        self, administrator: Client
    ) -> None:
        def shown() -> list[str]:
            page = administrator.get(FAILED).content.decode()
            return re.findall(r"field-shown_lock.*?>\s*((?:not )?locked)\s*<", page, re.DOTALL)

        for address, times in (("192.0.2.7", 5), ("192.0.2.8", 4)):
            for _ in range(times):
                type_password(Client(REMOTE_ADDR=address), "vera", "wrong")
        assert sorted(shown()) == ["locked", "not locked"]
        then = timezone.now() - timedelta(minutes=16)
        AccessAttempt.objects.filter(ip_address="192.0.2.7").update(attempt_time=then)
        assert shown() == ["not locked"]

    def test_the_page_of_one_shows_no_mark_and_nothing_that_was_posted(
        self, administrator: Client
    ) -> None:
        type_password(Client(), "vera", "wrong")
        row = AccessAttempt.objects.get()
        page = administrator.get(f"{FAILED}{row.pk}/change/").content.decode()
        assert "a name that nobody has" in page
        assert row.username not in page
        assert "csrfmiddlewaretoken=" not in page


class TestPermissionLists:
    def test_the_form_of_a_user_folds_the_single_permissions(self, administrator: Client) -> None:
        shown = administrator.get(page_of(person("vera", "Viewer"))).content.decode()
        before, _, after = shown.partition("Further permissions")
        assert 'name="groups"' in before
        assert 'name="user_permissions"' not in before
        assert 'data-find="Find a permission"' in after
        assert "dashboard/permissions.js" in shown

    def test_whoever_is_made_may_log_in_unless_it_is_unticked(self, administrator: Client) -> None:
        shown = administrator.get(f"{USERS}add/").content.decode()
        (staff,) = re.findall(r'<input[^>]*name="is_staff"[^>]*>', shown)
        assert "checked" in staff
        assert 'name="groups"' in shown
