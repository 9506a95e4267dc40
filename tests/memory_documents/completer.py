"""One of several programs that complete handoffs of the same name at once.

Run as ``python -m tests.memory_documents.completer ROOT NUMBER``: waits for a line on stdin,
then completes 25 handoffs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from memories_app.memory_documents.tree_store import TreeStore


def main(root: str, number: str) -> None:
    store = TreeStore(Path(root))
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    for turn in range(25):
        content = {"progress": "100%", "task": f"{number}-{turn}"}
        store.save(category="handoffs", identifier="task", content=content)


if __name__ == "__main__":
    main(*sys.argv[1:])
