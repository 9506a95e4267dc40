"""Whoever adds a place where texts are kept says what forgetting does with it."""

from __future__ import annotations

import pytest
from django.db import connection

from sessions_app.forgetting.registry import COLUMNS, SWEPT

pytestmark = pytest.mark.django_db

HOLD_TEXTS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = 'public'
  AND (data_type IN ('text', 'character varying', 'character', 'json', 'jsonb', 'ARRAY', 'bytea')
       OR udt_name IN ('vector', 'halfvec', 'sparsevec', 'tsvector', 'xml'))
  AND NOT (data_type = 'ARRAY' AND udt_name = '_uuid')
  AND table_name NOT IN (SELECT relname FROM pg_class WHERE relispartition)
"""


def in_the_database() -> set[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(HOLD_TEXTS)
        return set(cursor.fetchall())


def test_every_column_that_can_hold_a_text_is_registered() -> None:
    registered = {(table, column) for table, columns in COLUMNS.items() for column in columns}
    assert in_the_database() - registered == set(), "say in registry.json what becomes of it"
    assert registered - in_the_database() == set(), "registered, but not there"


def test_what_is_said_to_be_safe_or_out_of_reach_says_why() -> None:
    silent = [
        (table, column)
        for table, columns in COLUMNS.items()
        for column, (how, why) in columns.items()
        if how != SWEPT and not why
    ]
    assert silent == []
