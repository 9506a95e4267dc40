"""Official clients get this server's memory by changing their base URL."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import openai
import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.integrations.loopback import httpd
from memoryproject.foundation.rest_kit.tokens import token_create
from sessions_app.models import (
    Chat,
    ChatAccess,
    ChatSession,
    ExtractionWork,
    Message,
    Turn,
    TurnReplay,
)
from tests.api.calling import Api, make_token
from tests.browser.visit import with_its_requests
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

OURS = "sk-our-own-key-0123456789"
SYSTEM = {"role": "system", "content": "You are BakeryBot."}
ASKS = {"role": "user", "content": "When does TestCorp pay?"}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


def chunk(index: int = 0, **delta: Any) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": None}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
    return b"data: " + json.dumps({**body, "choices": [choice]}).encode() + b"\n\n"


class Pieces(httpd.Handler):
    """Sends each event of a stream when the one before it has been read."""

    loopback: ModelServer

    def write(self, body: bytes, answer: httpd.Answer) -> None:
        for piece in body.split(b"\n\n") if b"data: " in body else [body]:
            self.wfile.write(piece + (b"\n\n" if b"data: " in body else b""))
            self.wfile.flush()
            self.loopback.more.wait(10)


class ModelServer(httpd.LoopbackServer):
    """Answers each call with the next of ``answers``, else with what its last message says."""

    handler_class = Pieces

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[httpd.Answer] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.more = threading.Event()
        self.more.set()

    def handle(self, request: httpd.Request) -> httpd.Answer:
        self.meanwhile()
        if self.answers:
            return self.answers.pop(0)
        if request.path.startswith("/v1/models"):
            return httpd.Answer(200, {"object": "list", "data": [{"id": "m-1", "object": "model"}]})
        assert request.body is not None
        if request.path == "/v1/responses":
            return response_to(request.body)
        text = f"Echo: {request.body['messages'][-1]['content']}"
        if request.body.get("stream"):
            words = [chunk(role="assistant"), *(chunk(content=word) for word in text.split(" "))]
            content = b"".join([*words, b"data: [DONE]"])
            return httpd.Answer(200, {}, {"Content-Type": "text/event-stream"}, content + b"\n\n")
        return completion(content=text)

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last call."""
        body = self.requests[-1].body
        assert body is not None
        return body


def completion(**message: Any) -> httpd.Answer:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m-1"}
    return httpd.Answer(200, {**body, "choices": [choice], "usage": usage})


def response_to(body: dict[str, Any]) -> httpd.Answer:
    """Return an answer of OpenAI's Responses, streamed if that was asked for."""
    given: Any = body["input"]
    last = given if isinstance(given, str) else given[-1]
    text = f"Echo: {last if isinstance(last, str) else last.get('content', last.get('output'))}"
    thought = {"type": "reasoning", "id": "r", "summary": []}
    called = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    part = {"type": "output_text", "text": text, "annotations": []}
    written = {"type": "message", "id": "m", "role": "assistant", "content": [part]}
    answer = {
        **{"id": "resp_1", "object": "response", "created_at": 1, "status": "completed"},
        **{"error": None, "incomplete_details": None, "model": "m-1", "parallel_tool_calls": True},
        "output": [
            thought,
            {**(called if text == "Echo: call" else written), "status": "completed"},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
    }
    if not body.get("stream"):
        return httpd.Answer(200, answer)
    place = {"item_id": "m", "output_index": 1, "content_index": 0}
    deltas: list[dict[str, Any]] = [
        {"type": "response.output_text.delta", "delta": word, **place}
        for word in re.split("(?= )", text)
    ]
    events: list[dict[str, Any]] = [*deltas, {"type": "response.completed", "response": answer}]
    lines = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events]
    return httpd.Answer(200, {}, {"Content-Type": "text/event-stream"}, "".join(lines).encode())


@pytest.fixture(scope="session")
def live_server(django_db_setup: None, live_server: LiveServer) -> LiveServer:
    """The server, which is stopped before the database is dropped."""
    return with_its_requests(live_server)


@pytest.fixture
def models(settings: Any) -> Iterator[ModelServer]:
    with ModelServer() as server:
        settings.CHAT_MODEL = "openai"
        settings.OPENAI_BASE_URL = f"{server.url}/v1"
        settings.OPENAI_API_KEY = OURS
        settings.OPENAI_MODEL = "house-model"
        yield server


