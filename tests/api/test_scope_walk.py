"""Tokens of every set of scopes walk at random over all routes and commands, and no step shows or
does anything outside of the scopes.

SCOPE_WALK_STEPS is the number of steps (10,000 take some minutes), SCOPE_WALK_SEED another walk.
"""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cards_app.models import MemoryCard
from memories_app.models import (
    Memory,
    MemoryDocument,
    MemoryDocumentVersion,
    SourceDocument,
)
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.rest_kit.models import SCOPES
from sessions_app.models import Chat, ChatSession, ForgetReceipt, Message, Turn
from tests.api.calling import Api
from tests.api.test_chat import say
from tests.api.test_scopes import CALLS, ROUTES
from tests.world import GODFATHER

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

STEPS = int(os.environ.get("SCOPE_WALK_STEPS", "200"))
SEED = int(os.environ.get("SCOPE_WALK_SEED", "19"))
# More rows than these would make each step slow: then everything is erased and said anew.
MOST_MESSAGES = 120
PEOPLE = ["15550100001@c.us", "15550100002@c.us", GODFATHER]
SETS = [
    scopes for size in range(1, len(SCOPES) + 1) for scopes in itertools.combinations(SCOPES, size)
]
# What people stored, and what an erasure takes away.
KEPT = (
    *(Chat, ChatSession, Message, Memory, MemoryCard, Turn),
    *(MemoryDocument, MemoryDocumentVersion, SourceDocument),
)
SAID = [
    "/memories", "/memories 2", "/search gate code", "/export", "/forget gate code", "/forget {id}",
    "/remember the bell is loud", "/help", "/reset", "what is the gate code?", "STOP", "start", "",
    "@assistant /forget gate code", "/FORGET {id}", " /memories", "/forget", "/unknown",
]  # fmt: skip
# The check of the audit log needs a transaction of its own: tests/api/test_audit.py.
STEPS_OVER = [call for call in CALLS if call[0] != "api-audit-verify"]
TEXT = "the bell is loud"
TRANSCRIPT = "User: what is the gate code?\nAssistant: Ask at the gate.\n"


@dataclass
class Place:
    """What can be named of one chat, and a word that its people alone know."""

    whatsapp_chat: str
    word: str
    ids: dict[str, str] = field(default_factory=dict)


