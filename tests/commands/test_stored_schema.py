"""`manage.py prepare` refuses a database that was made by another state of the code."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memoryproject.management.commands.prepare import OtherSchemaError, schema_check

pytestmark = pytest.mark.django_db


def alter(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_the_tables_of_the_migrations_are_those_of_the_models() -> None:
    schema_check()


def test_a_missing_column_is_named_with_what_to_do() -> None:
    alter("ALTER TABLE sessions_app_label DROP COLUMN colour")
    with pytest.raises(CommandError) as refused:
        call_command("prepare")
    assert "no column sessions_app_label.colour" in str(refused.value)
    assert "Start with an empty DATA_DIR" in str(refused.value)


def test_a_missing_table_and_a_column_that_nobody_fills_are_found() -> None:
    alter(
        "DROP TABLE sessions_app_savedfilter",
        "ALTER TABLE sessions_app_label ADD COLUMN weight integer NOT NULL",
    )
    with pytest.raises(OtherSchemaError) as refused:
        schema_check()
    assert "no table sessions_app_savedfilter" in str(refused.value)
    assert "unknown column sessions_app_label.weight" in str(refused.value)
    alter(*(f"ALTER TABLE sessions_app_note ADD COLUMN old_{n} text NOT NULL" for n in range(3)))
    with pytest.raises(OtherSchemaError, match="and 2 more"):
        schema_check()


def test_a_newer_version_is_named_by_its_migration() -> None:
    alter(
        "ALTER TABLE sessions_app_label RENAME colour TO tint",
        "INSERT INTO django_migrations (app, name, applied)"
        " VALUES ('sessions_app', '0099_tints', now())",
    )
    with pytest.raises(OtherSchemaError, match=r"by a newer version .*sessions_app\.0099_tints"):
        schema_check()


def test_the_columns_of_a_newer_version_are_no_hindrance() -> None:
    alter(
        "ALTER TABLE sessions_app_label ADD COLUMN mood text",
        "ALTER TABLE sessions_app_label ADD COLUMN steps integer NOT NULL DEFAULT 0",
    )
    schema_check()


def test_it_is_asked_with_one_query(django_assert_num_queries: object) -> None:
    with django_assert_num_queries(1):  # type: ignore[operator]
        schema_check()
