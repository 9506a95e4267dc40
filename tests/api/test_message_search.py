"""Messages of all sessions and chats are searched by words, by meaning, or by both."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import override_settings

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.conversations.chat_queries import token_chats
from sessions_app.embedding.choice import embedder
from sessions_app.embedding.facade import messages_embed
from sessions_app.models import Message
from tests.api.calling import Api, api_with, error_of
from tests.api.test_chat import say
from tests.api.test_sessions import opened
from tests.world import CLIENT, OTHER_CLIENT

pytestmark = pytest.mark.django_db
PATH = "messages/search/"
# Each is a message of one session.
SAID: dict[str, list[dict[str, Any]]] = {
    CLIENT: [
        {"role": "user", "content": "When does the plumber come to TestCorp?",
         "timestamp": "2026-01-01T09:00:00Z"},
        {"role": "assistant", "content": "The plumber comes on Tuesday.",
         "metadata": {"cost": 30}, "timestamp": "2026-01-02T09:00:00Z"},
        {"role": "system", "content": "The plumber is a secret."},
    ],
    OTHER_CLIENT: [
        {"role": "user", "content": "The plumbers were late again", "metadata": {"cost": 7},
         "timestamp": "2026-01-03T09:00:00Z"},
        {"role": "user", "content": "My dog ate the carpet",
         "timestamp": "2026-01-04T09:00:00Z"},
    ],
}  # fmt: skip


@pytest.fixture
def sessions(api: Api) -> dict[str, str]:
    """By chat, the session in which this was said."""
    found = {}
    for chat, messages in SAID.items():
        found[chat] = str(opened(api, chat)["session_id"])
        answer = api.post(f"sessions/{found[chat]}/messages/", {"messages": messages})
        assert answer.status_code == 201, answer.content
        messages_embed(session_id=answer.json()["messages"][0]["session_id"], embedder=embedder())
    return found


def search(api: Api, query: str = "plumber", **body: Any) -> dict[str, Any]:
    answer = api.post(PATH, {"query": query, **body})
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    assert found["degraded"] is False
    scores = [row["score"] for row in found["results"]]
    assert scores == sorted(scores, reverse=True)
    return found


def texts(found: dict[str, Any]) -> set[str]:
    return {row["content"] for row in found["results"]}


QUESTION, ANSWER, LATE, DOG = (
    *(message["content"] for message in SAID[CLIENT][:2]),
    *(message["content"] for message in SAID[OTHER_CLIENT]),
)


@pytest.mark.usefixtures("sessions")
def test_words_find_each_form_of_them_in_every_chat_and_meaning_other_words(api: Api) -> None:
    found = search(api, by="words")
    assert texts(found) == {QUESTION, ANSWER, LATE}
    assert {row["whatsapp_chat"] for row in found["results"]} == {CLIENT, OTHER_CLIENT}
    assert {row["similarity"] for row in found["results"]} == {None}
    assert texts(search(api, "the", by="words")) == set()
    assert texts(search(api, "puppy", by="words")) == set()
    near = search(api, "What did the puppy chew?", by="meaning")["results"]
    assert near[0]["content"] == DOG
    assert 0 < near[0]["similarity"] <= 1
    both = search(api, "When does the plumber come?", min_similarity=0.3)["results"]
    assert both[0]["content"] in (QUESTION, ANSWER)


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"whatsapp_chat": "+" + OTHER_CLIENT.partition("@")[0]}, {LATE}),
    ({"whatsapp_chat": "15550100999@c.us"}, set()),
    ({"role": "assistant"}, {ANSWER}),
    ({"since": "2026-01-02T09:00:00Z"}, {ANSWER, LATE}),
    ({"until": "2026-01-02T11:00:00+02:00"}, {QUESTION}),
    ({"where": {"metadata.cost": {"gt": 7}}}, {ANSWER}),
    ({"where": {"not": {"metadata.cost": {"exists": True}}}}, {QUESTION}),
    ({"where": {"whatsapp_chat": CLIENT, "role": {"in": ["user"]}}}, {QUESTION}),
    ({"where": {}, "role": "user"}, {QUESTION, LATE}),
]


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize(("body", "expected"), FILTERS)
def test_a_search_is_filtered(api: Api, body: dict[str, Any], expected: set[str]) -> None:
    assert texts(search(api, by="words", **body)) == expected


def test_a_session_is_searched_alone(api: Api, sessions: dict[str, str]) -> None:
    found = search(api, by="words", session_id=sessions[OTHER_CLIENT].upper())
    assert texts(found) == {LATE}


def test_pages_hold_each_message_once(api: Api) -> None:
    session_id = opened(api)["session_id"]
    said = [{"role": "user", "content": f"lamp number {n}"} for n in range(7)]
    api.post(f"sessions/{session_id}/messages/", {"messages": said})
    seen: list[str] = []
    offset = 0
    while offset is not None:
        page = search(api, "lamp", limit=3, offset=offset)
        seen += [row["content"] for row in page["results"]]
        offset = page["next_offset"]
    assert sorted(seen) == [f"lamp number {n}" for n in range(7)]
    assert search(api, "lamp", offset=10**6)["results"] == []


WRONG = [
    ({}, "query"), ({"query": ""}, "query"), ({"query": "x", "by": "sound"}, "by"),
    ({"query": "x", "role": "robot"}, "role"), ({"query": "x", "limit": 101}, "limit"),
    ({"query": "x", "since": "x"}, "since"), ({"query": "x", "session_id": "x"}, "session_id"),
    ({"query": "x", "where": {"tags": "x"}}, "where.tags"), ({"query": "x", "where": []}, "where"),
    ({"query": "x", "chat": "x"}, "chat"), ({"query": "x\x00"}, "query"),
    ({"query": "x", "offset": -1}, "offset"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "attr"), WRONG)
def test_a_search_that_makes_no_sense_is_refused(api: Api, body: Any, attr: str) -> None:
    assert error_of(api.post(PATH, body), 400)["attr"] == attr


def test_a_bound_token_searches_its_chats_alone(sessions: dict[str, str]) -> None:
    bound = api_with("read", chat_ids=token_chats([CLIENT]))
    for by in ("words", "meaning", "both"):
        assert texts(search(bound, by=by, min_similarity=0)) <= {QUESTION, ANSWER}
    for body in ({"whatsapp_chat": OTHER_CLIENT}, {"whatsapp_chat": "15550100999@c.us"},
                 {"session_id": sessions[OTHER_CLIENT]}, {"session_id": str(uuid4())}):  # fmt: skip
        error_of(bound.post(PATH, {"query": "plumber", **body}), 404)
    elsewhere = {"or": [{"whatsapp_chat": OTHER_CLIENT}, {"session_id": sessions[OTHER_CLIENT]}]}
    assert texts(search(bound, where=elsewhere)) == set()


def test_what_is_forgotten_or_was_a_command_is_not_found(
    api: Api, sessions: dict[str, str]
) -> None:
    say(api, "/search plumber")
    assert texts(search(api, by="words")) == {QUESTION, ANSWER, LATE}
    key = Message.objects.get(content=LATE).pk
    api.delete(f"sessions/{sessions[OTHER_CLIENT]}/messages/{key}/")
    api.delete(f"chats/{CLIENT}/")
    for by in ("words", "meaning", "both"):
        assert texts(search(api, by=by, min_similarity=0)) <= {DOG}
    with override_settings(LONGTERM_ENABLED=False):
        assert error_of(api.post(PATH, {"query": "x"}), 403)["code"] == "memory_disabled"


@pytest.mark.usefixtures("sessions")
def test_it_is_recorded_when_staff_read_what_was_found(admin_client: Any) -> None:
    staff = Api(None, admin_client)
    assert texts(search(staff, by="words", whatsapp_chat=CLIENT)) == {QUESTION, ANSWER}
    assert AuditEvent.objects.filter(action="conversation.read").count() == 1
