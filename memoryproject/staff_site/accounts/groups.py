"""The default groups of staff.

They are updated at each ``migrate``: a group gets the permissions that a later version adds, and
permissions that somebody added or removed by hand stay unchanged. For that, DefaultGrant stores
each permission that was given to a group automatically: each is given once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from django.apps import apps as global_apps
from django.contrib.auth.management import create_permissions
from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

logger = logging.getLogger(__name__)

_READ = ("sessions_app.view_*", "memories_app.view_*", "cards_app.view_*")
_REVIEW = (
    "sessions_app.review_chat",
    "sessions_app.takeover_chat",
    "sessions_app.rerun_turn",
    "memories_app.decide_mergeproposal",
)
_MANAGE = (
    "memories_app.add_memory",
    "memories_app.change_memory",
    "memories_app.export_memory",
    "memories_app.*_sourcedocument",
    "memories_app.*_memorydocument",
    "sessions_app.*_cannedreply",
    "sessions_app.forget",
    "sessions_app.merge_chat",
)
_AUDIT = ("audit.view_*", "audit.export_auditevent")
_ALL = (
    "sessions_app.*",
    "memories_app.*",
    "cards_app.*",
    "audit.*",
    "api.*",
    "hooks.*",
    "dashboard.*",
    # Never add or change: the function that a schedule names is run.
    "django_q.view_*",
    "auth.*_user",
    "auth.*_group",
)

VIEWER = "Viewer"
REVIEWER = "Reviewer"
MEMORY_MANAGER = "Memory manager"
AUDITOR = "Auditor"
ADMINISTRATOR = "Administrator"

# Patterns of permissions; further permissions of a group with that name were added by hand.
GROUPS: Mapping[str, tuple[str, ...]] = {
    VIEWER: _READ,
    REVIEWER: (*_READ, *_REVIEW),
    MEMORY_MANAGER: (*_READ, *_REVIEW, *_MANAGE),
    AUDITOR: _AUDIT,
    ADMINISTRATOR: _ALL,
}

# Their names in the database are these English ones; pages show them in the reader's language.
SHOWN_NAMES: Mapping[str, Promise] = {
    VIEWER: gettext_lazy("Viewer"),
    REVIEWER: gettext_lazy("Reviewer"),
    MEMORY_MANAGER: gettext_lazy("Memory manager"),
    AUDITOR: gettext_lazy("Auditor"),
    ADMINISTRATOR: gettext_lazy("Administrator"),
}


def group_shown(name: str) -> str:
    """Return a group's name in the reader's language; a custom name is returned unchanged."""
    return str(SHOWN_NAMES.get(name, name))


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
