"""kill -9 in the middle of a backup or a restore: as if it had run once, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memoryproject.foundation.embedded_postgres.places import is_alive
from tests.processes.database import Database
from tests.processes.installation import Installation, kill, prepared
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

KEY = {"BACKUP_KEY": "the key of both installations, x"}
MESSAGES = 60_000
FILL = f"""
INSERT INTO sessions_app_chat (id, whatsapp_chat, provider, number_id, is_group, client_name,
    client_phone, language, created_at, updated_at)
VALUES (gen_random_uuid(), '15550100123@c.us', 'cloud', '', false, '', '', '', now(), now());
INSERT INTO sessions_app_chatsession (session_id, chat_id, status, created_at, last_active,
    message_counter, total_tokens, window_start, summarized_until)
SELECT gen_random_uuid(), id, 'active', now(), now(), {MESSAGES}, 0, {MESSAGES} + 1, 0
FROM sessions_app_chat;
INSERT INTO sessions_app_message (message_id, session_id, chat_id, order_num, role, kind, content,
    sender, recipient, timestamp, received_at, tokens, was_received, delivery_status, provider,
    number_id, media, metadata, history, terms, term_count)
SELECT gen_random_uuid(), session_id, chat_id, number, 'user', 'text',
    'message ' || number || ' ' || md5(number::text), '', '', now(), now(), 10, true, '', '', '',
    '{{}}', '{{}}', '[]', '{{}}', 0
FROM sessions_app_chatsession, generate_series(1, {MESSAGES}) number;
"""
CONTENT = (
    "SELECT md5(string_agg(m::text, '|' ORDER BY order_num)) AS sum FROM sessions_app_message m"
)
COPYING = (
    "SELECT 1 AS yes FROM pg_stat_progress_copy WHERE command = %s AND tuples_processed > 1000"
)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation with many messages, which no test changes."""
    with prepared(tmp_path_factory.mktemp("full") / "it", **KEY) as made:
        Database(made.data_dir).rows(FILL)
        yield made


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Installation]:
    """One to restore into."""
    with prepared(tmp_path / "empty", **KEY) as made:
        yield made


def kill_while_copying(installation: Installation, words: Sequence[str], command: str) -> None:
    """kill -9 of manage.py with these words, as soon as PostgreSQL is seen copying."""
    database = Database(installation.data_dir)
    process = installation.start_command(*words)
    wait_until(
        lambda: database.rows(COPYING, command) or not is_alive(process),
        "the rows are being copied",
        longest_pause=0.01,
    )
    assert is_alive(process), "it was over before it could be killed"
    kill([process])
    wait_until(lambda: not database.rows(COPYING, command), "PostgreSQL gives up the copy")


def test_a_killed_restore_is_none(full: Installation, empty: Installation, tmp_path: Path) -> None:
    archive = str(tmp_path / "all.zip")
    full.manage("backup", archive)
    restore = ("restore", archive, "--without-keys")
    kill_while_copying(empty, restore, "COPY FROM")
    restored = Database(empty.data_dir)
    for table in ("sessions_app_chat", "sessions_app_message"):
        assert restored.rows(f"SELECT count(*) AS rows FROM {table}") == [{"rows": 0}]

    empty.manage(*restore)
    assert restored.rows(CONTENT) == Database(full.data_dir).rows(CONTENT)


def test_a_killed_backup_leaves_no_file_under_its_name(full: Installation, tmp_path: Path) -> None:
    archive = tmp_path / "all.zip"
    kill_while_copying(full, ("backup", str(archive)), "COPY TO")
    assert not archive.exists()
    full.manage("backup", str(archive))
    full.manage("backup", str(archive), "--verify")
