"""The default groups of staff.

They are updated at each ``migrate``: a group gets the permissions that a later version adds, and
permissions that somebody added or removed by hand stay unchanged. For that, DefaultGrant stores
each permission that was given to a group automatically: each is given once.
"""

import logging
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from django.apps import apps as global_apps
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.text import capfirst

from memoryproject.foundation.tables import read_table

logger = logging.getLogger(__name__)

_TABLE = read_table(__file__, "groups.yaml")
_OF_EACH, _INCLUDED = _TABLE["permissions"], _TABLE["includes"]
# Patterns of permissions.
GROUPS: Mapping[str, tuple[str, ...]] = {
    name: tuple(each for of in (*_INCLUDED.get(name, ()), name) for each in _OF_EACH[of])
    for name in _OF_EACH
}


def group_shown(name: str) -> str:
    """Return a group's name in the reader's language; a custom name is returned unchanged."""
    return str(_TABLE["names"].get(name, name))


def permissions_make() -> None:
    """Create the permissions of every app, as ``migrate`` does at its end.

    Within a migration they don't exist yet.
    """
    for config in global_apps.get_app_configs():
        create_permissions(config, verbosity=0)


def groups_bring_up_to_date(*, apps: Any = global_apps) -> None:
    """Create the groups, and give each the permissions that it was never given yet.

    A group that somebody removed isn't created again. ``apps``: the source of the models, in a
    migration its own.
    """
    permissions = apps.get_model("auth", "Permission").objects
    names = permissions.values_list("pk", "content_type__app_label", "codename")
    keys = {f"{app}.{codename}": pk for pk, app, codename in names}
    given: dict[str, set[str]] = {}
    for group, permission in apps.get_model("dashboard", "DefaultGrant").objects.values_list(
        "group", "permission"
    ):
        given.setdefault(group, set()).add(permission)
    with transaction.atomic():
        for name, patterns in GROUPS.items():
            wanted = {each for each in keys if any(fnmatchcase(each, one) for one in patterns)}
            fresh = {each: keys[each] for each in wanted - given.get(name, set())}
            _give(apps, name, fresh, is_new=name not in given)


def _give(apps: Any, name: str, fresh: Mapping[str, int], *, is_new: bool) -> None:
    groups = apps.get_model("auth", "Group").objects
    group = groups.get_or_create(name=name)[0] if is_new else groups.filter(name=name).first()
    if group is None or not fresh:
        return
    group.permissions.add(*fresh.values())
    grant = apps.get_model("dashboard", "DefaultGrant")
    rows = [grant(group=name, permission=permission) for permission in sorted(fresh)]
    grant.objects.bulk_create(rows, ignore_conflicts=True)


def after_migrate(sender: Any, apps: Any = global_apps, **_: Any) -> None:
    """Update the groups at the last post_migrate signal, which comes from one of Django's own apps.

    The signal is sent for each app. At the last one the tables and permissions of all others exist.
    After a migration back beyond our own there is nothing to update.
    """
    with_models = [config for config in global_apps.get_app_configs() if config.models_module]
    if sender != with_models[-1]:
        return
    try:
        apps.get_model("dashboard", "DefaultGrant")
    except LookupError:
        return
    groups_bring_up_to_date(apps=apps)


# Rules for changing accounts: nobody gives permissions they lack, or changes an account that has
# more permissions.

ACTIONS = _TABLE["actions"]
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
    named = _TABLE["own"].get(permission.codename)
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
