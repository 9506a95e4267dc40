"""AC-MEMORY-003: the default threshold of 0.7 on the labelled set that somebody else wrote, 273
memories and 398 questions, through the services and the database. See docs/recall.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memories_app.services.remember import NewMemory, memories_remember
from memoryproject.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.recall import MEMORIES, Viewer, recall

SET = Path(__file__).parents[2] / "benchmarks" / "data" / "blind_pairs.json"


@pytest.fixture
def labelled(db: None) -> dict[str, Any]:
    """The set, its memories stored."""
    data: dict[str, Any] = json.loads(SET.read_text(encoding="utf-8"))
    new = [NewMemory(content=text, visibility="owner") for text in data["memories"].values()]
    for start in range(0, len(new), 100):
        memories_remember(memories=new[start : start + 100], embedder=WordLlamaEmbedder())
    return data


def test_ac_memory_003_most_of_what_is_recalled_by_default_is_right(
    labelled: dict[str, Any],
) -> None:
    texts = labelled["memories"]
    right = wrong = missed = silent = 0
    for item in labelled["queries"]:
        found = recall(
            query=item["query"],
            viewer=Viewer(user_role="godfather"),
            embedder=WordLlamaEmbedder(),
            sources=[MEMORIES],
        )
        recalled = {hit.content for hit in found.hits}
        relevant = {texts[key] for key in item["relevant"]}
        right += len(recalled & relevant)
        wrong += len(recalled - relevant)
        missed += len(relevant - recalled)
        silent += not relevant and not recalled
    unanswerable = sum(not item["relevant"] for item in labelled["queries"])

    assert len(texts) >= 200
    assert len(labelled["queries"]) >= 200
    assert right / (right + wrong) >= 0.8
    assert right / (right + missed) >= 0.55
    assert silent / unanswerable >= 0.9
