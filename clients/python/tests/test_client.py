"""What a program does with the client, and what the client does when the network or the server
fails. Both clients pass each test."""

from __future__ import annotations

import json
import os
import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from flaky import NONE, Fault, Flaky
from whatsapp_memory_client import (
    APIError,
    AuthenticationFailed,
    Conflict,
    ConnectionFailed,
    InvalidRequest,
    MemoryClient,
    NotFound,
    ServerFailed,
    TooManyCalls,
    VersionChanged,
    operations,
)

JSON = {"Content-Type": "application/json"}
BUSY = {"type": "server_error", "errors": [{"code": "overloaded", "detail": "Busy.", "attr": None}]}


def refusal(status: int, code: str = "busy", **headers: str) -> Fault:
    error = {"code": code, "detail": "Not now.", "attr": None}
    body = json.dumps({"type": "server_error", "errors": [error]}).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault(answer=(status, {**JSON, **sent}, body))


HTML = Fault(answer=(502, {"Content-Type": "text/html"}, b"<h1>Bad gateway</h1>"))


def test_facts_are_stored_found_changed_and_erased(client: Any, chat: str) -> None:
    until = datetime.now(timezone.utc) + timedelta(days=1)
    fact = client.remember(
        "TestCorp pays in 30 days", whatsapp_chat=chat, tags=["payments"], expires_at=until
    )
    assert (fact["outcome"], fact["visibility"]) == ("created", "chat")
    assert datetime.fromisoformat(fact["expires_at"].replace("Z", "+00:00")) == until
    found = client.recall("When does TestCorp pay?", whatsapp_chat=chat)["results"]
    assert [each["memory_id"] for each in found] == [fact["memory_id"]]
    read = client.send(operations.memories_get(fact["memory_id"]))
    changed = client.change(fact["memory_id"], if_match=read.etag, content="It pays in 31 days")
    assert changed["content"] == "It pays in 31 days"
    with pytest.raises(VersionChanged):
        client.change(fact["memory_id"], if_match=read.etag, content="It pays in 32 days")
    assert client.forget(fact["memory_id"])["probe"] == "absent"
    with pytest.raises(NotFound) as refused:
        client.memory(fact["memory_id"])
    assert (refused.value.code, refused.value.status) == ("not_found", 404)
    assert refused.value.request_id
    assert refused.value.request_id in str(refused.value)


def test_a_conversation_with_a_model_of_ones_own(client: Any, chat: str) -> None:
    said = [
        {"role": "user", "content": "My daughter is Noa"},
        {"role": "assistant", "content": "Hi"},
    ]
    stored = client.store_messages(said, whatsapp_chat=chat, learn=True)
    assert stored["learning"] in ("queued", "off")
    session = client.open_session(chat)["session_id"]
    assert client.exchange("How old is she?", "Five", session_id=session)["turn_id"]
    context = client.context(whatsapp_chat=chat, query="And now?", persona=False, system="Be brief")
    assert context["messages"][0]["content"].startswith("Be brief")
    assert context["messages"][-1] == {"role": "user", "content": "And now?"}
    newest = [each["content"] for each in client.messages(session, limit=3)]
    assert newest == ["Five", "How old is she?", "Hi", "My daughter is Noa"]
    assert [each["whatsapp_chat"] for each in client.chats(whatsapp_chat=chat)] == [chat]
    assert client.erase_chat(chat)["kind"] == "chat"


def test_files_and_lines_of_json(client: Any, chat: str) -> None:
    file = ("hours.txt", b"We open at nine.")
    made = client.call(operations.files_upload({"file": file, "whatsapp_chat": chat}))
    assert (made["name"], made["whatsapp_chat"], made["size"]) == ("hours.txt", chat, 16)
    client.remember("The shop is blue", whatsapp_chat=chat)
    lines = client.call(operations.memories_export(whatsapp_chat=chat))
    assert json.loads(lines)["content"] == "The shop is blue"
    known = client.call(operations.memories_import(lines))
    assert (known["created"], known["duplicates"]) == (0, 1)


