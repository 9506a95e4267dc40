"""Check whether a backup may be restored into this database."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from django.apps import apps
from django.apps.registry import Apps
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import CharField, Model, TextField
from psycopg import sql

from memoryproject import __version__
from memoryproject.foundation.process.narrowing import present
from sessions_app.backup.archive import Manifest

# Rows that `migrate` and `make run` create in a new database. The backup's rows replace them.
OF_A_FRESH_DATABASE = {
    "django_migrations",
    "django_content_type",
    "auth_permission",
    "auth_group_permissions",
    "axes_accessattempt",
    "dashboard_defaultgrant",
    "memories_app_embeddingmodel",
    "audit_audithead",
    "audit_auditsetting",
    "audit_auditverification",
    "audit_auditsealjob",
}
# For these tables: the condition for rows that are user data. Other rows are replaced, too.
DATA_WHERE = {
    "auth_group": "name NOT IN ('Viewer', 'Reviewer', 'Memory manager', 'Auditor', "
    "'Administrator')",
    "auth_user": "username <> 'admin' OR last_login IS NOT NULL",
    "audit_auditevent": "action NOT IN ('setting.change', 'login.failed')",
}


# The functions that migrations make. An extension's own have other names.
OWN_APPS = ("audit", "cards_app", "memories_app", "sessions_app")
FUNCTIONS = """
SELECT oid::regprocedure::text FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace AND proname ~ %s
"""

# The tables of django-q2. A row of theirs names a function, or is a pickle.
JOBS = "django_q_"


class RestoreError(Exception):
    """The backup can't be restored here; the text states the reason and what to do."""


@dataclass(frozen=True)
class State:
    """The tables of a backup.

    ``older``: (app, name) of the last migrations that make them; empty if they are those of this
    version.
    """

    tables: "list[Table]"
    older: list[tuple[str, str]]


def state_of(manifest: Manifest) -> State:
    """Return the tables that the backup was made of.

    Raises RestoreError if the backup has migrations that this version doesn't know.
    """
    loader = MigrationLoader(None)
    here = {f"{app}.{name}": (app, name) for app, name in loader.disk_migrations}
    if unknown := sorted(set(manifest.migrations) - here.keys()):
        raise RestoreError(
            f"The backup was made by version {manifest.product_version}. This is version "
            f"{__version__}, which doesn't know its tables (migrations {', '.join(unknown)}). "
            f"Restore it with version {manifest.product_version} or a newer one."
        )
    if here.keys() == set(manifest.migrations):
        return State(_as_written(all_tables(), manifest), [])
    nodes = {here[name] for name in manifest.migrations}
    graph = loader.graph
    last = sorted(
        node
        for node in nodes & graph.nodes.keys()
        if not any(child.key in nodes for child in graph.node_map[node].children)
    )
    return State(_as_written(all_tables(loader.project_state(last).apps), manifest), last)


def _as_written(tables: "list[Table]", manifest: Manifest) -> "list[Table]":
    """Return the tables with their columns in the archive's order, where they are the same ones."""
    written = {name: member.columns for name, member in manifest.tables.items()}
    return [
        replace(table, columns=tuple(written[table.name]))
        if sorted(table.columns) == sorted(written.get(table.name, []))
        else table
        for table in tables
    ]


def remove_newer_tables(older: Iterable[tuple[str, str]]) -> None:
    """Remove the tables of an empty database that has more migrations than ``older`` needs."""
    loader = MigrationLoader(connection)
    needed = {node for last in older for node in loader.graph.forwards_plan(last)}
    if not set(loader.applied_migrations) - needed:
        return
    names = [model._meta.db_table for model in apps.get_models(include_auto_created=True)]
    names += [MigrationRecorder.Migration._meta.db_table]
    with transaction.atomic(), connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor)) & set(names)
        tables = sql.SQL(", ").join(map(sql.Identifier, sorted(there)))
        cursor.execute(sql.SQL("LOCK TABLE {}").format(tables))
        check_empty(cursor)
        cursor.execute(sql.SQL("DROP TABLE {} CASCADE").format(tables))
        cursor.execute(FUNCTIONS, ["^(" + "|".join(sorted(OWN_APPS)) + ")_"])
        for (function,) in cursor.fetchall():
            cursor.execute(sql.SQL("DROP FUNCTION {} CASCADE").format(sql.SQL(function)))


def check_applied(manifest: Manifest, applied: Iterable[str]) -> None:
    """Raises RestoreError unless the tables were made by the migrations of the backup."""
    if differing := sorted(set(manifest.migrations) ^ set(applied)):
        raise RestoreError(
            f"The tables of this database differ from those of the backup: {', '.join(differing)}. "
            "Restore it into a new database (DATA_DIR or DATABASE_URL)."
        )


def check_no_jobs(manifest: Manifest) -> None:
    """Raises RestoreError if the backup holds jobs, which a worker would run."""
    if jobs := sorted(name for name in manifest.tables if name.startswith(JOBS)):
        raise RestoreError(
            f"The backup holds {', '.join(jobs)}. Rows of these tables are run as code, so no "
            "backup of this program has them: somebody put them there. Nothing was restored."
        )


