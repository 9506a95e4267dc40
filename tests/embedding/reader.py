"""One of several processes that recall again and again, whatever happens to the embeddings.

Run as ``python -m tests.embedding.reader FOLDER FIRST LAST MODEL``: asks for the facts of those
numbers until a file named "stop" is in the folder, then prints how many answers the old model
gave, and MODEL. Ends with 1 and the reason where an answer was wrong.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import django

OPENAI = "openai:text-embedding-3-small"
OLD = "wordllama-256"
EXACT = 1e-3
# What else goes on at the same time needs the processors, too.
PAUSE_SECONDS = 0.03
ADDED_LATER = "added later"


def fact(number: int) -> str:
    return f"Company {number} has its office in street {number * 7} of Haifa"


def main(folder: Path, first: int, last: int, new: str) -> dict[str, int]:
    """How many answers each model gave."""
    from sessions_app.embedding.choice import embedder  # noqa: PLC0415 imports models
    from sessions_app.recall.facade import MEMORIES, Viewer, recall  # noqa: PLC0415

    seen: Counter[str] = Counter()
    number = first
    while not (folder / "stop").exists():
        asked = fact(number)
        current = embedder()
        result = recall(
            query=asked,
            viewer=Viewer(user_role="godfather"),
            embedder=current,
            sources=[MEMORIES],
            min_similarity=0.0,
        )
        assert not result.degraded, "a part of memory could not be searched"
        assert result.hits, asked
        assert result.hits[0].content == asked, (asked, result.hits[0])
        assert len(result.hits) == 5, result.hits
        seen[model_of(asked, result.hits, new)] += 1
        number = first + (number + 1 - first) % (last - first)
        time.sleep(PAUSE_SECONDS)
    return dict(seen)


def model_of(asked: str, found: list[Any], new: str) -> str:
    """The one model whose cosines all of the hits have.

    One memory may have none: it was being added right when the model was switched, and is found
    by its words until its vector is made up for.
    """
    from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder  # noqa: PLC0415

    hits = [
        hit
        for hit in found
        if hit.similarity is not None or not hit.content.startswith(ADDED_LATER)
    ]
    assert len(hits) >= len(found) - 1, found
    texts = [asked, *(hit.content for hit in hits)]
    vectors = {OLD: WordLlamaEmbedder().embed(texts), new: embedded(new, texts)}
    fitting = [
        model
        for model, (question, *others) in vectors.items()
        if all(
            hit.similarity is not None and abs(cosine(question, other) - hit.similarity) < EXACT
            for hit, other in zip(hits, others, strict=True)
        )
    ]
    assert len(fitting) == 1, (fitting, [hit.similarity for hit in hits])
    return fitting[0]


def embedded(model: str, texts: list[str]) -> list[list[float]]:
    """What the model gives, the loopback server's without asking it."""
    from sessions_app.embedding import choice  # noqa: PLC0415
    from tests.doubles.hashing_embedder import hashed_words  # noqa: PLC0415

    if model == OPENAI:
        return [hashed_words(text, 1536) for text in texts]
    kind, _, name = model.partition(":")
    return choice.made_for(choice.choice(kind, name), None, 1.0).embed(texts)


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    django.setup()
    seen = main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    print(json.dumps(seen))  # noqa: T201
