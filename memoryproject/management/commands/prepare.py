"""Prepare the database of an installation."""

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from django.apps import apps
from django.core.checks import Tags
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from memoryproject import __version__
from memoryproject.foundation.commands import DeclaredCommand
from memoryproject.management.commands.migrate import is_upgrade
from sessions_app.stored_settings import stored_settings_look

# In the order of the tables: the columns, each with whether a row can be stored without it.
COLUMNS = """
SELECT table_name, column_name,
       is_nullable = 'YES' OR column_default IS NOT NULL OR is_identity = 'YES'
       OR is_generated = 'ALWAYS'
FROM information_schema.columns WHERE table_schema = ANY (current_schemas(false))
"""
MAX_NAMED = 3
OUR_PACKAGES = ("memoryproject", "sessions_app", "memories_app", "cards_app")


class OtherSchemaError(Exception):
    """The database was made by another state of the code; the text says what to do."""


def schema_check() -> None:
    """Raise OtherSchemaError if the database lacks a column, or needs one that is unknown here.

    Columns that may be left empty are those of a newer version, which may run beside this one.
    """
    found = list(_differences(_stored()))
    if not found:
        return
    named = ", ".join(found[:MAX_NAMED])
    rest = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    if newer := _unknown_migrations():
        raise OtherSchemaError(
            f"The database was made by a newer version than {__version__} ({named}{rest}; "
            f"migration {newer[0]}). Start that version again, or restore the backup from before "
            "the upgrade into a new DATA_DIR."
        )
    raise OtherSchemaError(
        f"The database was made by another state of the code ({named}{rest}), and is not "
        "migrated. Start with an empty DATA_DIR (or an empty database in DATABASE_URL), or with "
        "the code that made it."
    )


def _unknown_migrations() -> list[str]:
    """Return the applied migrations of our apps that aren't in this code."""
    loader = MigrationLoader(connection)
    ours = {app.label for app in apps.get_app_configs() if app.name.startswith(OUR_PACKAGES)}
    unknown = loader.applied_migrations.keys() - loader.disk_migrations.keys()
    return sorted(f"{app}.{name}" for app, name in unknown if app in ours)


def _differences(stored: Mapping[str, Mapping[str, bool]]) -> Iterator[str]:
    """Yield what differs, by the names of tables and columns."""
    for table, expected in _expected().items():
        columns = stored.get(table)
        if columns is None:
            yield f"no table {table}"
            continue
        for name in sorted(expected - columns.keys()):
            yield f"no column {table}.{name}"
        for name in sorted(columns.keys() - expected):
            if not columns[name]:
                yield f"unknown column {table}.{name}"


def _expected() -> dict[str, set[str]]:
    """Return the columns of each model's table, also of those that link two models."""
    return {
        model._meta.db_table: {str(field.column) for field in model._meta.local_concrete_fields}
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy
    }


def _stored() -> dict[str, dict[str, bool]]:
    found: dict[str, dict[str, bool]] = {}
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        for table, column, may_be_left_out in cursor.fetchall():
            found.setdefault(table, {})[column] = may_be_left_out
    return found


class Command(DeclaredCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        call_command("check", stdout=StringIO())
        call_command("migrate", verbosity=int(is_upgrade()), stdout=self.stdout)
        try:
            schema_check()
        except OtherSchemaError as error:
            raise CommandError(str(error)) from None
        stored_settings_look(at_once=True)
        call_command("createcachetable", verbosity=0)
        call_command("install_schedules", stdout=StringIO())
        # Not those of the settings again: what is stored can only be corrected while it runs.
        call_command("check", tags=[Tags.database], databases=["default"], stdout=StringIO())
        call_command("memories_reembed", init=True, stdout=StringIO())
        call_command("ensure_admin", stdout=self.stdout)
