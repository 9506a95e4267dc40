"""What the registry calls swept is: whichever column holds the text, forgetting takes it out, by
cutting it or with its row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import JSONField
from django.utils import timezone
from django_q.models import OrmQ, Task
from django_q.signing import SignedPackage
from psycopg import sql
from sessions_app.forgetting.probe_sources import Column, chat_columns, unscoped_columns

from memories_app.models import Memory, MergeProposal, SourceDocument
from memories_app.store.change import memory_update
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from sessions_app.cards.make_cards import card_make
from sessions_app.forgetting.deletion_plan import MARGIN
from sessions_app.forgetting.execute import ForgetDependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.forgetting.registry import swept_columns
from sessions_app.models import (
    AnswerTrial,
    ContactMerge,
    ExtractionWork,
    InboundDelivery,
    Message,
    Note,
    Turn,
)
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db(transaction=True)

FACT = "Zebras yodel quietly northward"
# Also of a column of few characters.
BEGINNING = FACT[:12]

TYPE = """
SELECT data_type, character_maximum_length, is_generated FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = %s AND column_name = %s
"""
PLANTS = {
    "jsonb": "CASE jsonb_typeof({column}) WHEN 'object' THEN jsonb_build_object('content', %s)"
    " ELSE jsonb_build_array(jsonb_build_object('content', %s)) END",
    "ARRAY": "ARRAY[%s]",
}


@pytest.fixture
def world(transactional_db: None, rules: Any, dependencies: Any) -> World:
    """A chat with a row in every table from which texts are swept."""
    world = World(rules=rules, dependencies=dependencies)
    world.summarizing(every=2)
    world.say(CLIENT, "Good morning to you all")
    world.say(CLIENT, "How are you today")
    world.sum_up(CLIENT)
    card_make(session_id=world.session(CLIENT).pk)
    world.remember(CLIENT, FACT)
    now, chat = timezone.now(), world.chat(CLIENT)
    Note.objects.create(chat=chat, author_name="dana", created_at=now, text="-")
    ContactMerge.objects.create(chat=chat, gone_id=uuid4(), merged_at=now, merged_by="dana")
    ExtractionWork.objects.get_or_create(turn=Turn.objects.latest("id"))
    AnswerTrial.objects.create(turn=Turn.objects.latest("id"), created_at=now)
    InboundDelivery.objects.create(provider="cloud", delivery_key="nobody's", raw={})
    SourceDocument.objects.create(name="-", size=1, sha256="-", chat_id=chat.pk, visibility="chat")
    memory_update(
        memory_id=Memory.objects.get().pk,
        tags=["pool"],
        actor=SYSTEM,
        embedder=dependencies.embedder,
    )
    proposal = MergeProposal.objects.create(
        kind="merge", content="-", similarity=1, alike_key="-", state="open"
    )
    proposal.parts.create(memory=Memory.objects.get(), number=1)
    LogEntry.objects.create(user=User.objects.create_user("dana"), action_flag=2, object_id="1")
    Task.objects.create(id="a", name="a", func="a", started=now, stopped=now)
    OrmQ.objects.create(key="a", payload=SignedPackage.dumps({"id": "a"}), lock=now)
    IdempotentAnswer.objects.create(
        caller="a", key_hash="a", request_hash="a", lease_until=now, status=200
    )
    Session.objects.create(session_key="a", session_data="", expire_date=now + timedelta(days=1))
    return world


def forget(world: World, kind: str, key: Any) -> None:
    dependencies = ForgetDependencies(world.dependencies.embedder, world.dependencies.chat_memory)
    object_forget(kind=kind, object_id=key, dependencies=dependencies)


def staying(world: World) -> list[Column]:
    """The columns of rows that stay when a memory is forgotten."""
    since = Memory.objects.get().created_at - MARGIN
    return [*chat_columns([world.chat(CLIENT).pk], since), *unscoped_columns(since)]


def planted(column: Column) -> Any:
    """The text as a value of this column."""
    if column.name == "django_q_ormq.payload":
        return SignedPackage.dumps({"id": "a", "args": (FACT,)})
    if column.name == "django_session.session_data":
        return SessionStore().encode({"_messages": FACT})
    if not isinstance(column.chosen.model._meta.get_field(column.field), JSONField):
        return FACT
    if column.field in ("prompt", "recalled"):
        return [{"role": "user", "id": "-", "content": FACT}]
    return {"content": FACT}


def holding(columns: list[Column]) -> set[str]:
    """Of these columns those in which the text stands."""
    return {column.name for column in columns for _, value in column.rows() if FACT in str(value)}


def test_a_text_is_taken_out_of_every_column_whose_row_stays(world: World) -> None:
    columns, key = staying(world), Memory.objects.get().pk
    for column in columns:
        column.chosen.model._default_manager.filter(
            pk__in=list(column.chosen.values_list("pk", flat=True))
        ).update(**{column.field: planted(column)})
    names = {column.name for column in columns}
    assert holding(columns) == names

    forget(world, "memory", key)

    assert holding(columns) == set()
    assert {tuple(name.split(".")) for name in names} <= swept_columns()


def plant(table: str, column: str) -> bool:
    """Put the text into a column of every row; False where PostgreSQL works the column out."""
    with connection.cursor() as cursor:
        cursor.execute(TYPE, [table, column])
        kind, longest, generated = cursor.fetchone()
        if generated == "ALWAYS":
            return False
        template = PLANTS.get(kind, "%s")
        names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
        query = sql.SQL("UPDATE {table} SET {column} = " + template).format(**names)
        cursor.execute(query, [FACT[:longest]] * template.count("%s"))
        assert cursor.rowcount, f"there is no row in {table}"
    return True


def holds(table: str, column: str) -> bool:
    query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE {}::text LIKE %s)")
    with connection.cursor() as cursor:
        names = (sql.Identifier(table), sql.Identifier(column))
        cursor.execute(query.format(*names), [f"%{BEGINNING}%"])
        return bool(cursor.fetchone()[0])


def test_every_other_swept_column_goes_with_its_row(world: World) -> None:
    chat = world.chat(CLIENT)
    stays = {tuple(column.name.split(".")) for column in staying(world)}
    of_answers = {("sessions_app_message", "content")}
    columns = [each for each in sorted(swept_columns() - stays | of_answers) if plant(*each)]
    assert len(columns) > 25
    assert [each for each in columns if not holds(*each)] == []

    forget(world, "chat", chat.pk)

    assert [each for each in columns if holds(*each)] == []
    assert not Message.objects.exists()


@pytest.fixture(autouse=True)
def _one_connection_at_the_end() -> Iterator[None]:
    yield
    connection.close()
