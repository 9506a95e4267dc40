"""The OpenAI embedder, through HTTP, against a server that misbehaves on demand."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder
from tests.doubles.hashing_embedder import hashed_words
from tests.loopback.openai_behaviours import Behaviour, Json, changed, fails, quota_exceeded
from tests.loopback.openai_server import OpenAIServer

MakeEmbedder = Callable[..., OpenAIEmbedder]


def with_data(change: Callable[[list[Json]], object]) -> Behaviour:
    def changed_body(body: Json) -> Json:
        return {**body, "data": change(body["data"])}

    return changed(changed_body)


def with_vector(vector: object) -> Behaviour:
    return with_data(lambda data: [{**item, "embedding": vector} for item in data])


def inputs(server: OpenAIServer) -> list[list[str]]:
    return [body["input"] for body in server.embedding_bodies]


def test_one_unit_vector_a_text_in_order(server: OpenAIServer, make_embedder: MakeEmbedder) -> None:
    embedder: Embedder = make_embedder()
    texts = ["first one", "second two", "שלום third"]
    vectors = embedder.embed(texts)
    assert (embedder.model_id, embedder.dimensions) == ("openai:text-embedding-3-small", 1536)
    for text, vector in zip(texts, vectors, strict=True):
        assert vector == pytest.approx(hashed_words(text, 1536), abs=1e-6)
        assert math.hypot(*vector) == pytest.approx(1.0)
    assert server.embedding_bodies[0]["encoding_format"] == "base64"


def test_the_index_decides_not_the_place(server: OpenAIServer, make_embedder: MakeEmbedder) -> None:
    server.script_embeddings(with_data(lambda data: data[::-1]))
    vectors = make_embedder().embed(["a", "b", "c"])
    assert vectors == make_embedder().embed(["a", "b", "c"])


def test_a_server_that_ignores_base64_and_length_one(
    server: OpenAIServer, make_embedder: MakeEmbedder
) -> None:
    server.script_embeddings(with_vector([3.0, 4.0]))
    assert make_embedder("local-model").embed(["a"]) == [[0.6, 0.8]]


def test_many_texts_go_in_batches(server: OpenAIServer, make_embedder: MakeEmbedder) -> None:
    texts = [f"text number {number}" for number in range(600)]
    vectors = make_embedder("local-model").embed(texts)
    assert [len(batch) for batch in inputs(server)] == [256, 256, 88]
    assert vectors[599] == pytest.approx(hashed_words(texts[599], 384), abs=1e-6)


def test_a_text_above_the_limit_is_embedded_in_pieces(
    server: OpenAIServer, make_embedder: MakeEmbedder
) -> None:
    text = "alpha " * 3000 + "omega " * 3000
    vector = make_embedder("local-model").embed(["before", text, "after"])
    pieces = inputs(server)[0]
    assert (pieces[0], "".join(pieces[1:-1]), pieces[-1]) == ("before", text, "after")
    assert vector[2] == pytest.approx(hashed_words("after", 384), abs=1e-6)
    assert math.hypot(*vector[1]) == pytest.approx(1.0)
    for word in ("alpha", "omega"):
        part = hashed_words(word, 384)
        assert sum(a * b for a, b in zip(vector[1], part, strict=True)) > 0.5


def test_blank_texts_are_not_sent(server: OpenAIServer, make_embedder: MakeEmbedder) -> None:
    embedder = make_embedder()
    assert embedder.embed(["", "  \n"]) == [[0.0] * 1536] * 2
    assert embedder.embed([]) == []
    assert server.requests == []
    assert [any(vector) for vector in embedder.embed(["", "word", " "])] == [False, True, False]
    assert inputs(server) == [["word"]]
    assert (embedder.coverage(" "), embedder.coverage("שלום")) == (0.0, 1.0)


@pytest.mark.parametrize("failure", [fails(401), fails(404), quota_exceeded()])
def test_what_cannot_pass_is_not_tried_again(
    server: OpenAIServer, make_embedder: MakeEmbedder, failure: Behaviour
) -> None:
    server.script_embeddings(failure)
    with pytest.raises(EmbedderError) as caught:
        make_embedder().embed(["a"])
    assert caught.value.permanent
    assert len(server.requests) == 1


def test_vectors_of_another_size_are_refused_for_good(
    server: OpenAIServer, make_embedder: MakeEmbedder
) -> None:
    server.script_embeddings(with_vector([1.0, 2.0]))
    with pytest.raises(EmbedderError, match="gave 2 numbers where 1536 belong") as caught:
        make_embedder().embed(["a"])
    assert caught.value.permanent


def test_the_size_of_an_unknown_model_is_learned_once(
    server: OpenAIServer, make_embedder: MakeEmbedder
) -> None:
    embedder = make_embedder("local-model")
    assert (embedder.dimensions, embedder.dimensions) == (384, 384)
    assert len(server.requests) == 1
    server.script_embeddings(with_vector([1.0]))
    with pytest.raises(EmbedderError, match="384 belong"):
        embedder.embed(["a"])


def test_shorter_vectors_are_asked_for_and_have_their_own_id(
    server: OpenAIServer, make_embedder: MakeEmbedder
) -> None:
    embedder = make_embedder("text-embedding-3-large", 256)
    assert [len(vector) for vector in embedder.embed(["a"])] == [256]
    assert embedder.model_id == "openai:text-embedding-3-large:256"
    assert server.embedding_bodies[0]["dimensions"] == 256


@pytest.mark.parametrize(
    ("model", "dimensions"),
    [
        ("text-embedding-ada-002", 512),
        ("text-embedding-3-small", 2000),
        ("text-embedding-3-small", 0),
        ("local-model", -1),
    ],
)
def test_dimensions_that_cannot_be_are_refused(
    make_embedder: MakeEmbedder, model: str, dimensions: int
) -> None:
    with pytest.raises(ValueError, match="dimensions"):
        make_embedder(model, dimensions)