@pytest.fixture
def client(live_server: LiveServer, models: ModelServer) -> Iterator[openai.OpenAI]:
    token = token_create(name="bakery", scopes=["read", "write"], actor=COMMAND_LINE).secret
    with openai.OpenAI(api_key=token, base_url=f"{live_server.url}/v1", max_retries=0) as made:
        yield made


def ask(client: openai.OpenAI, *messages: Any, user: str = "dana@example.com", **more: Any) -> Any:
    return client.chat.completions.with_raw_response.create(
        model="m-1", messages=list(messages), user=user, **more
    )


def streamed(client: openai.OpenAI) -> Any:
    call: dict[str, Any] = {"model": "m-1", "messages": [ASKS], "user": "dana", "stream": True}
    return client.chat.completions.create(**call)


def remember(chat: str, text: str) -> None:
    body = {"content": text, "whatsapp_chat": chat, "visibility": "chat"}
    assert Api(make_token()).post("memories/", body).status_code == 201


def test_the_prompt_has_the_memory_after_the_callers_own_words(
    client: openai.OpenAI, models: ModelServer
) -> None:
    chat = ask(client, SYSTEM, {"role": "user", "content": "Hi"}).headers["X-Memory-Chat"]
    assert models.sent["messages"][0] == SYSTEM
    remember(chat, "TestCorp pays in 30 days")
    answer = ask(client, SYSTEM, ASKS, temperature=0.2, extra_body={"top_k": 7})
    assert answer.parse().choices[0].message.content == f"Echo: {ASKS['content']}"
    system, asked = models.sent["messages"]
    assert system["content"].startswith("You are BakeryBot.\n\nIt is ")
    assert "TestCorp pays in 30 days" in system["content"]
    assert "DeniDin" not in system["content"]
    assert asked == ASKS
    assert (models.sent["temperature"], models.sent["top_k"], models.sent["model"]) == (
        *(0.2, 7),
        "m-1",
    )
    # The server's own key; the caller's token stays here.
    assert models.requests[-1].headers["authorization"] == f"Bearer {OURS}"


def test_a_call_with_very_many_new_messages_is_stored_whole(client: openai.OpenAI) -> None:
    texts = [f"Line {number}" for number in range(2_001)]
    ask(client, *({"role": "user", "content": text} for text in texts))
    stored = list(Message.objects.order_by("order_num").values_list("role", "content"))
    assert stored == [*(("user", text) for text in texts), ("assistant", "Echo: Line 2000")]
    assert Turn.objects.get(outcome="answered").message.content == "Line 2000"


def test_it_remembers_what_was_said_in_an_earlier_call(
    client: openai.OpenAI, models: ModelServer
) -> None:
    ask(client, {"role": "user", "content": "My daughter Noa is allergic to sesame"})
    ask(client, {"role": "user", "content": "What is Noa allergic to?"})
    assert "allergic to sesame" in models.sent["messages"][0]["content"]
    ask(client, {"role": "user", "content": "What is Noa allergic to?"}, user="somebody-else")
    assert len(models.sent["messages"]) == 1


def test_the_exchange_is_stored_once_with_its_replay(
    client: openai.OpenAI, models: ModelServer
) -> None:
    first = ask(client, SYSTEM, ASKS)
    said = {"role": "assistant", "content": first.parse().choices[0].message.content}
    second = ask(client, SYSTEM, ASKS, said, {"role": "user", "content": "And BestCorp?"})
    rows = Message.objects.order_by("order_num").values_list("role", "content")
    assert list(rows) == [
        ("user", ASKS["content"]),
        ("assistant", f"Echo: {ASKS['content']}"),
        ("user", "And BestCorp?"),
        ("assistant", "Echo: And BestCorp?"),
    ]
    turn = Turn.objects.latest("id")
    assert second.headers["X-Memory-Replay"].endswith(f"/api/v1/turns/{turn.turn_id}/")
    assert second.headers["X-Memory-Session"] == str(turn.session_id)
    replay = TurnReplay.objects.get(turn=turn)
    assert (replay.model, replay.prompt_tokens, replay.completion_tokens) == ("m-1", 9, 4)
    assert [each["role"] for each in replay.prompt][-3:] == ["user", "assistant", "user"]


def test_a_stream_comes_as_the_server_sends_it(client: openai.OpenAI, models: ModelServer) -> None:
    models.more.clear()
    with streamed(client) as stream:
        pieces = []
        for event in stream:
            # The next one is sent only now.
            models.more.set()
            pieces.append(event.choices[0].delta.content or "")
    assert pieces == ["", "Echo:", *ASKS["content"].split()]
    assert Turn.objects.get().reply is not None


