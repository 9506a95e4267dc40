"""Migrations after 1.0 only add: processes of the release before still run beside them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

from memoryproject import __version__
from tests.docs.sources import OUR_APPS
from tests.tables import table

# Not a trigger's "AFTER UPDATE OF".
UPDATES = re.compile(r"\bUPDATE\s+\S+\s+SET\b", re.IGNORECASE)
# The last ones of 1.0.0, by app. What came with it or before is as it is.
OF_1_0 = {
    "audit": 1,
    "api": 1,
    "cards_app": 1,
    "dashboard": 2,
    "hooks": 2,
    "memories_app": 5,
    "outside_services": 2,
    "sessions_app": 17,
}
# The code of a release that still uses what they remove fails.
REMOVING = (
    *(migrations.RemoveField, migrations.RenameField, migrations.DeleteModel),
    *(migrations.RenameModel, migrations.AlterModelTable),
)


def faults(migration: Migration) -> Iterator[str]:
    """Yield what the rules in CONTRIBUTING.md don't allow.

    ``unused_since`` of a migration that removes is the release whose code needs it no more.
    """
    is_unused = numbers(getattr(migration, "unused_since", __version__)) < numbers(__version__)
    made = set()
    for operation in migration.operations:
        if isinstance(operation, migrations.CreateModel):
            made.add(operation.name_lower)
        elif isinstance(operation, REMOVING) and not is_unused:
            yield "removes what the release before uses"
        elif getattr(operation, "model_name_lower", "") not in made:
            yield from faults_of(operation, is_atomic=migration.atomic)


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def faults_of(operation: Operation, *, is_atomic: bool) -> Iterator[str]:
    if isinstance(operation, migrations.AddField | migrations.AlterField):
        field = operation.field
        if not (field.many_to_many or field.null or field.has_db_default() or field.generated):
            yield "a column that older code can't leave out"
    elif isinstance(operation, migrations.RunPython) and is_atomic:
        yield "changes all rows in one transaction"
    elif isinstance(operation, migrations.RunSQL) and UPDATES.search(str(operation.sql)):
        yield "changes rows by SQL, not in portions"
    elif type(operation) is migrations.AddIndex:
        yield "an index that keeps writers waiting"


def undescribed(migration: Migration) -> Iterator[str]:
    if not sys.modules[type(migration).__module__].__doc__:
        yield "no docstring that says what it does, for `migrate` to print"


def test_those_after_1_0_only_add() -> None:
    found = {
        f"{app}.{name}": [*faults(migration), *undescribed(migration)]
        for (app, name), migration in MigrationLoader(None).disk_migrations.items()
        if type(migration).__module__.startswith(OUR_APPS) and int(name[:4]) > OF_1_0[app]
    }
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def nothing(*_: object) -> None: ...


@table(
    ("operation", "atomic", "unused_since", "is_allowed"),
    [
        (migrations.AddField("turn", "a", models.TextField(null=True)), True, None, True),
        (migrations.AddField("turn", "a", models.TextField(db_default="")), True, None, True),
        (migrations.AddField("turn", "a", models.TextField(default="")), True, None, False),
        (migrations.AlterField("turn", "a", models.TextField()), True, None, False),
        (migrations.RemoveField("turn", "a"), True, None, False),
        (migrations.RemoveField("turn", "a"), True, __version__, False),
        (migrations.RemoveField("turn", "a"), True, "0.9.9", True),
        (migrations.DeleteModel("turn"), True, None, False),
        (migrations.RunPython(nothing, nothing), True, None, False),
        (migrations.RunPython(nothing, nothing), False, None, True),
        (migrations.RunSQL("update sessions_app_turn SET a = 1"), False, None, False),
        (migrations.AddIndex("turn", models.Index(fields=["a"], name="i")), True, None, False),
        (AddIndexConcurrently("turn", models.Index(fields=["a"], name="i")), False, None, True),
    ],
)
def test_the_rules(
    operation: Operation, atomic: bool, unused_since: str | None, is_allowed: bool
) -> None:
    parts: dict[str, Any] = {"operations": [operation], "atomic": atomic}
    if unused_since is not None:
        parts["unused_since"] = unused_since
    migration = type("Next", (Migration,), parts)("9999_next", "sessions_app")
    assert (list(faults(migration)) == []) == is_allowed
