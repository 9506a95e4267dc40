"""Everything that is stored, as text: the whole database by pg_dump, the logs, and every file
under the data folder that isn't PostgreSQL's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.conf import settings
from django.db import connection
from pgvector import Vector

from memories_app.models import MemoryEmbedding
from memoryproject.foundation.embedded_postgres.places import postgres_program
from sessions_app.models import MessageEmbedding

PG_DUMP = postgres_program("pg_dump")


def everything() -> str:
    """The dump and the files, one after the other."""
    return "\n".join([_database(), *_files()])


def fragments_of(text: str) -> list[str]:
    """The text itself, its halves, and every run of four words in it."""
    words = text.split()
    runs = [" ".join(words[start : start + 4]) for start in range(max(1, len(words) - 3))]
    return [text, text[: len(text) // 2], text[len(text) // 2 :], *runs]


def left_of(texts: Sequence[str], whole: Sequence[str] = ()) -> list[str]:
    """The fragments of these texts that are still stored anywhere, and what is looked for as
    a whole: vectors, and other wordings."""
    stored = everything()
    wanted = [fragment for text in texts for fragment in fragments_of(text)]
    return [fragment for fragment in [*wanted, *whole] if fragment in stored]


def vectors_of(*ids: object) -> list[str]:
    """The stored vectors of memories and messages, as a dump shows their beginning."""
    found = [
        *MemoryEmbedding.objects.filter(memory_id__in=ids).values_list("vector", flat=True),
        *MessageEmbedding.objects.filter(message_id__in=ids).values_list("vector", flat=True),
    ]
    assert found, "there is no vector to look for"
    with connection.cursor() as cursor:
        shown = []
        for vector in found:
            cursor.execute("SELECT %s::vector::text", [Vector(vector).to_text()])
            shown.append(",".join(cursor.fetchone()[0].strip("[]").split(",")[:8]))
    return shown


def _database() -> str:
    client = connection.client
    psql, environment = client.settings_to_cmd_args_env(connection.settings_dict, [])
    arguments = [str(PG_DUMP), *psql[1:]]
    environment = {**os.environ, **(environment or {})}
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _files() -> Iterator[str]:
    for folder in (settings.LOG_DIR, settings.DATA_DIR):
        for path in Path(folder).rglob("*"):
            if path.is_file() and "postgres" not in path.relative_to(folder).parts[0]:
                yield path.read_text(errors="replace")
