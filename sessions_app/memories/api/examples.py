"""Data of the schema's examples of memories: ``examples.json``. All of it is invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_VALUES: dict[str, Any] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
NEW: dict[str, Any] = _VALUES["new"]
MEMORY: dict[str, Any] = _VALUES["memory"]
DONE: dict[str, Any] = {"superseded": [], "merged": [], "not_applied": []}
KEYED: dict[str, Any] = {
    **MEMORY,
    "content": "theme: dark",
    "category": "",
    "tags": [],
    "metadata": {},
    "namespace": "users.42.prefs",
    "key": "theme",
    "value": {"theme": "dark"},
}
STORED = {**MEMORY, "outcome": "created", **DONE}
KNOWN = {
    **MEMORY,
    "tags": ["testcorp", "payments"],
    "told_count": 2,
    "outcome": "duplicate",
    **DONE,
    "merged": ["tags"],
}
ONE = {**MEMORY, "revisions": [_VALUES["revision"]]}
BATCH: list[dict[str, Any]] = _VALUES["batch"]
RECALLED: dict[str, Any] = _VALUES["recalled"]
SAID: dict[str, Any] = _VALUES["said"]
IMPORTED: dict[str, Any] = _VALUES["imported"]
