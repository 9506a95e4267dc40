"""The groups that every installation begins with."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.utils import translation

from memoryproject.staff_site.accounts.groups import GROUPS, group_shown, groups_bring_up_to_date
from memoryproject.staff_site.models import DefaultGrant
from tests.staff.people import person

pytestmark = pytest.mark.django_db


def permission(name: str) -> Permission:
    app, codename = name.split(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


def may(name: str) -> set[str]:
    user = User.objects.filter(username=name).first() or person(name, name)
    return User.objects.get(pk=user.pk).get_all_permissions()


def test_there_are_five_and_each_of_their_permissions_is_there() -> None:
    assert set(Group.objects.values_list("name", flat=True)) == set(GROUPS)
    every = {
        f"{app}.{codename}"
        for app, codename in Permission.objects.values_list("content_type__app_label", "codename")
    }
    for patterns in GROUPS.values():
        assert {each for each in patterns if "*" not in each} <= every


def test_each_contains_the_one_before_it() -> None:
    viewer, reviewer, manager = may("Viewer"), may("Reviewer"), may("Memory manager")
    assert viewer < reviewer < manager < may("Administrator")
    assert may("Auditor") < may("Administrator")
    assert reviewer - viewer == {
        "sessions_app.review_chat",
        "sessions_app.takeover_chat",
        "sessions_app.rerun_turn",
        "memories_app.decide_mergeproposal",
    }
    assert {name.split("_")[1] for name in viewer} <= {"app.view"}


def test_an_auditor_reads_no_conversation_and_nobody_below_changes_users() -> None:
    assert all(name.startswith("audit.") for name in may("Auditor"))
    for name in set(GROUPS) - {"Administrator"}:
        assert not {each for each in may(name) if each.startswith("auth.")}


def test_what_was_changed_by_hand_stays_and_what_is_new_comes() -> None:
    reviewer = Group.objects.get(name="Reviewer")
    taken, added = permission("sessions_app.takeover_chat"), permission("audit.view_auditevent")
    reviewer.permissions.remove(taken)
    reviewer.permissions.add(added)
    # As if a version before had not known this permission.
    fresh = permission("sessions_app.rerun_turn")
    reviewer.permissions.remove(fresh)
    DefaultGrant.objects.filter(group="Reviewer", permission="sessions_app.rerun_turn").delete()
    call_command("migrate", verbosity=0)
    assert taken not in reviewer.permissions.all()
    assert {added, fresh} <= set(reviewer.permissions.all())


def test_a_group_that_was_removed_is_not_made_again_and_nothing_else_changes() -> None:
    Group.objects.get(name="Auditor").delete()
    before = set(Group.permissions.through.objects.values_list("group_id", "permission_id"))
    with translation.override("he"):
        groups_bring_up_to_date()
    after = set(Group.permissions.through.objects.values_list("group_id", "permission_id"))
    assert before == after
    # Their names are English in the database, whatever the language.
    assert set(Group.objects.values_list("name", flat=True)) == GROUPS.keys() - {"Auditor"}
    assert group_shown("Viewer") == "Viewer"
    assert group_shown("Our night shift") == "Our night shift"
