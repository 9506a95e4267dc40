"""Back to a moment between two backups, by the steps of docs/operations.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.cluster import server_account
from memoryproject.foundation.embedded_postgres.places import postgres_program
from tests.processes.installation import Installation
from tests.processes.posting import cloud_text, new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

KEYS = ("postgres.password", "secret.key", "audit.key", "backup.key")


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """The other disk: the write-ahead log goes there, and belongs to the server's account."""
    with tempfile.TemporaryDirectory(prefix="wal-") as folder:
        archive = Path(folder) / "wal"
        archive.mkdir(mode=0o700)
        os.chown(archive, server_account().uid, server_account().gid)
        yield Path(folder)


def run(server: EmbeddedPostgres, program: str, *arguments: str | Path) -> str:
    """Run one of PostgreSQL's programs on the server; return what it printed."""
    command = [postgres_program(program), "-h", server.host, "-U", server.user, *arguments]
    environment = {**os.environ, "PGPASSWORD": server.password}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=120, check=True
    )
    return done.stdout.strip()


def sql(server: EmbeddedPostgres, *statements: str) -> str:
    commands = [word for each in statements for word in ("-c", each)]
    return run(server, "psql", "-d", server.database, "-qAt", *commands)


def archive_into(folder: Path, installation: Installation) -> None:
    installation.prepare()
    server = EmbeddedPostgres(installation.data_dir)
    server.ensure_running()
    sql(
        server,
        "ALTER SYSTEM SET archive_mode = on",
        f"ALTER SYSTEM SET archive_command = 'test ! -f {folder}/%f && cp %p {folder}/%f'",
        "ALTER SYSTEM SET archive_timeout = '60s'",
    )
    server.release()
    installation.start()


def put_back(base: Path, archive: Path, data_dir: Path, moment: str) -> None:
    """Make a DATA_DIR that PostgreSQL recovers to the moment when it starts."""
    data_dir.mkdir(mode=0o700)
    for name in KEYS:
        if (base.parent / name).exists():
            shutil.copy2(base.parent / name, data_dir)
    cluster = data_dir / "postgres"
    shutil.copytree(base, cluster)
    (cluster / "recovery.signal").touch()
    with (cluster / "postgresql.auto.conf").open("a") as settings:
        settings.write(
            f"restore_command = 'cp {archive}/%f %p'\n"
            f"recovery_target_time = '{moment}'\n"
            "recovery_target_action = 'promote'\n"
            "hot_standby = off\n"
            "archive_mode = off\n"
        )
    account = server_account()
    for path in (cluster, *cluster.rglob("*")):
        os.chown(path, account.uid, account.gid)
    cluster.chmod(0o700)


def test_a_moment_between_two_messages_is_recovered(elsewhere: Path) -> None:
    archive, base = elsewhere / "wal", elsewhere / "base"
    with stage(run=lambda installation: archive_into(archive, installation)) as live:
        server = EmbeddedPostgres(live.installation.data_dir)
        early, kept, late = (new_phone() for _ in range(3))
        say(live, early, "before the base backup")
        run(server, "pg_basebackup", "-D", base, "-c", "fast")
        for name in KEYS:
            if (live.installation.data_dir / name).exists():
                shutil.copy2(live.installation.data_dir / name, elsewhere)
        say(live, kept, "before the moment")
        before = {phone: live.database.messages(f"{phone}@c.us") for phone in (early, kept)}
        moment = sql(server, "SELECT clock_timestamp()")
        say(live, late, "after the moment")
        # It seals what waits, so that the log file has it.
        live.installation.manage("audit_verify")
        segment = sql(server, "SELECT pg_walfile_name(pg_switch_wal())")
        wait_until((archive / segment).exists, "the write-ahead log is on the other disk")

        live.installation.kill_everything()
        live.installation.programs.clear()
        shutil.rmtree(live.installation.data_dir)
        put_back(base, archive, live.installation.data_dir, moment)
        live.installation.start()

        for phone, messages in before.items():
            assert live.database.messages(f"{phone}@c.us") == messages
        assert live.database.messages(f"{late}@c.us") == []
        # Its log file is of a later moment than the table.
        assert live.installation.attempt("audit_verify").returncode == 1
        (live.installation.folder / "logs" / "memory_audit.log").rename(elsewhere / "later.log")
        live.installation.manage("audit_verify", "--write-log")
        live.installation.manage("audit_verify")
        # What the provider delivers again is new, and answered.
        assert live.post.cloud(cloud_text(late, "after the moment")).status_code == 200
        wait_until(lambda: len(live.graph.texts_to(late)) == 2, "the second answer")


def say(live: Stage, phone: str, text: str) -> None:
    live.post.say(phone, text)
    assert live.wait_for_answers(phone, 1) == [f"answer to: {text}"]