def test_a_stream_that_the_program_leaves_is_stored_as_far_as_it_came(
    client: openai.OpenAI, models: ModelServer
) -> None:
    models.more.clear()
    stream = streamed(client)
    next(iter(stream))
    stream.close()
    models.more.set()
    wait_until(lambda: Message.objects.filter(content=ASKS["content"]).exists(), "it is stored")


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([chunk(content="a"), chunk(content="b")], "ab"),
        ([chunk(content="a#b").replace(b"#", "\u2028\x85".encode())], "a\u2028b"),
        ([chunk(content="[DONE]"), chunk(content=" or not")], "[DONE] or not"),
        ([chunk(content="a"), chunk(1, content="X"), chunk(content="b"), chunk(1)], "ab"),
    ],
)
def test_streams_of_every_kind_are_stored(
    client: openai.OpenAI, models: ModelServer, events: list[bytes], text: str
) -> None:
    content = b"".join([*events, b"data: [DONE]\n\n"])
    models.answers = [httpd.Answer(200, {}, {"Content-Type": "text/event-stream"}, content)]
    list(streamed(client))
    assert Message.objects.get(role="assistant").content == text


def test_an_answer_that_breaks_off_is_an_error(client: openai.OpenAI, models: ModelServer) -> None:
    cut = {"Content-Length": "99999", "Connection": "close"}
    events = {**cut, "Content-Type": "text/event-stream"}
    models.answers = [
        httpd.Answer(200, {}, events, chunk(content="Half") + chunk(content=" of it")),
        httpd.Answer(200, {}, cut, b'{"choices": ['),
    ]
    with pytest.raises(openai.APIError, match="broke its answer off"):
        list(streamed(client))
    assert Message.objects.get(role="assistant").content == "Half of it"
    assert refused(client, user="dana").status_code == 502


def test_all_that_was_not_answered_before_is_learned_from(
    client: openai.OpenAI, models: ModelServer, settings: Any
) -> None:
    settings.EXTRACT_MEMORIES = True
    ask(client, {"role": "user", "content": "I'm vegan"}, {"role": "user", "content": "And late"})
    works = ExtractionWork.objects.order_by("turn__id")
    assert list(works.values_list("turn__message__content", flat=True)) == ["I'm vegan", "And late"]


def test_calls_of_tools_pass_through_and_are_stored(
    client: openai.OpenAI, models: ModelServer
) -> None:
    models.answers = [completion(content=None, tool_calls=[CALL])]
    first = ask(client, ASKS, tools=[TOOL]).parse().choices[0].message
    assert models.sent["tools"] == [TOOL]
    called = first.model_dump(exclude_none=True)
    result = {"role": "tool", "tool_call_id": "c1", "content": "25"}
    ask(client, ASKS, called, result, tools=[TOOL])
    assert models.sent["messages"][-1] == result
    roles = list(Message.objects.order_by("order_num").values_list("role", flat=True))
    assert roles == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (["Hello", {"type": "text", "text": "there"}], "Hello\nthere"),
        ([{"type": ["text"], "text": "x"}, 7, {"type": "text", "text": "y"}], "y"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}], "[image]"),
    ],
)
def test_contents_in_parts_are_stored_with_their_text(
    client: openai.OpenAI, models: ModelServer, content: Any, text: str
) -> None:
    ask(client, {"role": "user", "content": content})
    assert models.sent["messages"][-1]["content"] == content
    assert Message.objects.get(role="user").content == text


@pytest.mark.parametrize(
    ("user", "chat"),
    [
        ("15550100123@c.us", "15550100123@c.us"),
        (" +15550100123@C.US ", "15550100123@c.us"),
        ("15550100123", "15550100123@external"),
        ("user-7", "user-7@external"),
        ("crm@external", "crm@external"),
        ("Dana Cohen / 7|8", None),
        ("דנה", None),
        ("dana@example.com", None),
        ("x" * 300, None),
    ],
)
def test_each_name_is_one_chat(
    client: openai.OpenAI, models: ModelServer, user: str, chat: str | None
) -> None:
    found = {ask(client, ASKS, user=user).headers["X-Memory-Chat"] for _ in range(2)}
    if user.isascii() and user == user.strip():
        headers = {"X-Memory-Chat": user}
        found.add(ask(client, ASKS, user="", extra_headers=headers).headers["X-Memory-Chat"])
    (stored,) = found
    assert stored == chat or (chat is None and stored.endswith("@external"))
    if stored.endswith("@external"):
        assert Chat.objects.get().client_name == user[:255]


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (httpd.Answer(429, {"error": {"message": "slow down"}}), 429, "slow down"),
        (httpd.Answer(400, {"error": {"message": f"bad {OURS}"}}), 400, "bad [key]"),
        (httpd.Answer(401, {"error": {"message": "who are you?"}}), 502, "who are you?"),
        (httpd.Answer(500, {}), 500, "500"),
    ],
)
def test_what_the_server_refuses_is_said_and_nothing_is_stored(
    client: openai.OpenAI, models: ModelServer, answer: httpd.Answer, status: int, words: str
) -> None:
    models.answers = [answer]
    with pytest.raises(openai.APIStatusError) as refused:
        ask(client, ASKS)
    assert refused.value.status_code == status
    assert words in refused.value.message
    assert OURS not in str(refused.value.body)
    assert not Message.objects.exists()


