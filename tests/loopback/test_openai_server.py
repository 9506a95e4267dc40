"""The loopback OpenAI server itself, as the SDK and as bare HTTP see it."""

from __future__ import annotations

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from tests.loopback.conftest import KEY
from tests.loopback.openai_behaviours import fails, rate_limited, says, slow
from tests.loopback.openai_server import OpenAIServer

MESSAGES = [{"role": "user", "content": "hello there, server"}]


def call(
    server: OpenAIServer, method: str, path: str, body: object = None, key: str | None = KEY
) -> tuple[int, dict[str, str], Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, content, headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, {name.lower(): text for name, text in response.getheaders()}, answer


def chat(server: OpenAIServer, **more: object) -> tuple[int, dict[str, str], Any]:
    return call(
        server, "POST", "/v1/chat/completions", {"model": "m", "messages": MESSAGES, **more}
    )


@pytest.fixture
def client(server: OpenAIServer) -> openai.OpenAI:
    return openai.OpenAI(api_key=KEY, base_url=server.base_url, max_retries=0)


def test_a_stream_gives_the_words_the_end_and_the_usage(client: openai.OpenAI) -> None:
    with (
        client,
        client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "one  two\nthree"}],
            stream=True,
            stream_options={"include_usage": True},
        ) as stream,
    ):
        chunks = list(stream)
    words = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(words) == "You said: one  two\nthree\nMemories I saw: 0"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[-3:-1]] == [None, "stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}


def test_floats_and_base64_are_the_same_vectors(client: openai.OpenAI) -> None:
    with client:
        model = "text-embedding-3-small"
        packed = client.embeddings.create(model=model, input=["a b", "c"])
        floats = client.embeddings.create(model=model, input=["a b", "c"], encoding_format="float")
    assert [item.index for item in packed.data] == [0, 1]
    for one, other in zip(packed.data, floats.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
    assert packed.usage.prompt_tokens == 2


def test_models_are_listed(client: openai.OpenAI) -> None:
    with client:
        assert "gpt-4o-mini" in [model.id for model in client.models.list()]


def test_only_memories_outside_the_users_own_words_are_counted(server: OpenAIServer) -> None:
    block = "<memories>\n- one\n- two\n</memories>"
    messages = [
        {"role": "system", "content": block},
        {"role": "user", "content": [{"type": "text", "text": block}]},
    ]
    answer = call(server, "POST", "/v1/chat/completions", {"model": "m", "messages": messages})[2]
    assert answer["choices"][0]["message"]["content"].endswith("Memories I saw: 2")


@pytest.mark.parametrize(("key", "said"), [(None, "didn't provide"), ("other", "Incorrect")])
def test_a_wrong_key_is_401(server: OpenAIServer, key: str | None, said: str) -> None:
    status, _, answer = call(server, "GET", "/v1/models", key=key)
    assert status == 401
    assert said in answer["error"]["message"]
    assert len(server.requests) == 1
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/v1/chat/completions", [], 400),
        ("POST", "/v1/chat/completions", {"messages": MESSAGES}, 400),
        ("POST", "/v1/chat/completions", {"model": "m"}, 400),
        ("POST", "/v1/chat/completions", {"model": "m", "messages": []}, 400),
        ("POST", "/v1/chat/completions", {"model": "m", "messages": ["hi"]}, 400),
        ("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user"}]}, 400),
        ("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "x"}]}, 400),
        ("POST", "/v1/embeddings", {"model": "m"}, 400),
        ("POST", "/v1/embeddings", {"input": "a"}, 400),
        ("POST", "/v1/embeddings", {"model": "m", "input": ""}, 400),
        ("POST", "/v1/embeddings", {"model": "m", "input": ["a", ""]}, 400),
        ("POST", "/v1/embeddings", {"model": "m", "input": ["a"] * 2049}, 400),
        ("POST", "/v1/embeddings", {"model": "m", "input": "abcd" * 8193}, 400),
        ("POST", "/v1/embeddings", {"model": "m", "input": ["abcd" * 8000] * 38}, 400),
        ("POST", "/v1/embeddings", {"model": "m", "input": "a", "encoding_format": "hex"}, 400),
        ("POST", "/v1/embeddings", {"model": "m", "input": "a", "dimensions": 8}, 400),
        ("POST", "/v1/embeddings", {"model": "text-embedding-3-small", "input": [[1, 2]]}, 200),
        ("GET", "/v1/chat/completions", None, 405),
        ("POST", "/v1/nothing", {}, 404),
    ],
)
def test_requests_are_checked(
    server: OpenAIServer, method: str, path: str, body: object, status: int
) -> None:
    got, _, answer = call(server, method, path, body)
    assert got == status
    if status != 200:
        assert set(answer["error"]) == {"message", "type", "param", "code"}
    recorded = server.requests[0]
    assert (recorded.path, recorded.body) == (path, body if isinstance(body, dict) else None)


def test_a_script_is_followed_then_answers_are_proper_again(server: OpenAIServer) -> None:
    server.script_chat(rate_limited("7"), fails(500), says("scripted"))
    status, headers, answer = chat(server)
    assert (status, headers["retry-after"]) == (429, "7")
    assert answer["error"]["code"] == "rate_limit_exceeded"
    assert chat(server)[0] == 500
    assert chat(server)[2]["choices"][0]["message"]["content"] == "scripted"
    proper = chat(server)[2]["choices"][0]["message"]["content"]
    assert proper == "You said: hello there, server\nMemories I saw: 0"


def test_embeddings_have_a_script_of_their_own(server: OpenAIServer) -> None:
    server.script_embeddings(fails(500))
    assert chat(server)[0] == 200
    assert call(server, "POST", "/v1/embeddings", {"model": "m", "input": "a"})[0] == 500


def test_a_token_limit_cuts_the_answer(server: OpenAIServer) -> None:
    answer = chat(server, max_tokens=2)[2]
    assert answer["choices"][0]["message"]["content"] == "You said"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 2


def test_the_model_can_be_given(server: OpenAIServer) -> None:
    with OpenAIServer(answer=lambda body: str(len(body["messages"]))) as counting:
        assert chat(counting)[2]["choices"][0]["message"]["content"] == "1"


def test_parallel_requests_are_all_kept(server: OpenAIServer) -> None:
    with ThreadPoolExecutor(20) as pool:
        statuses = list(pool.map(lambda _: chat(server)[0], range(60)))
    assert statuses == [200] * 60
    assert len(server.chat_bodies) == 60
    assert server.wait_for_requests(60)


def test_stopping_does_not_wait_for_slow_answers() -> None:
    server = OpenAIServer()
    server.start()
    server.script_chat(slow(3600))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(chat, server)
        assert server.wait_for_requests(1)
        server.stop()
        assert waiting.result(timeout=10)[0] == 200


def test_a_port_that_is_taken_is_refused(server: OpenAIServer) -> None:
    with pytest.raises(OSError, match="in use"):
        OpenAIServer(port=server.port)
