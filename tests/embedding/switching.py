"""A switch of the embedding model under load: processes recall, one adds, one is killed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from tests.embedding.reader import ADDED_LATER, OLD
from tests.loopback.openai_behaviours import slow
from tests.loopback.openai_server import OpenAIServer
from tests.processes.database import Database
from tests.processes.installation import Installation, family, kill
from tests.processes.waiting import wait_until

FILL = """
from tests.embedding.reader import fact
from tests.memories.bulk import memories_store
from django.db import connection
for start in range(0, {count}, 5000):
    memories_store([fact(number) for number in range(start, min(start + 5000, {count}))])
connection.cursor().execute("VACUUM ANALYZE")
"""
ADD = """
import time
from pathlib import Path
from memories_app.facts.validation import NewMemory
from memories_app.store.remember import memory_remember
from sessions_app.embedding.choice import embedder
added = 0
while not (Path({folder!r}) / "stop").exists():
    new = NewMemory(content=f"{added_later} {{added}}", visibility="owner")
    memory_remember(new, embedder=embedder())
    added += 1
    time.sleep(0.05)
print(added)
"""


class Switching:
    """An installation with ``count`` memories of the old model. new: the model to go to, as
    --model has it; its id."""

    def __init__(
        self, folder: Path, server: OpenAIServer, count: int, new: str, new_id: str
    ) -> None:
        self.folder = folder
        self.server = server
        self.count = count
        self.new = new
        self.new_id = new_id
        self.installation = Installation(
            folder,
            ENABLE_MEMORY_SYSTEM="true",
            DJANGO_SETTINGS_MODULE="memoryproject.settings",
            EMBEDDER="wordllama",
            OPENAI_BASE_URL=server.base_url,
        )
        self.database = Database(self.installation.data_dir)
        self._postgres = EmbeddedPostgres(self.installation.data_dir)

    def prepare(self) -> None:
        self.installation.prepare()
        # Held by this process, too, or it would stop between two commands.
        self._postgres.ensure_running()
        self.run("shell", "-v", "0", "-c", FILL.format(count=self.count))
        self.run("memories_reembed", "--init")

    def run(self, *arguments: str) -> str:
        """A command of manage.py, however long it takes; what it printed."""
        ended = self.installation.attempt(*arguments, seconds=3_600)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def stop(self) -> None:
        self._postgres.release()
        self.installation.stop()

    def vectors(self, model: str) -> int:
        (row,) = self.database.rows(
            "SELECT count(*) AS n FROM memories_app_memoryembedding WHERE model = %s", model
        )
        return int(row["n"])

    def memories(self) -> int:
        (row,) = self.database.rows("SELECT count(*) AS n FROM memories_app_memory")
        return int(row["n"])

    def without(self, model: str) -> int:
        """How many memories have no vector of the model."""
        (row,) = self.database.rows(
            "SELECT count(*) AS n FROM memories_app_memory memory WHERE NOT EXISTS"
            " (SELECT 1 FROM memories_app_memoryembedding made"
            " WHERE made.memory_id = memory.memory_id AND made.model = %s)",
            model,
        )
        return int(row["n"])

    def active(self) -> str:
        rows = self.database.rows(
            "SELECT model_id FROM memories_app_embeddingmodel WHERE state = 'active'"
        )
        return str(rows[0]["model_id"])

    def kill_in_the_middle(self) -> None:
        """A run that is killed once it has made some vectors, and has more to make."""
        self.server.script_embeddings(*[slow(0.5)] * 10)
        run = self.installation.begin("manage.py", "memories_reembed", "--model", self.new)
        wait_until(lambda: self.vectors(self.new_id), "the first vectors", seconds=600)
        kill(family(run.process))
        assert 0 < self.vectors(self.new_id) < self.count
        assert self.active() == OLD

    @contextmanager
    def under_load(self, readers: int) -> Iterator[Counter[str]]:
        """Processes that recall and one that adds, as long as the block takes. What they saw is
        there after it: answers by model, and "added"."""
        part = min(self.count // readers, 200)
        started = [
            self.installation.begin(
                *("-m", "tests.embedding.reader", str(self.folder)),
                *(str(number * part), str((number + 1) * part), self.new),
            )
            for number in range(readers)
        ]
        adding = ADD.format(folder=str(self.folder), added_later=ADDED_LATER)
        adder = self.installation.begin("manage.py", "shell", "-v", "0", "-c", adding)
        seen: Counter[str] = Counter()
        try:
            yield seen
        finally:
            (self.folder / "stop").touch()
            ended = [each.end(300) for each in (*started, adder)]
        assert [each.returncode for each in ended] == [0] * len(ended), ended
        *answers, added = ended
        for each in answers:
            seen.update(json.loads(each.stdout))
        seen["added"] = int(added.stdout)


def switch_under_load(switching: Switching) -> Counter[str]:
    """Kill a run in the middle, run it again to its end, and tell what others saw."""
    with switching.under_load(readers=2) as seen:
        added = switching.memories()
        wait_until(lambda: switching.memories() > added, "memories come in", seconds=300)
        switching.kill_in_the_middle()
        made = switching.vectors(switching.new_id)
        done = json.loads(switching.run("memories_reembed", "--model", switching.new, "--json"))
        assert (done["model"], done["before"]) == (switching.new_id, OLD)
        assert done["memories"] <= switching.memories() - made, (
            "it goes on, and doesn't begin again"
        )
        added = switching.memories()
        wait_until(lambda: switching.memories() > added + 20, "time goes by", seconds=600)
    return seen
