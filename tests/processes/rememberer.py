"""Several processes that remember facts at once.

Run as ``python -m tests.processes.rememberer '[["FACT", …], …]'``: forks a process for each list,
lets all go at one moment, and prints the outcomes as lists in the same order.
"""

from __future__ import annotations

import json
import os
import sys
import uuid

import django

from tests.processes.forks import run_at_once


def main(lists: list[list[str]]) -> list[list[str]]:
    from memories_app.facts.validation import NewMemory  # noqa: PLC0415
    from memories_app.store.remember import memory_remember  # noqa: PLC0415
    from sessions_app.embedding.choice import embedder as build_embedder  # noqa: PLC0415

    embedder = build_embedder()
    embedder.embed(["warm"])

    def remember(facts: list[str]) -> list[str]:
        return [
            memory_remember(
                NewMemory(
                    content=fact,
                    visibility="owner",
                    source="command",
                    source_message_id=uuid.uuid4(),
                ),
                embedder=embedder,
            ).status
            for fact in facts
        ]

    return run_at_once(remember, lists)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    django.setup()
    print(json.dumps(main(json.loads(sys.argv[1]))))  # noqa: T201
