"""The tests' database: emptied quickly after each test whose transactions are real."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import TransactionTestCase
from psycopg import sql

from tests.processes.installation import copy_cluster, migrated_data_dir

# Django's own methods, which its type stubs don't have.
CASE: Any = TransactionTestCase
flush_of_django = CASE._fixture_teardown


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Where several workers test, the tables are made once, for the tests of processes too."""
    if "PYTEST_XDIST_WORKER" in os.environ and not settings.DATABASE_URL:
        copy_cluster(migrated_data_dir(), Path(settings.DATA_DIR))
        connection.settings_dict["TEST"]["TEMPLATE"] = connection.settings_dict["NAME"]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Let nothing wait for the disk, and replace Django's flush, which takes half a second."""
    with django_db_blocker.unblock():
        if not settings.DATABASE_URL:
            _for_tests_only()
        emptier = Emptier()
    # The migrations leave many thousand objects; what of them stays, stays until the end.
    gc.collect()
    gc.freeze()
    # A function, unlike a method that is bound already, is given the test case.
    CASE._fixture_teardown = lambda case: emptier.empty(case)
    yield
    CASE._fixture_teardown = flush_of_django


def _for_tests_only() -> None:
    """The data of the tests' own server need not outlive a power cut, and its plans must not
    depend on whether a table was analyzed in the background."""
    with connection.cursor() as cursor:
        for setting in ("fsync", "full_page_writes", "synchronous_commit", "autovacuum"):
            cursor.execute(f"ALTER SYSTEM SET {setting} = off")
        cursor.execute("SELECT pg_reload_conf()")


class Emptier:
    """Deletes the rows that a test committed, and only those of tables that have any.

    Rights and groups come from the migrations: a test that changed them gets Django's flush,
    which makes them anew.
    """

    def __init__(self) -> None:
        self.tables = sorted(connection.introspection.django_table_names(include_views=False))
        self.migrated = self._filled(self.tables)
        self.own = [table for table in self.tables if table not in self.migrated]
        self.before = self._digests()
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('is_superuser') = 'on'")
            (self.may_skip_triggers,) = cursor.fetchone()

    def empty(self, case: TransactionTestCase) -> None:
        """Stand in for TransactionTestCase._fixture_teardown."""
        if not self.may_skip_triggers:
            flush_of_django(case)
        elif self._digests() != self.before:
            flush_of_django(case)
            self.before = self._digests()
        else:
            self._delete(self._filled(self.own))

    def _delete(self, tables: list[str]) -> None:
        statements = [
            sql.SQL("DELETE FROM {}").format(sql.Identifier(table)).as_string() for table in tables
        ]
        if statements:
            # Without foreign keys' triggers no order is needed, and our own forbid deleting.
            skip, again = (
                f"SET session_replication_role = {role}" for role in ("replica", "origin")
            )
            with connection.cursor() as cursor:
                cursor.execute(";\n".join(["BEGIN", skip, *statements, again, "COMMIT"]))

    def _filled(self, tables: list[str]) -> list[str]:
        each = sql.SQL(" UNION ALL ").join(
            sql.SQL("(SELECT {} FROM {} LIMIT 1)").format(table, sql.Identifier(table))
            for table in tables
        )
        return [row[0] for row in _rows(each)]

    def _digests(self) -> list[tuple[Any, ...]]:
        """What the rows of the migrations are, in short."""
        each = sql.SQL(" UNION ALL ").join(
            sql.SQL("SELECT {}, count(*), sum(hashtextextended(t::text, 0)) FROM {} t").format(
                table, sql.Identifier(table)
            )
            for table in self.migrated
        )
        return _rows(each)


def _rows(query: sql.Composed) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query.as_string())
        return list(cursor.fetchall())


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect what is executed, without its values: Django's own list fills them in, which takes a
    tenth of the time of a page."""
    found: list[str] = []

    def note(execute: Any, statement: Any, *rest: Any) -> Any:
        found.append(statement.as_string() if isinstance(statement, sql.Composable) else statement)
        return execute(statement, *rest)

    with connection.execute_wrapper(note):
        yield found


def break_connection() -> None:
    """End this process's session at the server, as a restart of PostgreSQL does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def refuse_rows(table: str, *, code: str = "53100") -> None:
    """Let PostgreSQL refuse new rows, by default as on a full disk, until they are accepted."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE FUNCTION refuse_rows() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION refuse_rows()"
        )


def accept_rows(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER IF EXISTS refuse ON {table}")
