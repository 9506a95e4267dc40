"""A look into an installation's database, past its own code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres

OPEN_STATES = ("pending", "running", "replied", "sending")


class Database:
    """Each look is a connection of its own, so that the server may be killed in between."""

    def __init__(self, data_dir: Path) -> None:
        self._server = EmbeddedPostgres(data_dir)

    def connect(self, *, autocommit: bool = False) -> psycopg.Connection[Any]:
        server = self._server
        return psycopg.connect(
            host=server.host,
            port=server.port,
            user=server.user,
            password=server.password,
            dbname=server.database,
            autocommit=autocommit,
        )

    @contextmanager
    def locked(self, table: str, column: str, value: str) -> Iterator[None]:
        """Hold the rows with this value, as a transaction does that is slow."""
        with self.connect() as connection:
            query = sql.SQL("SELECT FROM {} WHERE {} = %s FOR UPDATE")
            names = (sql.Identifier(table), sql.Identifier(column))
            connection.execute(query.format(*names), [value])
            yield
            connection.rollback()

    def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        with self.connect(autocommit=True) as connection:
            cursor = connection.cursor(row_factory=dict_row).execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def messages(self, whatsapp_chat: str) -> list[dict[str, Any]]:
        """All messages of a chat, by session and order."""
        return self.rows(
            "SELECT message.* FROM sessions_app_message message"
            " JOIN sessions_app_chatsession session USING (session_id)"
            " JOIN sessions_app_chat chat ON chat.id = message.chat_id"
            " WHERE chat.whatsapp_chat = %s ORDER BY session.created_at, message.order_num",
            whatsapp_chat,
        )

    def turns(self, whatsapp_chat: str) -> list[dict[str, Any]]:
        """All turns of a chat, oldest first."""
        return self.rows(
            "SELECT turn.*, replay.summary_id FROM sessions_app_turn turn"
            " LEFT JOIN sessions_app_turnreplay replay ON replay.turn_id = turn.id"
            " JOIN sessions_app_chat chat ON chat.id = turn.chat_id"
            " WHERE chat.whatsapp_chat = %s ORDER BY turn.id",
            whatsapp_chat,
        )

    def parts(self, whatsapp_chat: str) -> list[dict[str, Any]]:
        """What was handed to the provider in a chat, oldest first."""
        return self.rows(
            "SELECT part.* FROM sessions_app_outboundpart part"
            " JOIN sessions_app_turn turn ON turn.id = part.turn_id"
            " JOIN sessions_app_chat chat ON chat.id = turn.chat_id"
            " WHERE chat.whatsapp_chat = %s ORDER BY turn.id, part.number",
            whatsapp_chat,
        )

    def states(self, whatsapp_chat: str) -> list[str]:
        return [turn["state"] for turn in self.turns(whatsapp_chat)]

    def is_over(self, whatsapp_chat: str) -> bool:
        """Whether no turn of the chat waits for anything any more."""
        return not set(self.states(whatsapp_chat)) & set(OPEN_STATES)

    def tables_with(self, text: str) -> list[str]:
        """The tables of which a row, in any column, holds this text."""
        names = self.rows("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
        each = " UNION ALL ".join(
            f"SELECT '{table['name']}' AS name WHERE EXISTS"
            f' (SELECT 1 FROM "{table["name"]}" found WHERE found::text LIKE %s)'
            for table in names
        )
        return [found["name"] for found in self.rows(each, *[f"%{text}%"] * len(names))]
