"""Check whether a backup may be restored into this database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from sessions_app.backup.manifest import Manifest
from sessions_app.backup.tables import Table, all_tables, sequences

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


# The tables of django-q2. A row of theirs names a function, or is a pickle.
JOBS = "django_q_"


class RestoreError(Exception):
    """The backup can't be restored here; the text states the reason and what to do."""


def migrations_of_this_version() -> set[str]:
    """Return the migrations of this program version as "app.name", applied or not."""
    return {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}


def check_migrations(manifest: Manifest, here: Iterable[str]) -> None:
    """Compare the backup's migrations with ``here``. Raises RestoreError if they differ."""
    in_code, in_backup = set(here), set(manifest.migrations)
    if in_code == in_backup:
        return
    differing = [
        f"{whose}: {', '.join(sorted(names))}"
        for whose, names in (
            ("only in the backup", in_backup - in_code),
            ("only here", in_code - in_backup),
        )
        if names
    ]
    raise RestoreError(
        f"The backup was made by version {manifest.product_version}, whose tables differ "
        f"(migrations {'; '.join(differing)}). Restore it with that version, then upgrade."
    )


def check_no_jobs(manifest: Manifest) -> None:
    """Raises RestoreError if the backup holds jobs, which a worker would run."""
    if jobs := sorted(name for name in manifest.tables if name.startswith(JOBS)):
        raise RestoreError(
            f"The backup holds {', '.join(jobs)}. Rows of these tables are run as code, so no "
            "backup of this program has them: somebody put them there. Nothing was restored."
        )


def check_form(manifest: Manifest, tables: list[Table]) -> None:
    """Compare the tables with those of the backup. Raises RestoreError if they differ."""
    columns = {table.name: list(table.columns) for table in tables}
    there = {name: member.columns for name, member in manifest.tables.items()}
    if columns != there or set(manifest.sequences) != set(sequences()):
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


def _holds_data(cursor: Any, table: Table) -> bool:
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
