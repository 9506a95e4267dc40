"""A bound token never sees another chat, nor changes anything there: on every route, with every
id that there is."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memories_app.models import Memory
from sessions_app.conversations.chat_queries import token_chats
from sessions_app.models import Chat, ChatSession, Message, Turn
from tests.api.calling import Api, api_with, error_of
from tests.api.routes import NOT_FOR_BOUND
from tests.api.test_chat import say
from tests.api.test_scopes import CALLS, ROUTES
from tests.fuzz.damage import FACTOR

pytestmark = pytest.mark.django_db

PEOPLE = [f"1555010{number:04}@c.us" for number in range(4)]


@dataclass(frozen=True)
class Place:
    """What can be named of one chat, and the word that is said there alone."""

    whatsapp_chat: str
    chat_id: Any
    session_id: Any
    turn_id: Any
    memory_id: Any
    message_id: Any
    word: str
    # What belongs to no chat.
    receipt_id: Any = "0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10"
    category: str = "decisions"
    identifier: str = "use-postgres"
    namespace: str = "notes"
    key: str = "gate"


@pytest.fixture(scope="module")
def town(module_rows: None) -> list[Place]:
    api = api_with()
    places = []
    for number, person in enumerate(PEOPLE):
        word = f"zebra{number}zebra"
        say(api, f"/remember the gate code is {word}", person)
        said = say(api, f"what is the gate code {word}?", person)
        chat = Chat.objects.get(whatsapp_chat=person)
        memory = Memory.objects.get(chat_id=chat.pk)
        keyed = f"memories/keyed/notes/gate/?whatsapp_chat={person}"
        assert api.call("PUT", keyed, {"value": {"code": word}}).status_code == 201
        ids = (said["session_id"], said["turn_id"], memory.pk, said["message_id"])
        places.append(Place(person, chat.pk, *ids, word))
    return places


def address(name: str, place: Place) -> str:
    """The route with the ids of this chat."""
    found = ROUTES[name][0]
    for key in (each.name for each in fields(Place)):
        for kind in ("id", "str", "key"):
            found = found.replace(f"<{kind}:{key}>", str(getattr(place, key)))
    return found


def fingerprint(places: list[Place]) -> str:
    """All that is stored of these chats."""
    chats = [place.chat_id for place in places]
    rows: list[Any] = list(Chat.objects.filter(pk__in=chats).order_by("pk").values_list())
    for model in (ChatSession, Message, Turn, Memory):
        found = model._default_manager.filter(chat_id__in=chats)
        rows += found.order_by("pk").values_list()
    return hashlib.sha256(repr(rows).encode()).hexdigest()


NAMED = [
    (name, method)
    for name, method in CALLS
    if name not in NOT_FOR_BOUND
    and {"whatsapp_chat", "session_id", "turn_id", "memory_id"}
    & set(re.findall(r":(\w+)>", ROUTES[name][0]))
    and not {"summary_metadata_id", "document_id"} & set(re.findall(r":(\w+)>", ROUTES[name][0]))
]


@pytest.mark.parametrize(("name", "method"), NAMED)
def test_a_route_opens_what_is_of_the_own_chat_and_finds_nothing_of_another(
    name: str, method: str, town: list[Place]
) -> None:
    own, other = town[:2]
    bound = api_with(chat_ids=[own.chat_id])
    bodies: dict[str, dict[str, Any]] = {
        "api-session-messages": {"messages": [{"role": "user", "content": "hello"}]},
        "api-turn-feedback": {"rating": "good"},
        "api-session-exchanges": {"query": "hello", "reply": "Hi"},
    }
    body = bodies.get(name, {}) if method == "POST" else {}
    before = fingerprint([other])
    error_of(bound.call(method, address(name, other), body), 404)
    assert fingerprint([other]) == before
    assert bound.call(method, address(name, own), body).status_code in (200, 201)


@pytest.mark.parametrize("stranger", [PEOPLE[1], "15550100789@c.us"])
def test_no_body_names_another_chat(stranger: str, town: list[Place]) -> None:
    bound = api_with(chat_ids=[town[0].chat_id])
    chat = {"whatsapp_chat": stranger}
    bodies: dict[str, dict[str, Any]] = {
        "sessions/": {},
        "chat/": {"content": "hello"},
        "memories/": {"content": "hello"},
        "memories/batch/": {"memories": [{"content": "hello", **chat}]},
        "memories/recall/": {"query": "hello"},
        "transcripts/": {"text": SAID},
        "transcripts/validate/": {"text": SAID},
    }
    for path, body in bodies.items():
        named = body if "batch" in path else {**body, **chat}
        error_of(bound.post(path, named), 404)
    for path in ("sessions/", "chats/", "memories/", "receipts/", "files/"):
        assert bound.walk(f"{path}?whatsapp_chat={stranger}") == [], path
    assert Chat.objects.count() == len(PEOPLE)


SAID = "User: what is the gate code?\nAssistant: Ask at the gate.\n"
BODIES: list[Callable[[Place, str], dict[str, Any]]] = [
    lambda place, text: {"whatsapp_chat": place.whatsapp_chat},
    lambda place, text: {"whatsapp_chat": place.whatsapp_chat, "content": text},
    lambda place, text: {"whatsapp_chat": place.whatsapp_chat, "query": text},
    lambda place, text: {"query": text},
    lambda place, text: {"query": text, "min_similarity": 0, "top_k": 100},
    lambda place, text: {"text": SAID, "whatsapp_chat": place.whatsapp_chat},
    lambda place, text: {"memories": [{"content": text, "whatsapp_chat": place.whatsapp_chat}]},
    lambda place, text: {"content": text},
    lambda place, text: {"messages": [{"role": "user", "content": text}]},
    lambda place, text: {"query": text, "reply": text},
    lambda place, text: {"value": {"text": text}},
    lambda place, text: {"memory_ids": [str(place.memory_id)]},
    lambda place, text: {
        "keyed": [{"namespace": "notes", "key": "gate", "whatsapp_chat": place.whatsapp_chat}]
    },
    lambda place, text: {},
]
QUERIES: list[Callable[[Place], str]] = [
    lambda place: "",
    lambda place: f"?whatsapp_chat={place.whatsapp_chat}",
    lambda place: "?limit=1",
    lambda place: "?status=active",
]
WORDS = ["what is the gate code?", "/memories", "/search gate code", "/export", "/forget gate code"]


@settings(
    max_examples=15 * FACTOR,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_route_shows_or_changes_another_chat(data: st.DataObject, town: list[Place]) -> None:
    own = data.draw(st.sets(st.sampled_from(range(len(town))), min_size=1, max_size=2), "bound to")
    name, method = data.draw(st.sampled_from(CALLS), "route")
    target = town[data.draw(st.sampled_from(range(len(town))), "of")]
    named = town[data.draw(st.sampled_from(range(len(town))), "names")]
    text = data.draw(st.sampled_from(WORDS), "says")
    bound = api_with(chat_ids=[town[number].chat_id for number in own])
    strangers = [place for number, place in enumerate(town) if number not in own]
    before = fingerprint(strangers)
    if method == "GET":
        query = data.draw(st.sampled_from(QUERIES), "query")(named)
        answer = bound.get(address(name, target) + query)
    else:
        body = data.draw(st.sampled_from(BODIES), "body")(named, text)
        answer = bound.call(method, address(name, target), body)
    told = b"".join(answer).decode()
    if name == "api-memories-delete" and answer.status_code == 200:
        # What isn't there is named as it was asked for.
        named_so = body.get("keyed") or [{"memory_id": key} for key in body["memory_ids"]]
        assert answer.json()["not_found"] in ([], named_so)
        told = json.dumps({**answer.json(), "not_found": []})
    asked = {target.whatsapp_chat, named.whatsapp_chat, str(target.session_id)}
    for place in strangers:
        assert place.word not in told
        assert str(place.chat_id) not in told
        if answer.status_code < 400:
            # A refusal may name what was asked for, and nothing else.
            assert place.whatsapp_chat not in told
            assert str(place.session_id) not in told
            assert str(place.turn_id) not in told
            assert str(place.memory_id) not in told
        else:
            assert place.whatsapp_chat not in told or place.whatsapp_chat in asked
    assert fingerprint(strangers) == before
    assert name not in NOT_FOR_BOUND or answer.status_code == 403


# A token that is bound to one chat needn't name it; one that is bound to several is told them.


ONE, OTHER = "15550100123@c.us", "15550100456@c.us"


def bound(*names: str) -> Api:
    return api_with("read", "write", chat_ids=token_chats(names))


def calls(api: Api, **named: Any) -> list[Any]:
    """Every call that is about a chat."""
    fact = {"content": "TestCorp pays in 30 days", **named}
    return [
        api.post("memories/", fact),
        api.post("memories/batch/", {"memories": [{**fact, "content": "We meet on Monday"}]}),
        api.post("sessions/", named),
        api.post("chat/", {"content": "hello", **named}),
    ]


def test_the_one_chat_is_meant() -> None:
    api = bound(ONE)
    assert [answer.status_code for answer in calls(api)] == [201, 201, 201, 200]
    assert {each.visibility for each in Memory.objects.all()} == {"chat"}
    shown = {each["whatsapp_chat"] for each in api.walk("memories/")}
    assert shown == {ONE}
    assert ChatSession.objects.get().chat.whatsapp_chat == ONE


def test_transcripts_go_into_the_one_chat() -> None:
    api = bound(ONE)
    text = "User: When do you open?\nAssistant: At nine.\n"
    saved = api.post("transcripts/", {"text": text})
    assert saved.json()["whatsapp_chat"] == ONE
    assert b"".join(api.get(saved["Location"])).decode() == text
    checked = api.post("transcripts/validate/", {"text": text}).json()
    # It was compared with what is stored.
    assert [problem["code"] for problem in checked["problems"]] == ["ambiguous"]
    assert error_of(bound(ONE, OTHER).post("transcripts/", {"text": text}), 400)


def test_its_messages_are_recalled_too(api: Api) -> None:
    say(api, "The gate code is 4711", ONE)
    say(api, "The gate code is 9999", OTHER)
    caller = bound(ONE)
    question = {"query": "What is the gate code?", "min_similarity": 0}
    found = caller.post("memories/recall/", question).json()["results"]
    assert (
        found
        == caller.post("memories/recall/", {**question, "whatsapp_chat": ONE}).json()["results"]
    )
    assert "message" in {each["source"] for each in found}
    assert "9999" not in str(found)


def test_several_chats_are_named_in_the_refusal() -> None:
    api = bound(OTHER, ONE)
    for answer, status in zip(calls(api), [403, 403, 400, 400], strict=True):
        assert f"{ONE}, {OTHER}" in error_of(answer, status)["detail"]
    assert not Memory.objects.exists()
    assert all(answer.status_code < 300 for answer in calls(api, whatsapp_chat=OTHER))


def test_an_unbound_token_names_the_chat(api: Api) -> None:
    for path, body in [("sessions/", {}), ("chat/", {"content": "hello"})]:
        error = error_of(api.post(path, body), 400)
        assert (error["code"], error["attr"]) == ("required", "whatsapp_chat")
    stored = api.post("memories/", {"content": "We open at 9"}).json()
    assert (stored["visibility"], stored["whatsapp_chat"]) == ("owner", None)
