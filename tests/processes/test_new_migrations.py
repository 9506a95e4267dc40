"""A deployment under traffic: the next version's migrations run beside this version's processes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest

from tests.processes.command_server import REPOSITORY
from tests.processes.conftest import everything
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage

pytestmark = pytest.mark.processes

TALKERS = 2
PAUSE_SECONDS = 0.05
# What the next version's migrations may do: they only add.
NEXT = """
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("sessions_app", "LAST")]
    operations = [
        migrations.AddField(
            "message", "mood", models.CharField(max_length=20, default="", db_default="")
        ),
        migrations.AddField("turn", "steps", models.IntegerField(default=0, db_default=0)),
        migrations.AddField("chat", "birthday", models.DateField(null=True)),
        migrations.CreateModel(
            "Mood",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("chat", models.ForeignKey("sessions_app.Chat", models.CASCADE)),
            ],
        ),
        AddIndexConcurrently("message", models.Index(fields=["mood", "chat"], name="by_mood")),
    ]
"""
MIGRATE = """
import django
from django.conf import settings
from django.core.management import call_command
settings.MIGRATION_MODULES = {"sessions_app": "next_migrations"}
django.setup()
call_command("migrate", verbosity=0)
"""


def next_version(folder: Path) -> None:
    """Write the next version's migrations of sessions_app."""
    package = folder / "next_migrations"
    package.mkdir()
    (package / "__init__.py").touch()
    ours = sorted((REPOSITORY / "sessions_app" / "migrations").glob("[0-9]*.py"))
    for each in ours:
        (package / each.name).write_text(each.read_text())
    (package / "9999_next.py").write_text(NEXT.replace("LAST", ours[-1].stem))


def migrate(live: Stage, folder: Path) -> None:
    paths = [str(folder), str(REPOSITORY)]
    subprocess.run(
        [sys.executable, "-c", MIGRATE],
        cwd=REPOSITORY,
        env={
            **live.installation.environment,
            "DJANGO_SETTINGS_MODULE": "memoryproject.settings",
            "PYTHONPATH": os.pathsep.join(paths),
        },
        check=True,
        timeout=120,
    )


def test_new_migrations_beside_old_processes_lose_nothing(tmp_path: Path) -> None:
    next_version(tmp_path)
    with (
        stage(run=everything, CLIENT_MESSAGES_PER_HOUR="0", CLIENT_TOKENS_PER_DAY="0") as live,
        ThreadPoolExecutor(TALKERS) as pool,
        ExitStack() as stack,
    ):
        migrated = Event()
        stack.callback(migrated.set)

        def talk() -> list[str]:
            """One person writes until it is over, and once more; returns the answers."""
            phone, said = new_phone(), 0
            while not said or not migrated.wait(PAUSE_SECONDS):
                said += 1
                live.post.say(phone, f"number {said}")
                live.wait_for_answers(phone, said)
            live.post.say(phone, "afterwards")
            return live.wait_for_answers(phone, said + 1)

        talkers = [pool.submit(talk) for _ in range(TALKERS)]
        migrate(live, tmp_path)
        stack.close()
        for talker in talkers:
            *before, last = talker.result()
            assert before == [f"answer to: number {place}" for place in range(1, len(before) + 1)]
            assert before
            assert last == "answer to: afterwards"
        moods = live.database.rows("SELECT mood FROM sessions_app_message")
        assert {row["mood"] for row in moods} == {""}
        assert live.installation.answer("/readyz") == 200