def test_the_codes_of_the_server_are_passed_on(client: openai.OpenAI, models: ModelServer) -> None:
    code = "context_length_exceeded"
    said = {"message": "At most 10 tokens", "type": "x", "param": "messages", "code": code}
    models.answers = [httpd.Answer(400, {"error": said})]
    error = refused(client, user="d")
    assert (error.code, error.param) == (code, "messages")
    assert isinstance(error.body, dict)
    assert error.body["message"] == "At most 10 tokens"


def refused(client: openai.OpenAI, **call: Any) -> openai.APIStatusError:
    with pytest.raises(openai.APIStatusError) as error:
        client.chat.completions.create(**{"model": "m-1", "messages": [ASKS], **call})
    return error.value


def test_wrong_calls_are_refused_in_openais_form(
    client: openai.OpenAI, models: ModelServer, settings: Any
) -> None:
    assert refused(client).param == "user"
    assert refused(client, user="d", messages=[]).param == "messages"
    for role in ("king", ["user"], {"a": 1}):
        assert refused(client, user="d", messages=[{"role": role}]).param == "messages[0]"
    assert refused(client.with_options(api_key="wrong"), user="d").status_code == 401
    settings.CHAT_MODEL = "offline"
    error = refused(client, user="d")
    assert (error.status_code, error.code) == (503, "no_model")
    assert "OPENAI_BASE_URL" in error.message
    assert models.requests == []
    assert not ChatSession.objects.exists()


@pytest.mark.parametrize(
    ("access", "allow_list_only"),
    [({"standing": "blocked"}, False), ({"opted_out_at": timezone.now()}, False), ({}, True)],
)
def test_a_chat_that_is_not_answered_is_not_answered_here(
    client: openai.OpenAI,
    models: ModelServer,
    settings: Any,
    access: dict[str, Any],
    allow_list_only: bool,
) -> None:
    ask(client, ASKS, user="dana")
    ChatAccess.objects.create(chat=Chat.objects.get(), **access)
    settings.ALLOW_LIST_ONLY = allow_list_only
    error = refused(client, user="dana")
    assert (error.status_code, error.code) == (403, "not_answered")
    assert len(models.requests) == 1
    assert Message.objects.count() == 2


def test_what_is_erased_goes_from_the_answer_that_told_it(
    client: openai.OpenAI, models: ModelServer
) -> None:
    chat = ask(client, {"role": "user", "content": "Hi"}).headers["X-Memory-Chat"]
    remember(chat, "TestCorp pays in 30 days")
    models.answers = [completion(content="As I know, TestCorp pays in 30 days.")]
    ask(client, ASKS)
    api = Api(make_token())
    (memory,) = api.get("memories/").json()["results"]
    assert api.delete(f"memories/{memory['memory_id']}/").status_code == 200
    kept = str([*Message.objects.values("content"), *TurnReplay.objects.values()])
    assert "TestCorp pay" in kept
    assert "30 days" not in kept


def test_what_is_erased_goes_from_the_calls_of_tools(
    client: openai.OpenAI, models: ModelServer
) -> None:
    ask(client, {"role": "user", "content": "My secret word is xylophone"})
    told = {"name": "look_up", "arguments": '{"q": "My secret word is xylophone"}'}
    models.answers = [completion(content=None, tool_calls=[{**CALL, "function": told}])]
    ask(client, {"role": "user", "content": "Look up my secret word"}, tools=[TOOL])
    said = Message.objects.get(content__startswith="My secret")
    path = f"sessions/{said.session_id}/messages/{said.pk}/"
    assert Api(make_token()).delete(path).status_code == 200
    kept = str([*Message.objects.values("content", "metadata"), *TurnReplay.objects.values()])
    assert "look_up" in kept
    assert "xylophone" not in kept


