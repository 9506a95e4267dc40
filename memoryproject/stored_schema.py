"""Compare the tables of the database with those that the models expect.

A migration that is folded into the first one isn't applied again: `migrate` finds nothing to do,
and pages fail later.
"""

from collections.abc import Iterator, Mapping

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from memoryproject import __version__

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
