"""kill -9 in the middle of a backup or a restore: as if it had run once, or not at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.processes.command_server import REPOSITORY
from tests.processes.database import Database
from tests.processes.installation import Installation, kill, prepared
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

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


@dataclass(frozen=True)
class Recovered:
    """A full installation, and an empty one to restore into."""

    full: Installation
    empty: Installation
    archive: Path

    def database(self, installation: Installation) -> Database:
        return Database(installation.data_dir)


@pytest.fixture
def recovered(tmp_path: Path) -> Iterator[Recovered]:
    key = {"BACKUP_KEY": "of both"}
    with prepared(tmp_path / "full", **key) as full, prepared(tmp_path / "empty", **key) as empty:
        yield Recovered(full, empty, tmp_path / "all.zip")


def start(installation: Installation, *arguments: str) -> psutil.Popen:
    return psutil.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=REPOSITORY,
        env=installation.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_while_copying(database: Database, process: psutil.Popen, command: str) -> None:
    """kill -9 as soon as PostgreSQL is seen copying."""
    wait_until(
        lambda: database.rows(COPYING, command) or process.poll() is not None,
        "the rows are being copied",
        longest_pause=0.01,
    )
    assert process.poll() is None, "it was over before it could be killed"
    kill([process])
    process.wait()
    wait_until(lambda: not database.rows(COPYING, command), "PostgreSQL gives up the copy")


def test_a_killed_restore_leaves_the_database_empty_and_a_second_one_succeeds(
    recovered: Recovered,
) -> None:
    full, empty = map(recovered.database, (recovered.full, recovered.empty))
    full.rows(FILL)
    before = full.rows(CONTENT)
    recovered.full.manage("backup", str(recovered.archive))

    process = start(recovered.empty, "restore", str(recovered.archive), "--without-keys")
    kill_while_copying(empty, process, "COPY FROM")
    for table in ("sessions_app_chat", "sessions_app_message"):
        assert empty.rows(f"SELECT count(*) AS rows FROM {table}") == [{"rows": 0}]

    recovered.empty.manage("restore", str(recovered.archive), "--without-keys")
    assert empty.rows(CONTENT) == before


def test_a_killed_backup_leaves_no_file_under_its_name(recovered: Recovered) -> None:
    full = recovered.database(recovered.full)
    full.rows(FILL)
    process = start(recovered.full, "backup", str(recovered.archive))
    kill_while_copying(full, process, "COPY TO")
    assert not recovered.archive.exists()
    recovered.full.manage("backup", str(recovered.archive))
    recovered.full.manage("backup", str(recovered.archive), "--verify")