class Town:
    """Three chats, one of them the owner's, and what is stored of them."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.built = 0
        self.places: list[Place] = []
        self.rebuild()

    def rebuild(self) -> None:
        for chat in Chat.objects.all():
            assert self.api.delete(f"chats/{chat.whatsapp_chat}/").status_code == 200
        for memory in Memory.objects.all():
            self.api.delete(f"memories/{memory.pk}/")
        for file in SourceDocument.objects.all():
            self.api.delete(f"files/{file.pk}/")
        self.built += 1
        self.places = [self._place(number, person) for number, person in enumerate(PEOPLE)]

    def _place(self, number: int, person: str) -> Place:
        word = f"zebra{number}x{self.built}"
        say(self.api, f"/remember the gate code is {word}", person)
        said = say(self.api, f"what is the gate code {word}?", person)
        session = said["session_id"]
        assert self.api.post(f"sessions/{session}/card/").status_code in (200, 201)
        document = {"decision": f"The gate code is {word}", "status": "accepted"}
        name = f"gate-{number}-{self.built}"
        assert self.api.call("PUT", f"documents/decisions/{name}/", document).status_code == 201
        file = self.api.upload(word.encode(), f"{word}.txt", {"whatsapp_chat": person})
        assert file.status_code == 201
        memory = Memory.objects.get(chat_id=Chat.objects.get(whatsapp_chat=person).pk)
        ids = {
            "whatsapp_chat": person,
            "session_id": session,
            "message_id": said["message_id"],
            "turn_id": said["turn_id"],
            "memory_id": str(memory.pk),
            "receipt_id": "0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10",
            "document_id": file.json()["document_id"],
            "summary_metadata_id": "d4c3b2a1-6f5e-4d7c-9b8a-1a2b3c4d5e17",
            "category": "decisions",
            "identifier": name,
        }
        return Place(person, word, ids)

    def is_worn(self) -> bool:
        """Whether too little is left to find, or too much."""
        there = Memory.objects.filter(pk__in=[place.ids["memory_id"] for place in self.places])
        sessions = ChatSession.objects.filter(
            pk__in=[place.ids["session_id"] for place in self.places]
        )
        full = Message.objects.count() > MOST_MESSAGES
        return full or there.count() < 2 or sessions.count() < 2


def stored() -> dict[str, dict[Any, int]]:
    """The rows that there are, with a hash of what they say."""
    return {
        model._meta.db_table: {
            row[0]: hash(repr(row[1:]))
            for row in model._default_manager.values_list("pk", *_texts(model))
        }
        for model in KEPT
    }


def _texts(model: Any) -> list[str]:
    """The columns that callers write. What the machine notes for itself is left out."""
    known = {
        Chat: ["whatsapp_chat"],
        ChatSession: ["status"],
        Message: ["content", "role"],
        Memory: ["content", "visibility", "status", "pinned", "tags", "metadata"],
        MemoryCard: ["title"],
        MemoryDocument: ["name", "version", "archived_at"],
        MemoryDocumentVersion: ["body"],
        SourceDocument: ["name", "visibility"],
        Turn: [],
    }
    return known[model]


def address(name: str, place: Place) -> str:
    return re.sub(r"<\w+:(\w+)>", lambda found: place.ids[found[1]], ROUTES[name][0])


def body_for(name: str, method: str, place: Place, dice: random.Random) -> dict[str, Any]:
    """A body that the route understands, more often than not."""
    chat = {"whatsapp_chat": place.whatsapp_chat}
    of_routes: dict[str, list[dict[str, Any]]] = {
        "api-sessions": [chat],
        "api-session-messages": [{"messages": [{"role": "user", "content": TEXT}]}],
        "api-session-context": [{"query": "what is the gate code?"}, {}],
        "api-memories": [{"content": TEXT, **chat}, {"content": "the gate code"}],
        "api-memories-batch": [{"memories": [{"content": TEXT, **chat}]}],
        "api-memories-recall": [
            {"query": "gate code", "min_similarity": 0},
            {"query": "x", **chat},
        ],
        "api-memory": [{"pinned": True}, {"tags": ["door"]}, {}],
        "api-transcripts": [{"text": TRANSCRIPT, **chat}],
        "api-transcripts-check": [{"text": TRANSCRIPT, **chat}],
        "api-files": [chat, {}],
        "api-documents-cleanup": [{"category": "decisions", "older_than": "1d"}],
        "api-document": [{"decision": TEXT, "status": "accepted"}],
    }
    return dice.choice([*of_routes.get(name, [{}]), *of_routes.get(name, [{}]), {"content": TEXT}])


@dataclass
class Step:
    """One call: what was asked, and what came back."""

    name: str
    method: str
    path: str
    body: Any
    status: int = 0
    text: str = ""

    def take(self, api: Api, **headers: str) -> None:
        if self.name == "api-files" and self.method == "POST":
            answer = api.upload(TEXT.encode(), "bell.txt", self.body, **headers)
        else:
            answer = api.call(self.method, self.path, self.body, **headers)
        self.status, self.text = answer.status_code, b"".join(answer).decode()


def step_of(dice: random.Random, town: Town) -> Step:
    place = dice.choice(town.places)
    if dice.random() < 0.4:
        text = dice.choice(SAID).format(id=dice.choice(town.places).ids["memory_id"])
        body = {"whatsapp_chat": place.whatsapp_chat, "content": text}
        return Step("api-chat", "POST", "chat/", body)
    name, method = dice.choice(STEPS_OVER)
    if method != "GET":
        return Step(name, method, address(name, place), body_for(name, method, place, dice))
    query = dice.choice(["", "", "?limit=2", f"?whatsapp_chat={place.whatsapp_chat}"])
    return Step(name, method, address(name, place) + query, None)


def check(step: Step, scopes: set[str], bound: set[str] | None, town: Town, before: Any) -> None:
    assert step.status < 500, "no step breaks anything"
    shown = {place.word for place in town.places if place.word in step.text}
    assert not shown or "read" in scopes, f"{shown} was shown"
    if bound is not None:
        strangers = {place.word for place in town.places if place.whatsapp_chat not in bound}
        assert not shown & strangers, f"{shown & strangers} is of another chat"
    after = stored()
    gone, new, changed = set(), set(), set()
    for table, rows in before["stored"].items():
        gone |= {(table, key) for key in rows.keys() - after[table].keys()}
        new |= {(table, key) for key in after[table].keys() - rows.keys()}
        both = rows.keys() & after[table].keys()
        changed |= {(table, key) for key in both if rows[key] != after[table][key]}
    if (step.name, step.method) == ("api-session-card", "GET"):
        # Reading makes the card where there is none: docs/api.md.
        new = {(table, key) for table, key in new if table != MemoryCard._meta.db_table}
    receipts = ForgetReceipt.objects.count() - before["receipts"]
    assert not new or "write" in scopes, f"{new} was stored"
    assert not changed or scopes & {"write", "forget"}, f"{changed} was changed"
    assert not gone or "forget" in scopes, f"{gone} is gone"
    assert not receipts or "forget" in scopes, "something was erased"
    if step.status == 403:
        effects = [new, changed, gone, receipts]
        assert not any(effects), "a refused call has an effect"
    if step.name.startswith("api-audit"):
        assert (step.status == 403) is ("audit" not in scopes or bound is not None)


def test_no_step_shows_or_does_what_its_token_may_not(
    api: Api, token: Callable[..., str], settings: Any, tmp_path: Path
) -> None:
    settings.LOG_DIR = settings.DATA_DIR = tmp_path
    for kind in ("READ", "WRITE", "FORGET", "CHAT", "BULK"):
        setattr(settings, f"API_RATE_{kind}", 1_000_000)
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    dice = random.Random(SEED)
    town = Town(api)
    secrets = {scopes: token(*scopes, name="unbound") for scopes in SETS}
    for number in range(STEPS):
        if town.is_worn():
            town.rebuild()
        scopes = dice.choice(SETS)
        bound = None
        secret = secrets[scopes]
        if dice.random() < 0.3:
            # The owner's chat shows the memories of all: tests/api/test_said_scopes.py.
            bound = set(dice.sample(PEOPLE[:2], dice.choice([1, 1, 2])))
            chats = Chat.objects.filter(whatsapp_chat__in=bound).values_list("pk", flat=True)
            secret = token(*scopes, name="bound", chat_ids=list(chats) or [Chat().pk])
        step = step_of(dice, town)
        before = {"stored": stored(), "receipts": ForgetReceipt.objects.count()}
        step.take(Api(secret))
        try:
            check(step, set(scopes), bound, town, before)
        except AssertionError as wrong:
            found = f"step {number} of walk {SEED}: {scopes}, bound to {bound}: {step}"
            raise AssertionError(f"{found}\n{wrong}") from None
    people = AuditEvent.objects.filter(actor_kind="person")
    assert not people.exists(), "the token is the actor of all that it does"
