"""Many rows that are like one, made by PostgreSQL: Django takes a second for a thousand."""

from __future__ import annotations

from django.db import connection
from django.db.models import Model
from psycopg import sql

from memoryproject.foundation.process.narrowing import present

CHATS = """
INSERT INTO sessions_app_chat (id, whatsapp_chat, provider, number_id, is_group, client_name,
    staff_name, client_phone, language, created_at, updated_at)
SELECT gen_random_uuid(), 15550000000 + number || '@c.us', 'cloud', '', false,
    'Client ' || number, '', 15550000000 + number, '', now(), now()
FROM generate_series(1, %s) AS number
"""
AROUND = """
INSERT INTO sessions_app_chataddress (chat_id, provider, address, created_at)
SELECT id, 'cloud', whatsapp_chat, now() FROM sessions_app_chat;
INSERT INTO sessions_app_chatactivity (chat_id, last_at) SELECT id, now() FROM sessions_app_chat;
ANALYZE sessions_app_chat, sessions_app_chataddress, sessions_app_chatactivity;
"""


def row_copy(row: Model, count: int, **changes: str) -> None:
    """Insert so many copies of a stored row.

    changes: for a column the SQL expression of its value, in which ``number`` counts from 1. The
    key must be among them, and every other column without two equal values.
    """
    fields = row._meta.local_concrete_fields
    columns = [present(field.column) for field in fields if not field.generated]
    values = [
        sql.SQL(changes[each]) if each in changes else sql.Identifier(each) for each in columns
    ]
    insert = sql.SQL(
        "INSERT INTO {table} ({columns}) SELECT {values} FROM {table},"
        " generate_series(1, {count}) AS number WHERE {key} = {pk}"
    ).format(
        table=sql.Identifier(row._meta.db_table),
        columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
        values=sql.SQL(", ").join(values),
        count=sql.Literal(count),
        key=sql.Identifier(present(row._meta.pk.column)),
        pk=sql.Literal(row.pk),
    )
    with connection.cursor() as cursor:
        cursor.execute(insert)


def chats_many(count: int) -> None:
    """Insert so many clients, whose numbers follow each other from 15550000001 on."""
    with connection.cursor() as cursor:
        cursor.execute(CHATS, [count])
        cursor.execute(AROUND)
