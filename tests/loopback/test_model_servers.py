"""Servers of models apart: Azure's, a fallback, and what servers of embeddings accept."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from memoryproject.foundation.integrations.configured import (
    LateChatModel,
    configured_chat_model,
    configured_transcriber,
    model_server,
)
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder
from memoryproject.foundation.integrations.llm.base import (
    ChatMessage,
    ChatModelError,
    ChatRequest,
    Picture,
)
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
from memoryproject.foundation.integrations.llm.server_traits import UnsharedTraits
from memoryproject.foundation.outside_services.guards import deadline
from memoryproject.foundation.outside_services.models import OutsideService
from memoryproject.staff_site.tasks import check_models
from sessions_app.embedding.choice import Choice, made_for
from tests.loopback.quirks import (
    ANSWER,
    Json,
    Quirk,
    QuirkServer,
    Reply,
    answers,
    completion,
    does_not_alternate,
    error,
    has_pictures,
    has_system,
    refuses,
    sends,
)

pytestmark = pytest.mark.django_db
HELLO = ChatRequest([ChatMessage("user", "hello")], max_reply_tokens=50)


@pytest.fixture
def serve() -> Iterator[Callable[[Quirk], QuirkServer]]:
    with ExitStack() as stack:
        yield lambda quirk: stack.enter_context(QuirkServer(quirk))


Serve = Callable[[Quirk], QuirkServer]


# Azure, headers, further parameters.


@pytest.mark.parametrize(
    ("address", "version", "path"),
    [
        ("", "2024-10-21", "/openai/deployments/our-model/chat/completions?api-version=2024-10-21"),
        (
            "/openai/deployments/mine",
            "2024-10-21",
            "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        ),
        (
            # As the portal shows it.
            "/openai/deployments/mine/chat/completions?api-version=2024-06-01",
            "",
            "/openai/deployments/mine/chat/completions?api-version=2024-06-01",
        ),
        ("/openai/v1/", "", "/openai/v1/chat/completions"),
        ("/v1/chat/completions", "", "/v1/chat/completions"),
    ],
)
def test_addresses_as_people_copy_them(serve: Serve, address: str, version: str, path: str) -> None:
    server = serve(answers())
    model = OpenAIChatModel("k-1", server.origin + address, "our-model", api_version=version)
    assert model.complete(HELLO).text == ANSWER
    assert server.paths == [path]
    is_classic = "deployments" in path
    assert server.headers[0].get("api-key" if is_classic else "authorization") in (
        "k-1",
        "Bearer k-1",
    )


def test_headers_and_further_parameters_of_the_settings(serve: Serve, settings: Any) -> None:
    server = serve(answers())
    settings.CHAT_MODEL = "openai"
    settings.OPENAI_BASE_URL = server.url
    settings.MODEL_HEADERS = {"X-Title": "Our shop"}
    settings.MODEL_EXTRA_BODY = {"temperature": 0.3, "options": {"num_ctx": 8192}}
    assert configured_chat_model().complete(HELLO).text == ANSWER
    assert server.headers[0]["x-title"] == "Our shop"
    assert server.bodies[0]["options"] == {"num_ctx": 8192}
    assert server.bodies[0]["temperature"] == 0.3


def test_keys_are_hidden_in_errors_and_nothing_is_in_answers(serve: Serve) -> None:
    headers = [("X-Title", "Our shop"), ("X-Auth", "a-long-secret-of-ours")]
    words = "ollama and Our shop: a-long-secret-of-ours"
    model = OpenAIChatModel("ollama", serve(answers(words)).url, "m", headers=headers)
    assert model.complete(HELLO).text == words
    failing = serve(sends({"error": {"message": words, "code": 404}}))
    model = OpenAIChatModel("ollama", failing.url, "m", headers=headers)
    with pytest.raises(ChatModelError) as caught:
        model.complete(HELLO)
    assert "[key] and Our shop: [key]" in str(caught.value)


def test_each_kind_of_model_has_its_own_server(serve: Serve, settings: Any) -> None:
    chat, vectors = serve(answers()), serve(embeds())
    speech = serve(sends({"text": "hello"}))
    settings.CHAT_MODEL, settings.OPENAI_BASE_URL = "openai", chat.url
    settings.OPENAI_API_KEY = "common"
    settings.MODEL_HEADERS = {"X-Secret": "of the chat's server"}
    settings.EMBEDDING_BASE_URL, settings.EMBEDDING_API_KEY = vectors.url, "of vectors"
    settings.TRANSCRIPTION_MODEL, settings.TRANSCRIPTION_BASE_URL = "whisper", speech.url
    assert configured_chat_model().complete(HELLO).text == ANSWER
    assert made_for(Choice("openai", "e"), None, 10.0).embed(["a"])
    assert chat.headers[0]["authorization"] == "Bearer common"
    assert vectors.headers[0]["authorization"] == "Bearer of vectors"
    assert "x-secret" not in vectors.headers[0]
    assert model_server("TRANSCRIPTION").url == speech.url
    assert model_server("TRANSCRIPTION").key == "common"
    assert configured_transcriber() is not None


# The fallback.


def fallback(settings: Any, first: QuirkServer, second: QuirkServer) -> None:
    settings.CHAT_MODEL, settings.OPENAI_BASE_URL = "openai", first.url
    settings.OPENAI_FALLBACK_MODEL, settings.OPENAI_FALLBACK_BASE_URL = "second", second.url
    settings.MODEL_TIMEOUT_SECONDS = 5


def test_a_second_model_answers_where_the_first_fails(serve: Serve, settings: Any) -> None:
    first = serve(sends(error("no such key"), 401))
    second = serve(sends({**completion("From the second."), "model": "second-1"}))
    fallback(settings, first, second)
    found = configured_chat_model().complete(HELLO)
    assert (found.text, found.model) == ("From the second.", "second-1")
    # A model that is chosen for a trial has none.
    with pytest.raises(ChatModelError):
        LateChatModel("another").complete(HELLO)


def test_where_both_fail_the_first_ones_words_count(serve: Serve, settings: Any) -> None:
    first, second = serve(sends(error("first is gone"), 404)), serve(sends(error("second"), 404))
    fallback(settings, first, second)
    with pytest.raises(ChatModelError, match="first is gone"):
        configured_chat_model().complete(HELLO)
    assert len(second.bodies) == 1


def test_a_deadline_leaves_time_for_the_second(serve: Serve, settings: Any) -> None:
    first, second = serve(sends(error("busy"), 503)), serve(answers("From the second."))
    fallback(settings, first, second)
    with deadline(1.9):
        # The pause before the first one's second attempt is longer than its share.
        assert configured_chat_model().complete(HELLO).text == "From the second."
    assert (len(first.bodies), len(second.bodies)) == (1, 1)


# Traits are shared by all processes, and staff forget them.


def test_what_is_learned_is_stored_for_host_and_model(
    serve: Serve, settings: Any, admin_client: Client
) -> None:
    server = serve(refuses(has_system, "System role not supported"))
    settings.CHAT_MODEL, settings.OPENAI_BASE_URL = "openai", server.url
    settings.OPENAI_MODEL = "gemma"
    request = ChatRequest([ChatMessage("system", "Be kind."), ChatMessage("user", "hello")])
    assert configured_chat_model().complete(request).text == ANSWER
    stored = OutsideService.objects.get(name="chat_model")
    assert stored.target == f"gemma at {server.origin.partition('://')[2]}"
    assert stored.learned == {"folds_system": True}
    assert server.bodies[-1]["messages"] == [{"role": "user", "content": "Be kind.\n\nhello"}]

    address = reverse("admin:operations_models")
    assert "folds_system=True" in admin_client.get(address).content.decode()
    admin_client.post(reverse("admin:operations_models_action", args=["forget"]))
    assert OutsideService.objects.get(name="chat_model").learned == {}
    assert "folds_system" not in admin_client.get(address).content.decode()


def test_pictures_that_a_model_cannot_see_are_named_instead(serve: Serve) -> None:
    server = serve(
        refuses(
            has_pictures,
            {"error": {"message": "unknown variant `image_url`, expected `text`"}},
            422,
        )
    )
    model = OpenAIChatModel("", server.url, "m")
    picture = Picture("image/png", b"png")
    request = ChatRequest([ChatMessage("user", "What is it?", pictures=[picture])])
    for _ in range(2):
        assert model.complete(request).text == ANSWER
    assert len(server.bodies) == 3
    assert server.bodies[-1]["messages"][0]["content"].startswith("What is it?\n[picture")


# Embeddings.


def vector_of(text: str) -> list[float]:
    return [1.0, len(text) % 7 + 1.0, float(sum(text.encode()) % 11 + 1)]


def embeds(
    condition: Callable[[Json], Any] = lambda body: False,
    words: Any = "",
    status: int = 400,
    change: Callable[[list[Json]], list[Json]] = lambda data: data,
) -> Quirk:
    def quirk(body: Json, number: int) -> Reply:
        if condition(body):
            return Reply(words if isinstance(words, dict) else error(words), status)
        data = [
            {"object": "embedding", "index": place, "embedding": encoded(vector_of(text), body)}
            for place, text in enumerate(body["input"])
        ]
        return Reply({"object": "list", "model": "e", "data": change(data)})

    return quirk


def encoded(vector: list[float], body: Json) -> Any:
    if body.get("encoding_format") != "base64":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def longest(body: Json) -> int:
    return max(len(text) for text in body["input"])


@pytest.mark.parametrize(
    ("quirk", "learned"),
    [
        (embeds(), {}),
        (
            embeds(
                lambda body: "encoding_format" in body,
                {"detail": [{"loc": ["body", "encoding_format"], "msg": "unexpected value"}]},
                422,
            ),
            {"no_base64": True},
        ),
        (
            embeds(lambda body: "encoding_format" in body, "base64 is not supported"),
            {"no_base64": True},
        ),
        (
            embeds(
                lambda body: len(body["input"]) > 32,
                "batch size 40 > maximum allowed batch size 32",
                422,
            ),
            {"batch": 32},
        ),
        (
            embeds(
                lambda body: len(body["input"]) > 10,
                "<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it "
                "should not be larger than 10.: input.contents",
            ),
            {"batch": 10},
        ),
        (embeds(lambda body: len(body["input"]) > 1, "batch size 1 only"), {"batch": 1}),
        (
            embeds(
                lambda body: len(body["input"]) > 20,
                "Invalid 'input': maximum request size is 300000 tokens per request.",
            ),
            {"batch": 20},
        ),
        (
            embeds(lambda body: longest(body) > 1_500, "maximum context length is 512 tokens"),
            {"text_bytes": 512},
        ),
        (
            embeds(
                lambda body: longest(body) > 2_000, "the input length exceeds the context length"
            ),
            {"text_bytes": 2_000},
        ),
        (embeds(change=lambda data: data[::-1]), {}),
        (embeds(change=lambda data: [{**each, "index": 0} for each in data]), {}),
        (embeds(change=lambda data: [{"embedding": each["embedding"]} for each in data]), {}),
    ],
)
def test_an_embedding_server_takes_what_it_takes_and_the_work_finishes(
    serve: Serve, quirk: Quirk, learned: Json
) -> None:
    traits = UnsharedTraits()
    server = serve(quirk)
    embedder = OpenAIEmbedder("", server.url, "e", traits=traits, sleep=lambda seconds: None)
    texts = [*(f"text {number}" for number in range(40)), "w" * 4_000]
    plain = OpenAIEmbedder("", serve(embeds()).url, "e")
    found = embedder.embed(texts)
    assert np.allclose(found[:40], plain.embed(texts)[:40])
    assert traits.load() == learned
    calls = len(server.bodies)
    assert embedder.embed(["again"])
    assert len(server.bodies) == calls + 1


@pytest.mark.parametrize(
    ("quirk", "words"),
    [
        (sends({"error": {"message": "No such model", "code": 404}}), "No such model"),
        (embeds(change=lambda data: data[:-1]), "could not be read"),
        (
            embeds(change=lambda data: [{**each, "embedding": [0.0] * 3} for each in data]),
            "could not be read",
        ),
        (sends(b"<html>Log in</html>"), "Log in"),
        (sends(error("Your card was declined"), 402), "card was declined"),
    ],
)
def test_what_is_no_vector_is_never_stored(serve: Serve, quirk: Quirk, words: str) -> None:
    embedder = OpenAIEmbedder("", serve(quirk).url, "e", sleep=lambda seconds: None)
    with pytest.raises(EmbedderError, match=words):
        embedder.embed(["a", "b"])


def test_the_settings_bound_batch_and_length(serve: Serve, settings: Any) -> None:
    server = serve(embeds())
    settings.OPENAI_BASE_URL = server.url
    settings.EMBEDDING_BATCH, settings.EMBEDDING_MAX_TOKENS = 4, 100
    made_for(Choice("openai", "e"), None, 10.0).embed(["a"] * 9 + ["w" * 250])
    sizes = [len(body["input"]) for body in server.bodies]
    assert sizes == [4, 4, 4]
    assert max(map(longest, server.bodies)) == 100


# The check of the models.


def ollama(body: Json, number: int) -> Reply:
    """Calls functions, writes JSON where it is asked for any, and knows no names."""
    if "input" in body:
        return embeds()(body, number)
    if "tools" in body:
        call = {"id": "", "function": {"name": "opening_hours", "arguments": {"day": "Sunday"}}}
        return Reply(completion("", "stop", tool_calls=[call]))
    if body.get("response_format"):
        return Reply(completion('{"colours": ["red"]}'))
    return Reply(completion("Blue."))


def gemma(body: Json, number: int) -> Reply:
    if "tools" in body:
        return Reply(error("registry.ollama.ai/library/gemma does not support tools"), 400)
    if has_system(body):
        return Reply(error("System role not supported"), 400)
    if does_not_alternate(body):
        return Reply(error("Conversation roles must alternate user/assistant"), 400)
    if body.get("response_format"):
        return Reply(error("response_format is not supported"), 400)
    return Reply(completion("Blue." if number % 2 else "```json\n" + '{"colours": ["red"]}\n```'))


@pytest.mark.parametrize(
    ("quirk", "words", "ok"),
    [
        (ollama, ["answers as quirk-1", "calls functions", "writes JSON"], True),
        (gemma, ["answers as quirk-1", "folds_system=True", "no_tools=True"], None),
        (sends(error("Incorrect API key"), 401), ["doesn't work", "Incorrect API key"], False),
        (sends(b"<html>Welcome</html>"), ["Welcome"], False),
        (answers("Certainly! Red."), ["did not write the JSON", "did not call"], True),
    ],
)
def test_the_check_says_what_works_and_what_was_learned(
    serve: Serve,
    settings: Any,
    capsys: pytest.CaptureFixture[str],
    quirk: Quirk,
    words: list[str],
    ok: bool | None,
) -> None:
    settings.CHAT_MODEL, settings.OPENAI_BASE_URL = "openai", serve(quirk).url
    try:
        call_command("model_check")
        worked = True
    except CommandError:
        worked = False
    printed = capsys.readouterr().out
    assert [word for word in words if word not in printed] == []
    assert ok is None or worked is ok


def test_the_check_as_json_and_on_its_page(
    serve: Serve, settings: Any, capsys: pytest.CaptureFixture[str], admin_client: Client
) -> None:
    settings.CHAT_MODEL, settings.OPENAI_BASE_URL = "openai", serve(ollama).url
    settings.EMBEDDER, settings.EMBEDDING_MODEL = "openai", "e"
    call_command("model_check", "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["ok"]
    assert any("makes vectors of 3 numbers" in each["text"] for each in document["findings"])

    address = reverse("admin:operations_models")
    assert "have not been checked yet" in admin_client.get(address).content.decode()
    assert check_models()
    assert "calls functions" in admin_client.get(address).content.decode()
    assert (
        admin_client.post(
            reverse("admin:operations_models_action", args=["check"]), follow=True
        ).status_code
        == 200
    )


def test_without_servers_there_is_nothing_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("model_check")
    assert "No server of models is configured" in capsys.readouterr().out
