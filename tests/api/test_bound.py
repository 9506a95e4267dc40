"""A bound token never sees another chat, nor changes anything there: on every route, with every
id that there is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memories_app.models import Memory
from sessions_app.models import Chat, ChatSession, Message, Turn
from tests.api.calling import Api
from tests.api.conftest import make_token
from tests.api.routes import NOT_FOR_BOUND, SCOPE_OF
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
    word: str
    # What belongs to no chat.
    receipt_id: Any = "0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10"
    category: str = "decisions"
    identifier: str = "use-postgres"


@pytest.fixture(scope="module")
def town(module_rows: None) -> list[Place]:
    api = Api(make_token())
    places = []
    for number, person in enumerate(PEOPLE):
        word = f"zebra{number}zebra"
        say(api, f"/remember the gate code is {word}", person)
        said = say(api, f"what is the gate code {word}?", person)
        chat = Chat.objects.get(whatsapp_chat=person)
        memory = Memory.objects.get(chat_id=chat.pk)
        places.append(Place(person, chat.pk, said["session_id"], said["turn_id"], memory.pk, word))
    return places


def address(name: str, place: Place) -> str:
    """The route with the ids of this chat."""
    found = ROUTES[name][0]
    for key in (each.name for each in fields(Place)):
        for kind in ("id", "str"):
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
    max_examples=100 * FACTOR,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_route_shows_or_changes_another_chat(
    data: st.DataObject, town: list[Place], token: Callable[..., str]
) -> None:
    own = data.draw(st.sets(st.sampled_from(range(len(town))), min_size=1, max_size=2), "bound to")
    name, method = data.draw(st.sampled_from(CALLS), "route")
    target = town[data.draw(st.sampled_from(range(len(town))), "of")]
    named = town[data.draw(st.sampled_from(range(len(town))), "names")]
    text = data.draw(st.sampled_from(WORDS), "says")
    bound = Api(token(chat_ids=[town[number].chat_id for number in own]))
    strangers = [place for number, place in enumerate(town) if number not in own]
    before = fingerprint(strangers)
    if method == "GET":
        query = data.draw(st.sampled_from(QUERIES), "query")(named)
        answer = bound.get(address(name, target) + query)
    else:
        body = data.draw(st.sampled_from(BODIES), "body")(named, text)
        answer = bound.call(method, address(name, target), body)
    told = b"".join(answer).decode()
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


def test_every_route_is_asked() -> None:
    assert {name for name, _ in CALLS} == set(SCOPE_OF)
