"""Hot statements name their chat, as a database that is distributed by chats needs it
(docs/scaling.md). Those that don't are listed with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from sessions_app.models import ChatSession
from tests.api.calling import Api
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

TABLE = re.compile(
    r"(?:FROM|INTO|UPDATE)\s+\(*\"?((?:sessions_app|memories_app|cards_app)_[a-z]+)\"?"
)
# Why a statement doesn't name the chat, and what a distributed database needs for it.
NOT_KNOWN_YET = "the chat is looked for by an address or a provider's id: a table on every node"
QUEUE = "which chat is next: asked of all nodes"
NO_COLUMN = "its row belongs to one turn or message: the table gets the column chat_id"
ONE_ROW = "names one session, turn or message, whose chat is known there: to be added"
SMALL = "a small table that every node has"
EXPECTED = {
    "INSERT memories_app_embeddingmodel": SMALL,
    "INSERT sessions_app_inbounddelivery": NOT_KNOWN_YET,
    "INSERT sessions_app_messageembedding": NO_COLUMN,
    "INSERT sessions_app_outboundpart": NO_COLUMN,
    "INSERT sessions_app_turnreplay": NO_COLUMN,
    "SELECT memories_app_embeddingmodel": SMALL,
    "SELECT sessions_app_assistantprofile": SMALL,
    "SELECT sessions_app_chat": NOT_KNOWN_YET,
    "SELECT sessions_app_chataddress": NOT_KNOWN_YET,
    "SELECT sessions_app_message": ONE_ROW,
    "SELECT sessions_app_outboundpart": NO_COLUMN,
    "SELECT sessions_app_turn": QUEUE,
    "UPDATE sessions_app_chatsession": ONE_ROW,
    "UPDATE sessions_app_message": ONE_ROW,
    "UPDATE sessions_app_outboundpart": NO_COLUMN,
}


class Recorder:
    """Collects the statements of a block that touch tables of ours."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def __call__(
        self, execute: Callable[..., Any], query: Any, params: Any, many: bool, context: Any
    ) -> Any:
        text = query if isinstance(query, str) else query.as_string()
        self.statements.append(f"{text} -- {params!r}")
        return execute(query, params, many, context)

    def without(self, chat_id: Any) -> set[str]:
        """The verb and the first table of each statement that doesn't name the chat."""
        others = (text for text in self.statements if str(chat_id) not in text)
        return {f"{text.split()[0]} {found[1]}" for text in others if (found := TABLE.search(text))}


def test_statements_of_messages_answers_and_recall_name_the_chat(world: World, api: Api) -> None:
    world.say(CLIENT, "hello there")
    world.remember(CLIENT, "the shop is open on Fridays")
    chat, session = world.chat(CLIENT), ChatSession.objects.get()
    recorder = Recorder()
    with connection.execute_wrapper(recorder):
        assert world.say(CLIENT, "when is the shop open?")
        root = f"sessions/{session.pk}/"
        assert api.get(f"{root}messages/").status_code == 200
        assert api.post(f"{root}context/", {"query": "when?"}).status_code == 200
        asked = {"whatsapp_chat": CLIENT, "query": "when is the shop open?"}
        assert api.post("memories/recall/", asked).json()["results"]
    assert recorder.without(chat.pk) == set(EXPECTED)
