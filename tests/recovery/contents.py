"""A database with something in every corner, and what stands in it, row by row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from psycopg import sql

from memories_app.memory_documents.database_store import DatabaseStore
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.backup.restore_checks import Table, all_tables
from sessions_app.embedding.message_vectors import session_embed
from sessions_app.models import AssistantProfile, InboundDelivery, Message
from tests.remembering import remember
from tests.world import CLIENT, GODFATHER, World

TEXTS = (
    "plain",
    "",
    "שלום, מה שלומך? 🙂‍↔️ e\u0301",
    "back\\slash \\N \\n \\. \\t and a \t tab",
    "lines\nand\r\nmore\n\n",
    "\\.",
    "quotes ' \" and % $ {} ;",
    "\u2028 \ufeff \u200f \U0010ffff \x01 \x7f",
    "long " * 5_000,
)


def fill(world: World) -> None:
    """Chats, turns, summaries, vectors, memories, users, deliveries."""
    world.summarizing(4)
    for text in TEXTS:
        world.say(CLIENT, text)
    world.sum_up(CLIENT)
    world.remember(GODFATHER, "TestCorp owes me ₪5,000")
    world.say(GODFATHER, "/reset")
    for text in TEXTS:
        remember(text[:8_000] + " remembered", visibility="public", embedder=WordLlamaEmbedder())
    documents = DatabaseStore(actor=COMMAND_LINE)
    for notes in (TEXTS[2], TEXTS[3], TEXTS[7]):
        documents.save(category="context", identifier="שלום", content={"notes": notes})
    documents.archive(category="context", identifier="שלום")
    session_embed(session_id=world.session(CLIENT).pk, embedder=WordLlamaEmbedder())
    AssistantProfile.objects.create(pk=1, name="DeniDin", business_facts=TEXTS[3])
    User.objects.create_superuser("staff", password="a-password-of-tests")
    Message.objects.filter(content="plain").update(
        metadata={"deep": {"list": [1, 2.5, None, "שלום\\n"]}},
        history=[{"content": TEXTS[4], "until": "2026"}],
        edited_at=timezone.now() - timedelta(microseconds=1),
    )
    InboundDelivery.objects.update(raw={"text": TEXTS[2]})


def rows(table: Table) -> list[tuple[Any, ...]]:
    """All rows of a table, as texts, in the order of its key."""
    with connection.cursor() as cursor:
        query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
            sql.SQL(", ").join(
                sql.SQL("{}::text").format(sql.Identifier(column)) for column in table.columns
            ),
            sql.Identifier(table.name),
            sql.Identifier(table.key),
        )
        cursor.execute(query)
        return list(cursor.fetchall())


def everything() -> dict[str, list[tuple[Any, ...]]]:
    """All but what backup and restore say of themselves in the audit log."""
    found = {table.name: rows(table) for table in all_tables()}
    events = found["audit_auditevent"]
    told = {"backup.write", "backup.restore"}
    found["audit_auditevent"] = [row for row in events if not told & set(row)]
    return found


def wipe() -> None:
    """As after a fresh `migrate`."""
    with connection.cursor() as cursor:
        names = [table.name for table in all_tables() if table.name != "django_migrations"]
        tables = sql.SQL(", ").join(map(sql.Identifier, names))
        cursor.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(tables))
