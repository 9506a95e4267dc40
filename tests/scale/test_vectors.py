"""A hundred thousand memories: searched by the index, exact where that is right, and switched to
another model while they are recalled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memories_app.vector_search import index_drop, index_name
from memoryproject.foundation.integrations.embedders.model2vec_embedder import Model2VecEmbedder
from tests.embedding.clusters import MODEL, Clusters, Filled, empty, fill, index
from tests.embedding.models import WORDS, make_model
from tests.embedding.reader import OLD
from tests.embedding.switching import Switching, switch_under_load
from tests.embedding.test_nearest import plan, share_found
from tests.loopback.openai_server import OpenAIServer

pytestmark = pytest.mark.scale

TOTAL = 100_000
DIMENSIONS = 256
SIZES = (10, 100, 1_000, 4_000, 10_000, 30_000)
BY_INDEX = (10_000, 30_000, TOTAL)
FACT_WORDS = ["company", "has", "its", "office", "in", "street", "of", "haifa", "added", "later"]
DIGITS = [*"0123456789", *(f"##{digit}" for digit in "0123456789")]


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: Any) -> Iterator[Filled]:
    """Filled once; nothing is changed."""
    with django_db_blocker.unblock():
        made = fill(SIZES, TOTAL, DIMENSIONS)
        index(DIMENSIONS)
    yield made
    with django_db_blocker.unblock():
        index_drop(model_id=MODEL)
        empty()


@pytest.mark.django_db
@pytest.mark.parametrize("size", [*SIZES, TOTAL])
def test_a_filter_never_costs_results(filled: Filled, size: int) -> None:
    asking = Clusters(DIMENSIONS, seed=7)
    own = filled.vectors[filled.places[size]]
    others = filled.vectors[-40_000:]
    for questions in (asking.beside(own, 30), asking.beside(others, 30), asking.of(30)):
        assert share_found(filled, size, questions) >= 0.98


@pytest.mark.django_db
@pytest.mark.parametrize("size", [*SIZES, TOTAL])
def test_no_search_reads_everything(filled: Filled, size: int) -> None:
    found = plan(filled, size)

    assert "Seq Scan" not in found
    assert (f"Index Scan using {index_name(MODEL)}" in found) is (size in BY_INDEX)


def test_a_switch_is_not_noticed_by_who_recalls(tmp_path: Path) -> None:
    """100,000 memories: right results all the time, from one model at a time."""
    folder = make_model(tmp_path / "model", words=[*WORDS, *FACT_WORDS, *DIGITS])
    new_id = Model2VecEmbedder(folder).model_id
    with OpenAIServer() as server:
        switching = Switching(tmp_path, server, TOTAL, new=f"model2vec:{folder}", new_id=new_id)
        try:
            switching.prepare()
            seen = switch_under_load(switching)
        finally:
            switching.stop()

    assert seen[OLD] > 0
    assert seen[f"model2vec:{folder}"] > 0
    assert set(seen) == {OLD, f"model2vec:{folder}", "added"}