def test_what_is_erased_while_the_model_answers_is_not_stored_again(
    client: openai.OpenAI, models: ModelServer
) -> None:
    chat = ask(client, {"role": "user", "content": "Hi"}).headers["X-Memory-Chat"]
    remember(chat, "TestCorp pays in 30 days")
    api = Api(make_token())
    (memory,) = api.get("memories/").json()["results"]

    def erase() -> None:
        assert api.delete(f"memories/{memory['memory_id']}/").status_code == 200
        # The server's thread has one of its own.
        connection.close()

    models.meanwhile = erase
    models.answers = [completion(content="As I know, TestCorp pays in 30 days.")]
    ask(client, ASKS)
    assert "30 days" in str(models.sent)
    kept = str([*Message.objects.values("content"), *TurnReplay.objects.values()])
    assert ASKS["content"] in kept
    assert "30 days" not in kept


def test_a_bound_token_has_its_own_chat_and_no_other(
    live_server: LiveServer, client: openai.OpenAI, models: ModelServer
) -> None:
    own = ask(client, ASKS, user="15550100123@c.us").headers["X-Memory-Chat"]
    chat = Chat.objects.get(whatsapp_chat=own)
    token = token_create(
        name="bound", scopes=["read", "write"], chat_ids=[chat.pk], actor=COMMAND_LINE
    ).secret
    bound = client.with_options(api_key=token)
    assert ask(bound, ASKS, user="").headers["X-Memory-Chat"] == own
    assert refused(bound, user="another").status_code == 404
    ask(client, ASKS, user="another")
    ids = list(Chat.objects.values_list("pk", flat=True))
    token = token_create(
        name="two", scopes=["read", "write"], chat_ids=ids, actor=COMMAND_LINE
    ).secret
    error = refused(bound.with_options(api_key=token))
    assert error.status_code == 400
    assert own in error.message
    assert "another@external" in error.message


def test_where_memory_is_off_calls_pass_through(
    client: openai.OpenAI, models: ModelServer, settings: Any
) -> None:
    settings.ENABLE_MEMORY_SYSTEM = False
    answer = ask(client, ASKS)
    assert "X-Memory-Replay" not in answer.headers
    assert models.sent["messages"] == [ASKS]
    assert not Message.objects.exists()


def test_models_are_those_of_the_server(client: openai.OpenAI, models: ModelServer) -> None:
    assert [each.id for each in client.models.list()] == ["m-1"]
    models.answers = [httpd.Answer(200, {"id": "a/b", "object": "model"})]
    assert client.models.retrieve("a/b").id == "a/b"
    for name in ("..%2Ffiles", "%2e%2e/files", "a/..%2F..%2Ffiles"):
        with pytest.raises(openai.NotFoundError, match="no model"):
            client.get(f"/models/{name}", cast_to=object)
    client.get("/models/x%3Flimit=9", cast_to=object)
    assert [each.path for each in models.requests[2:]] == ["/v1/models/x%3Flimit%3D9"]
    with pytest.raises(openai.NotFoundError, match="no such address"):
        client.embeddings.create(model="m", input="x")
    root = str(client.base_url).removesuffix("v1/")
    for base in (root, f"{root}api/v1/"):
        elsewhere = client.with_options(base_url=base)
        for call in (partial(ask, elsewhere), elsewhere.models.list):
            with pytest.raises(openai.NotFoundError, match="there are: /v1/chat/completions"):
                call()


def respond(client: openai.OpenAI, given: Any, user: str = "dana", **more: Any) -> Any:
    create = client.responses.with_raw_response.create
    return create(model="m-1", input=given, extra_headers={"X-Memory-Chat": user}, **more)


def test_responses_have_the_memory_after_the_programs_own_words(
    client: openai.OpenAI, models: ModelServer
) -> None:
    chat = respond(client, "Hi").headers["X-Memory-Chat"]
    assert "instructions" not in models.sent
    remember(chat, "TestCorp pays in 30 days")
    answer = respond(client, ASKS["content"], instructions="You are BakeryBot.", store=False)
    assert answer.parse().output_text == f"Echo: {ASKS['content']}"
    assert models.sent["instructions"].startswith("You are BakeryBot.\n\nIt is ")
    assert "TestCorp pays in 30 days" in models.sent["instructions"]
    assert (models.sent["input"], models.sent["store"]) == (ASKS["content"], False)
    parts = [{"type": "input_text", "text": "You are BakeryBot."}]
    for own in ("You are BakeryBot.", parts):
        respond(client, [{"role": "developer", "content": own}, ASKS])
        first = models.sent["input"][0]
        words = (
            first["content"]
            if own is not parts
            else "".join(each["text"] for each in first["content"])
        )
        assert words.startswith("You are BakeryBot.")
        assert "TestCorp pays in 30 days" in words
        assert "instructions" not in models.sent


