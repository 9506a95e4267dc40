"""What the registry calls swept is: whichever column holds the text, forgetting takes it out, by
cutting it or with its row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import JSONField, Model, QuerySet
from django.utils import timezone
from django_q.models import OrmQ, Task
from django_q.signing import SignedPackage
from psycopg import sql

from memories_app.models import Memory, MergeProposal, SourceDocument
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from sessions_app.cards.make_cards import card_make
from sessions_app.forgetting.redact_answers import TURN_TEXTS
from sessions_app.forgetting.registry import swept_columns
from sessions_app.models import (
    AnswerTrial,
    CheckQuestion,
    ContactMerge,
    ExtractionWork,
    InboundDelivery,
    Message,
    Note,
    OutboundPart,
    SummarizationMetadata,
    Turn,
    TurnReplay,
)
from tests.remembering import memory_update
from tests.world import CLIENT, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

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
def world(world: World) -> World:
    """A chat with a row in every table from which texts are swept."""
    world.summarizing(every=2)
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "Good morning to you all")
    world.say(CLIENT, "How are you today")
    world.sum_up(CLIENT)
    card_make(session_id=world.session(CLIENT).pk)
    now, chat = timezone.now(), world.chat(CLIENT)
    Note.objects.create(chat=chat, author_name="dana", created_at=now, text="-")
    ContactMerge.objects.create(chat=chat, gone_id=uuid4(), merged_at=now, merged_by="dana")
    ExtractionWork.objects.get_or_create(turn=Turn.objects.latest("id"))
    AnswerTrial.objects.create(turn=Turn.objects.latest("id"), created_at=now)
    InboundDelivery.objects.create(provider="cloud", delivery_key="nobody's", raw={})
    CheckQuestion.objects.create(text="-", expected="-")
    SourceDocument.objects.create(name="-", size=1, sha256="-", chat_id=chat.pk, visibility="chat")
    memory_update(
        memory_id=Memory.objects.get().pk,
        tags=["pool"],
        actor=SYSTEM,
        embedder=world.dependencies.embedder,
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


# The columns of rows that stay when a memory is forgotten. All of these answers were given it.
STAYING: dict[type[Model], tuple[str, ...]] = {
    Message: ("content",),
    Turn: TURN_TEXTS,
    TurnReplay: ("prompt", "recalled", "left_out"),
    AnswerTrial: ("system_text", "text", "recalled", "error"),
    SummarizationMetadata: ("digest", "chapter"),
    OutboundPart: ("content",),
    Note: ("text",),
    ExtractionWork: ("error",),
    InboundDelivery: ("raw", "change"),
    Task: ("args", "kwargs", "result"),
    OrmQ: ("payload",),
    LogEntry: ("object_repr", "change_message"),
    Session: ("session_data",),
    IdempotentAnswer: ("body",),
}


def rows_of(model: type[Model]) -> QuerySet[Any]:
    """The rows that are ours: what people themselves say stays."""
    rows = model._default_manager.all()
    if model is Message:
        return rows.filter(role__in=["assistant", "summary"])
    # The turn of the message that goes is not among them.
    return rows.exclude(turn__message__content__startswith="/") if model is TurnReplay else rows


def planted(model: type[Model], field: str) -> Any:
    """The text as a value of this column."""
    if model is OrmQ:
        return SignedPackage.dumps({"id": "a", "args": (FACT,)})
    if model is Session:
        return SessionStore().encode({"_messages": FACT})
    if not isinstance(model._meta.get_field(field), JSONField):
        return FACT
    if field in ("prompt", "recalled"):
        return [{"role": "assistant", "id": "-", "content": FACT}]
    return {"passage" if field == "left_out" else "content": FACT}


def holding() -> set[tuple[str, str]]:
    """Of these columns those in which the text stands."""
    return {
        (model._meta.db_table, field)
        for model, fields in STAYING.items()
        for row in rows_of(model)
        for field in fields
        if FACT in str(_read(row, field))
    }


def _read(row: Any, field: str) -> Any:
    if isinstance(row, OrmQ):
        return row.task
    return row.get_decoded() if isinstance(row, Session) else getattr(row, field)


def test_a_text_is_taken_out_of_every_column_whose_row_stays(world: World) -> None:
    key = Memory.objects.get().pk
    for model, fields in STAYING.items():
        for field in fields:
            rows_of(model).update(**{field: planted(model, field)})
    names = {(model._meta.db_table, field) for model, fields in STAYING.items() for field in fields}
    assert holding() == names

    world.forget("memory", key)

    assert holding() == set()
    assert names <= swept_columns()


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
    stays = {(model._meta.db_table, name) for model, names in STAYING.items() for name in names}
    of_answers = {("sessions_app_message", "content")}
    columns = [each for each in sorted(swept_columns() - stays | of_answers) if plant(*each)]
    assert len(columns) > 25
    assert [each for each in columns if not holds(*each)] == []

    world.forget("chat", chat.pk)

    assert [each for each in columns if holds(*each)] == []
    assert not Message.objects.exists()
