"""Which embedding model recall uses: the one in the database, whatever the settings say."""

from __future__ import annotations

import logging
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import ERROR, WARNING
from django.core.management import CommandError, call_command

from memories_app.models import EmbeddingModel, Memory, MemoryEmbedding
from memories_app.vector_search import index_state
from memoryproject.foundation.integrations.embedders.base import EmbedderError, WrongDimensionsError
from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder
from sessions_app.conversations.phrases import text_for
from sessions_app.embedding import choice
from sessions_app.embedding.checks import embedder_fits_the_database, embedder_problems
from sessions_app.embedding.choice import embedder
from sessions_app.recall.facade import MEMORIES, Viewer, recall
from tests.embedding.models import make_model
from tests.loopback.openai_behaviours import fails
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.test_openai_embedder import with_vector
from tests.remembering import remember
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

FACT = "TestCorp owes me an invoice"
OWNER = Viewer(user_role="godfather")


def active() -> EmbeddingModel:
    return EmbeddingModel.objects.get(state="active")


def row(model_id: str, **changes: Any) -> EmbeddingModel:
    values: dict[str, Any] = {
        "kind": "wordllama",
        "dimensions": 256,
        "calibration_midpoint": 0.3,
        "calibration_slope": 10.0,
        "state": "active",
        **changes,
    }
    return EmbeddingModel.objects.create(model_id=model_id, **values)


def test_ac_memory_005_a_fresh_installation_gets_its_model_and_index() -> None:
    """AC-MEMORY-005: made at the start, with cosine as its distance."""
    assert not EmbeddingModel.objects.exists()

    call_command("memories_reembed", init=True, stdout=StringIO())

    model = active()
    assert (model.model_id, model.dimensions, model.distance) == ("wordllama-256", 256, "cosine")
    assert model.activated_at is not None
    assert index_state(model.model_id).valid


def test_edge_010_what_is_there_is_used_and_verified(caplog: pytest.LogCaptureFixture) -> None:
    """EDGE-010: the model and the index of a run before are used, with an INFO."""
    call_command("memories_reembed", init=True, stdout=StringIO())
    before = active()

    with caplog.at_level(logging.INFO):
        call_command("memories_reembed", init=True, stdout=StringIO())
        call_command("memories_reembed", stdout=StringIO())

    assert active() == before
    assert EmbeddingModel.objects.count() == 1
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.INFO]
    assert "The embedding model wordllama-256 is in use already." in told


def test_edge_010_other_dimensions_than_recorded_are_refused() -> None:
    """EDGE-010: its metadata must match."""
    row("wordllama-256", dimensions=512)

    with pytest.raises(CommandError, match="256 numbers where 512 belong"):
        call_command("memories_reembed", stdout=StringIO())