def test_responses_are_stored_with_their_replay(client: openai.OpenAI, models: ModelServer) -> None:
    # What was answered before isn't stored again.
    respond(
        client, [{"role": "user", "content": "old"}, {"role": "assistant", "content": "o"}, ASKS]
    )
    rows = Message.objects.order_by("order_num").values_list("role", "content")
    assert list(rows) == [("user", ASKS["content"]), ("assistant", f"Echo: {ASKS['content']}")]
    replay = TurnReplay.objects.get()
    assert (replay.model, replay.prompt_tokens, replay.completion_tokens) == ("m-1", 9, 4)


def test_responses_stream_as_they_come(client: openai.OpenAI, models: ModelServer) -> None:
    models.more.clear()
    pieces = []
    named: Any = {"model": "m-1", "input": "event: response.completed", "user": "dana"}
    with client.responses.create(**named, stream=True) as stream:
        for event in stream:
            models.more.set()
            pieces.append(getattr(event, "delta", ""))
    assert pieces == ["Echo:", " event:", " response.completed", ""]
    assert Message.objects.get(role="assistant").content == "Echo: event: response.completed"


def test_responses_that_break_off_are_stored_as_far_as_they_came(
    client: openai.OpenAI, models: ModelServer
) -> None:
    whole = response_to({"input": "one two", "stream": True}).content
    assert whole is not None
    events = {"Content-Length": "99999", "Content-Type": "text/event-stream"}
    half = whole.partition(b"event: response.completed")[0]
    models.answers = [httpd.Answer(200, {}, {**events, "Connection": "close"}, half)]
    named: Any = {"model": "m-1", "input": "one two", "user": "dana", "stream": True}
    with pytest.raises(openai.APIError, match="broke its answer off"):
        list(client.responses.create(**named))
    assert Message.objects.get(role="assistant").content == "Echo: one two"


def test_responses_call_tools(client: openai.OpenAI, models: ModelServer) -> None:
    tool: Any = {"type": "function", "name": "weather", "parameters": {}, "strict": False}
    first = respond(client, "call", tools=[tool]).parse().output
    result = {"type": "function_call_output", "call_id": "c1", "output": "25"}
    called = [each.model_dump(exclude_none=True) for each in first]
    respond(client, [{"role": "user", "content": "call"}, *called, result], tools=[tool])
    assert models.sent["input"][1:] == [*called, result]
    rows = list(Message.objects.order_by("order_num").values_list("role", "content"))
    assert [role for role, _ in rows] == ["user", "assistant", "tool", "assistant"]
    assert rows[2:] == [("tool", "25"), ("assistant", "Echo: 25")]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "hi", "background": True}, "background"),
        ({"input": "hi", "instructions": ["x"]}, "instructions"),
        ({"input": []}, "input"),
        ({"input": 7}, "input"),
        ({"input": ["hi"]}, "input[0]"),
        ({"input": [{"content": "hi"}]}, "input[0]"),
        ({"input": [{"role": "king", "content": "hi"}]}, "input[0]"),
    ],
)
def test_wrong_responses_are_refused(
    client: openai.OpenAI, models: ModelServer, body: Any, param: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        client.post("/responses", body={"user": "dana", **body}, cast_to=object)
    error: Any = caught.value.body
    assert (caught.value.status_code, error["param"]) == (400, param)
    assert models.requests == []


@pytest.mark.parametrize(
    "item",
    [
        {"type": ["x"]},
        {"type": "item_reference", "id": "m"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call_output", "call_id": "c", "output": {"a": 1}},
        {"role": "user", "content": {"text": "x"}},
    ],
)
def test_items_of_every_kind_pass_through(
    client: openai.OpenAI, models: ModelServer, item: Any
) -> None:
    respond(client, [item, ASKS])
    assert models.sent["input"] == [item, ASKS]
    assert Message.objects.get(role="assistant").content == f"Echo: {ASKS['content']}"
