"""One of several processes that remember the same facts at once.

Run as ``python -m tests.processes.rememberer FACT…``: waits for a line on stdin, remembers each
fact, and prints the outcomes.
"""

from __future__ import annotations

import os
import sys
import uuid

import django


def main(facts: list[str]) -> None:
    from memories_app.services.remember import memory_remember  # noqa: PLC0415
    from sessions_app import wiring  # noqa: PLC0415 after django.setup()

    embedder = wiring.embedder()
    embedder.embed(["warm"])
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    for fact in facts:
        remembered = memory_remember(
            content=fact,
            visibility="owner",
            embedder=embedder,
            source="command",
            source_message_id=uuid.uuid4(),
        )
        print(remembered.status, flush=True)  # noqa: T201


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    django.setup()
    main(sys.argv[1:])
