"""The probe can find something, the receipt names it, and says what was looked at."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Task
from psycopg import sql

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.retrieval.fragments import Fragments
from sessions_app.conversations.message_store import NewMessage
from sessions_app.forgetting.receipt_pages import left_words
from sessions_app.forgetting.registry import statistics_stale, statistics_values, swept_columns
from sessions_app.models import ForgetReceipt, Message, Note, Turn
from tests.remembering import remember
from tests.world import CLIENT, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

# Of one memory that nobody was told of, without those of the API around it.
MAX_STATEMENTS = 62

FACT = "The gate of the yard opens with the number of the old tram"


def forget(world: World) -> ForgetReceipt:
    key = Memory.objects.get().pk
    return world.forget("memory", key)


def test_the_receipt_tells_what_was_asked_and_read(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "How do I get into the yard?")
    details = forget(world).probe_details
    assert set(details) == {"columns", "recall", "staff search", "statistics"}
    # As staff and as the chat.
    assert details["recall"]["queries"] == 2
    assert any("memory" in name for name in details["recall"]["looked_at"])
    assert details["columns"]["rows"] > 5
    assert {"sessions_app_message.content", "django_q_task.result"} <= set(
        details["columns"]["looked_at"]
    )
    assert FACT not in str(details)


def test_erasing_a_memory_takes_few_statements(world: World) -> None:
    """Each of them is one more that whoever waits for the receipt waits for."""
    world.say(CLIENT, "How do I get into the yard?")
    key = remember(FACT, visibility="chat", chat_id=world.chat(CLIENT).pk).pk
    with CaptureQueriesContext(connection) as queries:
        world.forget("memory", key)
    assert len(queries) <= MAX_STATEMENTS, "\n".join(query["sql"][:160] for query in queries)


def test_each_column_that_is_read_through_is_registered_as_swept(world: World) -> None:
    world.remember(CLIENT, FACT)
    names = forget(world).probe_details["columns"]["looked_at"]
    assert {tuple(name.split(".")) for name in names} <= swept_columns()


REFUSE = """
CREATE FUNCTION keep_it() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE TRIGGER keep_it BEFORE UPDATE OR DELETE ON {} FOR EACH ROW EXECUTE FUNCTION keep_it()
"""
ALLOW = "DROP TRIGGER keep_it ON {}; DROP FUNCTION keep_it"


def place(world: World, where: str) -> object:
    """Put the fact into a record that derives from it, and return the record's key."""
    if where == "turn":
        return Turn.objects.filter(message__content="How do I get into the yard?").get().pk
    if where == "note":
        chat, now = world.chat(CLIENT), timezone.now()
        return Note.objects.create(chat=chat, author_name="dana", created_at=now, text=FACT).pk
    if where == "task":
        now = timezone.now()
        return Task.objects.create(
            id="a", name="a", func="a", started=now, stopped=now, result={"said": [FACT]}
        ).pk
    user = User.objects.create_user("dana")
    return LogEntry.objects.create(user=user, action_flag=2, object_repr=FACT, object_id="1").pk


@pytest.mark.parametrize(
    ("where", "table"),
    [
        ("turn", "sessions_app_turnreplay"),
        ("note", "sessions_app_note"),
        ("task", "django_q_task"),
        ("log entry", "django_admin_log"),
    ],
)
def test_what_can_not_be_removed_is_named(world: World, where: str, table: str) -> None:
    """A rule of the database keeps the row as it is."""
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "How do I get into the yard?")
    key = place(world, where)
    name = sql.Identifier(table)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(REFUSE).format(name))
    try:
        receipt = forget(world)
    finally:
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL(ALLOW).format(name))
    assert not Memory.objects.exists()
    assert receipt.probe == "found"
    assert receipt.left == [{"what": where, "id": str(key)}]
    event = AuditEvent.objects.get(action="memory.forgotten")
    assert event.details["left"] == receipt.left
    assert FACT not in str(event.details)
    (label, shown, todo) = left_words(receipt.left)[0]
    assert shown == str(key)
    assert label
    assert todo.endswith("there.")


@pytest.mark.parametrize(
    ("kind", "table"), [("memory", "memories_app_memory"), ("message", "sessions_app_message")]
)
def test_what_stays_itself_is_found_as_anybody_would(world: World, kind: str, table: str) -> None:
    """By recall and by staff's search, without a vector of the text."""
    world.say(CLIENT, "Good morning")
    if kind == "memory":
        key = remember(FACT, visibility="chat", chat_id=world.chat(CLIENT).pk).pk
    else:
        said = NewMessage(role="user", content=FACT, timestamp=timezone.now())
        session_id = world.session(CLIENT).pk
        world.rules.chat_memory.add_messages(conversation_id=session_id, messages=[said])
        key = Message.objects.get(content=FACT).pk
    refused = sql.Identifier(table)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(REFUSE).format(refused))
    try:
        receipt = world.forget(kind, key)
    finally:
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL(ALLOW).format(refused))
    assert receipt.left == [{"what": kind, "id": str(key)}]
    assert receipt.probe_details["recall"]["rows"] == 1
    assert receipt.probe_details["staff search"]["rows"] == 1


def test_values_of_statistics_go_too(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, FACT)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_app_memory, sessions_app_message")
    texts = Fragments([FACT])
    # PostgreSQL may have analyzed other tables by itself, whose rows stay.
    analyzed = {Memory._meta.db_table, Message._meta.db_table}
    kept = {
        (table, column)
        for table, column, value in statistics_values()
        if FACT in value and table in analyzed
    }
    assert kept
    assert statistics_stale(statistics_values(), texts) == set()
    Memory.objects.all().delete()
    Message.objects.all().delete()
    assert kept <= statistics_stale(statistics_values(), texts)


def test_after_a_forgetting_no_statistics_hold_it(world: World) -> None:
    """Neither those of a partition, nor those of all partitions."""
    world.remember(CLIENT, FACT)
    # What is there once is no sample.
    world.say(CLIENT, f"/remember {FACT}")
    with connection.cursor() as cursor:
        cursor.execute(
            "ANALYZE memories_app_memory, sessions_app_message, sessions_app_inbounddelivery"
        )
    holding = {table for table, _, value in statistics_values() if FACT in value}
    assert {"sessions_app_inbounddelivery_before", "sessions_app_inbounddelivery"} <= holding
    assert forget(world).probe_details["statistics"]["queries"] == 1
    assert not any(FACT in value for _, _, value in statistics_values())
