"""Rules for changing accounts.

Nobody gives permissions they lack, or changes an account that has more permissions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q, QuerySet
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

ACTIONS = {
    "view": _("view"),
    "add": _("add"),
    "change": _("change"),
    "delete": _("delete"),
}
OWN_PERMISSIONS = {
    "forget": _("Erase memories, messages, sessions and people"),
    "rerun_turn": _("Answers: retry failed ones, and try any again to compare"),
    "review_chat": _("Conversations: label, note, assign and mark as reviewed"),
    "merge_chat": _("Contacts: merge two, and split them again"),
    "takeover_chat": _("Conversations: pause the assistant and reply as staff"),
    "decide_mergeproposal": _("Memories: decide duplicates, contradictions and suggestions"),
    "export_memory": _("Memories: export"),
    "operate_server": _("Operations: see settings and queues, test the provider"),
    "export_auditevent": _("Audit log: export"),
}
# Apps of libraries: failed logins and second factors are managed on pages of ours.
WITHOUT_PAGES = ("axes", "otp_static", "otp_totp")


def _names(permissions: QuerySet[Permission]) -> set[str]:
    pairs = permissions.values_list("content_type__app_label", "codename")
    return {f"{app}.{codename}" for app, codename in pairs.order_by()}


def permissions_of(user: Any) -> set[str]:
    """Return the permissions of a user, including those after a reactivation."""
    return _names(Permission.objects.filter(Q(user=user) | Q(group__user=user)).distinct())


def may_manage_user(actor: Any, user: Any) -> bool:
    """Return whether the actor has every permission of the user.

    A person who changes an account can log in with it.
    """
    if actor.is_superuser:
        return True
    return not user.is_superuser and permissions_of(user) <= actor.get_all_permissions()


def may_manage_group(actor: Any, group: Group) -> bool:
    held = actor.get_all_permissions()
    return actor.is_superuser or _names(group.permissions.all()) <= held


def permission_label(permission: Permission) -> str:
    """Return a permission in the reader's language: what it is about, and what it allows."""
    action = permission.codename.partition("_")[0]
    named = OWN_PERMISSIONS.get(permission.codename)
    model = permission.content_type.model_class()
    if named is not None or action not in ACTIONS or model is None:
        return str(named or permission.name)
    about = capfirst(str(model._meta.verbose_name_plural))
    return f"{about}: {ACTIONS[action]}"


def permissions_to_give(actor: Any) -> QuerySet[Permission]:
    """Return the permissions that the actor has."""
    every = Permission.objects.select_related("content_type")
    if actor.is_superuser:
        return every
    held = Q(user=actor) | Q(group__user=actor)
    return every.filter(pk__in=Permission.objects.filter(held).values("pk"))


def permissions_offered(actor: Any) -> QuerySet[Permission]:
    """Return those to choose from in a form: without libraries' tables, which have no page."""
    return permissions_to_give(actor).exclude(content_type__app_label__in=WITHOUT_PAGES)


def groups_to_give(actor: Any) -> QuerySet[Group]:
    """Return the groups that grant only permissions that the actor has."""
    if actor.is_superuser:
        return Group.objects.all()
    held: Iterable[int] = permissions_to_give(actor).values_list("pk", flat=True)
    more = Group.permissions.through.objects.exclude(permission_id__in=held).values("group_id")
    return Group.objects.exclude(pk__in=more)