def test_errors_name_their_place(client: Any, chat: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        client.remember_many([{"content": "good"}, {"content": ""}])
    assert refused.value.errors[0]["attr"] == "memories.1.content"
    assert "memories.1.content" in str(refused.value)
    copied = pickle.loads(pickle.dumps(refused.value))
    assert (str(copied), copied.code) == (str(refused.value), refused.value.code)
    for wrong in ("", ".", ".."):
        with pytest.raises(ValueError, match="An id can't be"):
            client.forget(wrong)


def test_a_wrong_token_and_a_wrong_server(flaky: Flaky, client: Any) -> None:
    with MemoryClient(flaky.url, "wrong") as stranger, pytest.raises(AuthenticationFailed):
        stranger.me()
    for wrong in (("localhost:8000", "token"), (flaky.url, " ")):
        with pytest.raises(ValueError, match=r"http://|empty"):
            MemoryClient(*wrong)
    flaky.next(Fault(answer=(200, {"Content-Type": "text/html"}, b"<h1>A page</h1>")))
    with pytest.raises(APIError, match="A page") as refused:
        client.me()
    assert refused.value.code == "unexpected_answer"
    flaky.next(Fault(answer=(301, {"Location": "https://example.com/"}, b"")))
    with pytest.raises(APIError, match="https://example.com/"):
        client.me()
    with MemoryClient(f"{flaky.url}/api/v1/", os.environ["TOKEN"]) as same:
        assert same.me()["kind"] == "api"


def test_lists_are_read_to_their_end(client: Any, chat: str, flaky: Flaky) -> None:
    client.remember_many(
        [{"content": f"Room {n} seats {n}0", "whatsapp_chat": chat} for n in range(5)]
    )
    del flaky.seen[:]
    found = [each["content"] for each in client.memories(whatsapp_chat=chat, limit=2)]
    assert sorted(found) == [f"Room {n} seats {n}0" for n in range(5)]
    assert len(flaky.seen) == 3
    listed = client.memories(whatsapp_chat=chat, metadata={"no": "such"}, tags=["a", "b"])
    assert list(listed) == []
    ids = [each["memory_id"] for each in client.memories(whatsapp_chat=chat)]
    assert len(client.forget_many(ids)["forgotten"]) == 5
    assert client.forget_many(ids[:1])["not_found"] == [{"memory_id": ids[0]}]


@pytest.mark.parametrize(
    "faults",
    [
        [Fault(lose="call")],
        [Fault(lose="answer")],
        [Fault(cut=10)],
        [refusal(503, Retry_After="0"), refusal(429, Retry_After="0")],
        [HTML, Fault(answer=(504, {}, b""))],
        [refusal(409, "idempotency_in_progress")],
    ],
)
def test_a_call_is_made_once_however_often_it_is_sent(
    client: Any, chat: str, flaky: Flaky, faults: list[Fault]
) -> None:
    session = client.open_session(chat)["session_id"]
    del flaky.seen[:]
    flaky.next(*faults)
    stored = client.store_messages([{"role": "user", "content": "once"}], session_id=session)
    assert len(set(flaky.keys())) == 1 < len(flaky.keys()) == len(faults) + 1
    assert [each["message_id"] for each in client.messages(session)] == [
        stored["messages"][0]["message_id"]
    ]


def test_each_call_has_a_key_of_its_own_unless_one_is_given(
    client: Any, chat: str, flaky: Flaky
) -> None:
    mine = f"key of {chat}"
    client.remember("a", whatsapp_chat=chat)
    client.remember("b", whatsapp_chat=chat)
    client.remember("b", whatsapp_chat=chat, idempotency_key=mine)
    again = operations.memories_remember(
        {"content": "b", "whatsapp_chat": chat}, idempotency_key=mine
    )
    assert client.send(again).replayed
    first, second, third, fourth = flaky.keys()
    assert first != second
    assert third == fourth == mine
    with pytest.raises(InvalidRequest):
        client.remember("c", whatsapp_chat=chat, idempotency_key=mine)


def test_a_call_without_a_key_is_not_repeated_when_it_may_have_been_made(
    client: Any, chat: str, flaky: Flaky
) -> None:
    """The answer of the second call would be about what the first one did."""
    fact = client.remember("The shop opens at 8", whatsapp_chat=chat)
    etag = client.send(operations.memories_get(fact["memory_id"])).etag
    flaky.next(Fault(lose="answer"))
    with pytest.raises(ConnectionFailed, match="once"):
        client.remember("Nothing is kept of this answer", idempotency_key="")
    assert flaky.keys()[-1] is None
    before = len(flaky.seen)
    flaky.next(refusal(503, Retry_After="0"))
    changed = client.change(fact["memory_id"], if_match=etag, content="The shop opens at 9")
    assert changed["content"] == "The shop opens at 9"
    assert len(flaky.seen) == before + 2


def test_it_gives_up_and_says_why(client: Any, flaky: Flaky) -> None:
    flaky.next(*[refusal(503, Retry_After="0")] * 4)
    with pytest.raises(ServerFailed) as refused:
        client.me()
    assert (refused.value.code, len(flaky.seen)) == ("busy", 4)
    flaky.next(refusal(429, "throttled", Retry_After="3600"))
    with pytest.raises(TooManyCalls) as refused:
        client.me()
    assert (refused.value.retry_after, len(flaky.seen)) == (3600, 5)
    flaky.next(refusal(429, Retry_After="Wed, 01 Jan 2025 00:00:00 GMT"))
    assert client.me()["kind"] == "api"
    flaky.next(*[Fault(lose="call")] * 4)
    with pytest.raises(ConnectionFailed, match="4 times"):
        client.me()
    with pytest.raises(ConnectionFailed, match="once"):
        client.remember("never sent", idempotency_key="two\nlines")
    flaky.next(refusal(500, "error"))
    with pytest.raises(ServerFailed):
        client.me()
    assert len(flaky.seen) == 12


TOLD = "tell me שלום 😀\u2028and a few more words than stand in one piece of it, please"


@pytest.mark.parametrize("piece", [0, 1, 7])
def test_an_answer_comes_in_pieces(client: Any, chat: str, flaky: Flaky, piece: int) -> None:
    flaky.next(Fault(piece=piece))
    events = list(client.chat_stream(TOLD, whatsapp_chat=chat))
    assert [each.event for each in events[:2]] == ["accepted", "delta"]
    done = events[-1].answer
    assert done is not None
    assert "".join(each.text for each in events) == done["reply"] == f"answer to: {TOLD}"
    assert client.chat("whole", whatsapp_chat=chat)["reply"] == "answer to: whole"


@pytest.mark.parametrize("cuts", [[0], [150], [330, 420, 500], [-30]])
def test_a_stream_that_is_cut_goes_on(
    client: Any, chat: str, flaky: Flaky, cuts: list[int]
) -> None:
    """Wherever it is cut: nothing is stored twice, and no piece comes twice."""
    flaky.next(*[Fault(cut=cut, piece=5) for cut in cuts])
    events = list(client.chat_stream(TOLD, whatsapp_chat=chat))
    assert [each.event for each in events].count("accepted") == 1
    assert "".join(each.text for each in events) == f"answer to: {TOLD}"
    assert len(set(flaky.keys())) == 1 < len(flaky.seen) == len(cuts) + 1
    session = client.open_session(chat)["session_id"]
    assert [each["role"] for each in client.messages(session)] == ["assistant", "user"]


# Lines end in three ways; there are comments, unknown fields, and an event after the end.
WIRE = "".join(
    [
        "\ufeff: still at work\r\rid: 7\r\nretry: 10\n",
        'event: accepted\rdata: {"session_id":\rdata: "s"}\r\n\r\n',
        'event: delta\ndata:{"text": "שלום "}\n\n',
        'event:delta\r\ndata: {"text": "😀"}\r\n\r\n: comment\n\nunknown: 1\n',
        'event: done\ndata: {"reply": "שלום 😀"}\n\nevent: delta\ndata: {"text": "no"}\n\n',
    ]
)


@pytest.mark.parametrize("piece", [1, 2, 3, 64, 0])
def test_events_in_every_form_of_the_standard(client: Any, flaky: Flaky, piece: int) -> None:
    stream = {"Content-Type": "text/event-stream; charset=utf-8"}
    flaky.next(Fault(answer=(200, stream, WIRE.encode()), piece=piece))
    events = list(client.chat_stream("hi"))
    assert [(each.event, each.text) for each in events] == [
        ("accepted", ""), ("delta", "שלום "), ("delta", "😀"), ("done", "")
    ]  # fmt: skip
    assert events[0].data == {"session_id": "s"}


def test_a_stream_that_can_not_be_answered(client: Any, flaky: Flaky) -> None:
    error = {"code": "not_answered", "detail": "Not in this group.", "attr": None}
    told = json.dumps({"type": "client_error", "errors": [error]})
    event = f"event: error\ndata: {told}\n\n".encode()
    flaky.next(NONE, Fault(answer=(200, {"Content-Type": "text/event-stream"}, event)))
    client.me()
    with pytest.raises(Conflict, match="Not in this group"):
        list(client.chat_stream("hi"))
    with pytest.raises(InvalidRequest):
        list(client.chat_stream("hi", whatsapp_chat="no such form"))
    assert len(flaky.seen) == 3