def check_form(manifest: Manifest, tables: "list[Table]") -> None:
    """Compare the tables with those of the backup. Raises RestoreError if they differ."""
    columns = {table.name: list(table.columns) for table in tables}
    there = {name: member.columns for name, member in manifest.tables.items()}
    if columns != there or set(manifest.sequences) != set(sequences(tables)):
        raise RestoreError(
            f"The backup was made by version {manifest.product_version}, whose tables have other "
            "columns. Restore it with that version."
        )


def check_empty(cursor: Any) -> None:
    """Check that no table of this project holds data; tables may be missing.

    Raises RestoreError.
    """
    there = set(connection.introspection.table_names(cursor))
    tables = [table for table in all_tables() if table.name in there]
    full = [table.name for table in tables if _holds_data(cursor, table)]
    if full:
        raise RestoreError(
            f"This database holds data already, in {', '.join(full)}. A backup is restored into "
            "an empty one, and never over another: set DATA_DIR or DATABASE_URL to a new one."
        )


def _holds_data(cursor: Any, table: "Table") -> bool:
    if table.name in OF_A_FRESH_DATABASE:
        return False
    condition = sql.SQL(DATA_WHERE.get(table.name, "true"))
    query = sql.SQL("SELECT 1 FROM {} WHERE {} LIMIT 1").format(
        sql.Identifier(table.name), condition
    )
    cursor.execute(query)
    return cursor.fetchone() is not None


def others_connected() -> int:
    """Return the number of other programs connected to this database: server, workers, shell."""
    with connection.cursor() as cursor:
        # PostgreSQL doesn't show the type of other roles' connections.
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() "
            "AND coalesce(backend_type, 'client backend') = 'client backend'"
        )
        (count,) = cursor.fetchone()
        return int(count)


# The tables and rows that a backup holds.


# Logins to the admin: after a restore staff log in again. Jobs: their rows name functions or are
# pickles, so that a restore would run code from the archive; `install_schedules` makes the
# schedules, and the sweep takes up the open work. Changes of texts: a restore logs its own, with
# the ids of its own transactions.
LEFT_OUT = {
    *("sessions.Session", "django_q.Schedule", "django_q.OrmQ", "django_q.Task"),
    "memories_app.TextChange",
    # Figures, which are computed again from the restored data.
    *("dashboard.Quarter", "dashboard.Day", "dashboard.Mark"),
}

# Servers, databases and roles may have different settings. The archive's text must be the same
# everywhere, and a copy must not time out. A setting that a server lacks is skipped.
FIXED_FORM = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}


@dataclass(frozen=True)
class Table:
    """A table with its stored columns; columns that PostgreSQL computes are left out."""

    name: str
    columns: tuple[str, ...]
    key: str
    key_is_text: bool

    def copy_out(self) -> sql.Composed:
        """Return SQL that copies all rows as text, ordered by key, the same on every server."""
        query = "COPY (SELECT {columns} FROM {table} ORDER BY {key}{collation}) TO STDOUT"
        return sql.SQL(query).format(
            columns=_names(self.columns),
            table=sql.Identifier(self.name),
            key=sql.Identifier(self.key),
            collation=sql.SQL(' COLLATE "C"' if self.key_is_text else ""),
        )

    def copy_in(self) -> sql.Composed:
        return sql.SQL("COPY {table} ({columns}) FROM STDIN").format(
            columns=_names(self.columns), table=sql.Identifier(self.name)
        )


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def all_tables(apps: Apps = apps) -> list[Table]:
    """Return every table of this project and of Django, by name. ``apps``: also of older models."""
    models: list[type[Model]] = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy
        if model._meta.label not in LEFT_OUT
    ]
    models.append(MigrationRecorder(connection).Migration)
    return sorted(map(_table, models), key=lambda table: table.name)


def _table(model: type[Model]) -> Table:
    fields = [field for field in model._meta.local_concrete_fields if not field.generated]
    key = present(model._meta.pk)
    columns = tuple(field.column for field in fields if field.column)
    is_text = isinstance(key, CharField | TextField)
    return Table(model._meta.db_table, columns, str(key.column), is_text)


def sequences(tables: list[Table]) -> list[str]:
    """Return the sequences of the tables' keys; others in the schema are ignored."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequence.relname FROM pg_class sequence"
            " JOIN pg_depend ON objid = sequence.oid AND classid = 'pg_class'::regclass"
            " AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i')"
            " JOIN pg_class owner ON owner.oid = refobjid"
            " WHERE sequence.relkind = 'S' AND owner.relname = ANY(%s)"
            " AND owner.relnamespace = current_schema()::regnamespace ORDER BY 1",
            [[table.name for table in tables]],
        )
        return [name for (name,) in cursor.fetchall()]


def use_fixed_form(cursor: Any) -> None:
    """Fix the text format of values until the end of the transaction."""
    cursor.execute(
        "SELECT set_config(name, wanted.value, true) FROM pg_settings"
        " JOIN unnest(%s::text[], %s::text[]) AS wanted (name, value) USING (name)",
        [list(FIXED_FORM), list(FIXED_FORM.values())],
    )


@contextmanager
def rows_of(table: Table, cursor: Any) -> Iterator[Iterator[bytes]]:
    """Return a table's rows in COPY's format, in blocks. Raises DatabaseError.

    Until the end of the context, psycopg holds the connection's lock. If whoever reads the rows
    fails, the copy has to end before the transaction: its rollback would wait for the lock.
    """
    with connection.wrap_database_errors, cursor.copy(table.copy_out()) as copy:
        yield map(bytes, copy)
