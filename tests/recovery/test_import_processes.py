"""The import as a real process: killed in the middle, and twice at once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.processes.database import Database
from tests.processes.installation import Installation, kill, prepared
from tests.processes.waiting import wait_until
from tests.recovery.old_files import OldFolder, message

pytestmark = pytest.mark.processes

TABLES = {
    "chat": "SELECT whatsapp_chat, client_name, client_phone, is_group FROM sessions_app_chat",
    "address": "SELECT provider, address FROM sessions_app_chataddress",
    "session": "SELECT session_id, status, session.created_at, last_active, expired_at IS NULL AS"
    " open, total_tokens, message_counter, window_start, whatsapp_chat"
    " FROM sessions_app_chatsession session"
    " JOIN sessions_app_chat chat ON chat.id = session.chat_id",
    "message": "SELECT message_id, session_id, order_num, role, content, sender, recipient,"
    " timestamp, received_at, tokens, was_received, image_path, metadata, terms, term_count,"
    " whatsapp_chat FROM sessions_app_message message"
    " JOIN sessions_app_chat chat ON chat.id = message.chat_id",
    "vector": "SELECT message_id, model, vector::text AS vector FROM sessions_app_messageembedding",
    "turn": "SELECT id FROM sessions_app_turn",
}
WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    with (
        tempfile.TemporaryDirectory(prefix="import-") as folder,
        prepared(Path(folder), ENABLE_MEMORY_SYSTEM="true") as made,
    ):
        yield made


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> OldFolder:
    """Six sessions of three chats, the last active of each of today; 20 messages each."""
    old = OldFolder(tmp_path_factory.mktemp("old") / "sessions")
    now = datetime.now(timezone.utc)
    for number in range(6):
        chat = f"1555010020{number % 3}@c.us"
        documents = [message(place, f"text {number} {place}") for place in range(1, 21)]
        active = (now - timedelta(minutes=10 + number)).isoformat()
        old.add(documents, whatsapp_chat=chat, last_active=active)
    return old


@pytest.fixture(scope="module")
def once(installation: Installation, old: OldFolder) -> dict[str, list[str]]:
    """What is stored after an import that nothing disturbed."""
    installation.manage("sessions_import", str(old.root))
    found = state(Database(installation.data_dir))
    assert (len(found["session"]), len(found["message"]), found["turn"]) == (6, 120, [])
    return found


@pytest.fixture
def database(installation: Installation, once: dict[str, list[str]]) -> Database:
    """Empty again."""
    database = Database(installation.data_dir)
    database.rows("TRUNCATE sessions_app_chat CASCADE")
    return database


def state(database: Database) -> dict[str, list[str]]:
    """All that was imported, by value and without what each run makes anew."""
    return {name: sorted(map(str, database.rows(query))) for name, query in TABLES.items()}


def count(database: Database, table: str) -> int:
    return int(database.rows(f"SELECT count(*) FROM sessions_app_{table}")[0]["count"])


@pytest.mark.parametrize("place", ["between sessions", "inside a session", "before vectors"])
def test_killed_anywhere_and_run_again_it_is_as_if_run_once(
    installation: Installation,
    database: Database,
    old: OldFolder,
    once: dict[str, list[str]],
    place: str,
) -> None:
    with database.connect() as holder:
        hold(holder, place)
        importing = installation.begin("manage.py", "sessions_import", str(old.root))
        wait_until(lambda: database.rows(WAITING), "the import waits for the lock")
        kill([importing.process])
        # Its connection gives up only once it has got the lock and finds nobody to tell.
        holder.rollback()
    wait_until(lambda: not database.rows(WAITING), "the killed one's connection is gone")
    stored = {"between sessions": 20, "inside a session": 0, "before vectors": 20}
    assert count(database, "message") == stored[place]

    installation.manage("sessions_import", str(old.root))
    assert state(database) == once


def hold(holder: psycopg.Connection[Any], place: str) -> None:
    """Let the import wait where it is to be killed."""
    if place == "before vectors":
        holder.execute("LOCK sessions_app_messageembedding IN SHARE MODE")
    elif place == "inside a session":
        holder.execute("LOCK sessions_app_message IN SHARE MODE")
    else:
        # The address of the second session that comes in, as everybody locks it.
        key = "SELECT pg_advisory_xact_lock(('x' || left(encode(sha256(%s), 'hex'), 16))::bit(64)"
        holder.execute(f"{key}::bigint)", [b"15550100201@c.us"])


def test_two_imports_at_once_do_it_once(
    installation: Installation, database: Database, old: OldFolder, once: dict[str, list[str]]
) -> None:
    with database.connect() as holder:
        hold(holder, "inside a session")
        command = ("manage.py", "sessions_import", str(old.root))
        both = [installation.begin(*command) for _ in range(2)]
        wait_until(lambda: len(database.rows(WAITING)) == 2, "both are at the same session")
        holder.rollback()
    ended = [importing.end() for importing in both]

    assert [each.returncode for each in ended] == [0, 0], ended
    assert state(database) == once
    imported = [int(each.stdout.split("messages: ")[1].split(" ")[0]) for each in ended]
    assert sum(imported) == 120