def test_other_settings_leave_the_model_in_use_and_are_warned_of(
    settings: Any, use_openai: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMBEDDER = "wordllama"
    remember(FACT)
    settings.EMBEDDER = "openai"

    used = embedder()
    embedder()

    (hit,) = recall(query="TestCorp's invoice", viewer=OWNER, embedder=used).hits
    assert used.model_id == "wordllama-256"
    assert hit.similarity is not None
    assert use_openai.embedding_bodies == []
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == 1, "once, not with each message"
    assert "openai:text-embedding-3-small" in warnings[0]
    assert "memories_reembed" in warnings[0]
    (found,) = embedder_problems()
    assert (found.level, found.id) == (WARNING, "memory.W006")
    assert "memories_reembed" in (found.hint or "")


def test_err_memory_001_a_model_that_cannot_be_used_leaves_words_and_says_so(
    settings: Any, world: World, use_openai: OpenAIServer
) -> None:
    """ERR-MEMORY-001: the answer is made without the vectors, with the notice; what needs the
    model says that it failed; nothing else stops."""
    remember(FACT, visibility="public")
    settings.EMBEDDER = "wordllama"
    settings.OPENAI_API_KEY = ""
    settings.OPENAI_BASE_URL = "https://api.openai.com/v1"
    world.use(embedder=embedder())

    (answer,) = world.say(CLIENT, "What about TestCorp's invoice?")

    assert FACT in world.prompt()[0].content, "found by its words"
    assert text_for("memory_unavailable", "en") in answer
    (refused,) = world.say(CLIENT, "/remember something")
    assert refused == text_for("remember_failed", "en")
    (found,) = embedder_problems()
    assert found.level == WARNING
    assert "OPENAI_API_KEY" in found.msg


def test_err_memory_001_no_server_at_the_first_start(settings: Any) -> None:
    """ERR-MEMORY-001: nothing is recorded that isn't known, and it is tried again."""
    settings.EMBEDDER = "openai"
    settings.EMBEDDING_MODEL = "a-model-of-unknown-size"
    settings.OPENAI_API_KEY = ""

    used = embedder()

    with pytest.raises(EmbedderError, match="OPENAI_API_KEY"):
        used.embed(["text"])
    assert not EmbeddingModel.objects.exists()
    settings.EMBEDDER = "wordllama"
    assert embedder().model_id == "wordllama-256"


def test_err_memory_002_embedding_is_tried_four_times_after_1_2_and_4_seconds(
    server: OpenAIServer,
) -> None:
    """ERR-MEMORY-002."""
    waited: list[float] = []
    embedder = OpenAIEmbedder(
        api_key="", base_url=server.base_url, model="text-embedding-3-small", sleep=waited.append
    )
    server.script_embeddings(*[fails(500)] * 4)

    with pytest.raises(EmbedderError):
        embedder.embed(["text"])

    assert waited == [1.0, 2.0, 4.0]
    assert len(server.embedding_bodies) == 4


def test_recall_goes_by_the_rows_calibration() -> None:
    used = embedder()
    remember("A dog sleeps in the office", embedder=used)

    def score() -> float:
        question = "Which animal rests at work?"
        found = recall(
            query=question,
            viewer=OWNER,
            embedder=embedder(),
            sources=[MEMORIES],
            min_similarity=0.0,
        )
        return found.hits[0].score

    as_made = score()
    EmbeddingModel.objects.update(calibration_midpoint=0.95)
    assert score() < as_made


def test_vectors_of_another_size_are_never_stored(settings: Any, use_openai: OpenAIServer) -> None:
    """The server's model was changed under the same name."""
    settings.EMBEDDING_MODEL = "local-model"
    remember(FACT)
    EmbeddingModel.objects.update(dimensions=768)

    with pytest.raises(WrongDimensionsError, match="768 belong"):
        remember("other")

    assert Memory.objects.count() == MemoryEmbedding.objects.count() == 1


def test_other_dimensions_stop_the_start(settings: Any, use_openai: OpenAIServer) -> None:
    settings.EMBEDDING_MODEL = "local-model"
    row("openai:local-model", kind="openai", name="local-model", dimensions=768)

    (found,) = embedder_fits_the_database(databases=["default"])

    assert found.level == ERROR
    assert "EMBEDDING_MODEL" in found.msg
    assert "have 768 dimensions, but it gives 384 now" in found.msg
    assert "OPENAI_BASE_URL" in (found.hint or "")
    with pytest.raises(CommandError, match="768 dimensions"):
        call_command("check", databases=["default"])


def test_a_known_models_other_dimensions_stop_the_start(use_openai: OpenAIServer) -> None:
    row(
        "openai:text-embedding-3-small",
        kind="openai",
        name="text-embedding-3-small",
        dimensions=1536,
    )
    use_openai.script_embeddings(with_vector([0.6, 0.8]))

    (found,) = embedder_problems()

    assert (found.level, found.id) == (ERROR, "memory.E005")
    assert "it gives 2 now" in found.msg


def test_another_model2vec_folder_under_the_same_name(settings: Any, tmp_path: Path) -> None:
    """Of other dimensions: the start is stopped. Of the same: the other is not mixed in."""
    settings.EMBEDDER = "model2vec"
    settings.EMBEDDING_MODEL = make_model(tmp_path / "model")
    first = embedder()
    assert embedder_problems() == []

    make_model(tmp_path / "model", seed=2)
    choice._model2vec.cache_clear()
    (found,) = embedder_problems()
    assert found.level == WARNING
    assert "another model now" in found.msg
    with pytest.raises(EmbedderError, match="memories_reembed"):
        embedder().embed(["dog"])
    assert embedder().model_id == first.model_id

    make_model(tmp_path / "model", dimensions=16)
    choice._model2vec.cache_clear()
    (found,) = embedder_problems()
    assert found.level == ERROR
    assert "have 32 dimensions, but it gives 16 now" in found.msg


def test_a_server_that_is_down_stops_nothing(settings: Any, use_openai: OpenAIServer) -> None:
    embedder()
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"

    (found,) = embedder_problems()

    assert (found.level, found.id) == (WARNING, "memory.W007")
