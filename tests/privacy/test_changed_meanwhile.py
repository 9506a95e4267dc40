"""What somebody else commits while an answer is made: nothing private goes out with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memories_app.models import Memory
from memories_app.store.change import memory_set_visibility
from memoryproject.foundation.audit.audit_events import SYSTEM
from sessions_app.inbound.message_changes import message_revoke
from sessions_app.models import Message, Turn
from sessions_app.recall.facade import Viewer, recall
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.world import CLIENT, GODFATHER, World, message_from

FACT = "The spare key lies under the blue flowerpot"
SAID = "My cousin keeps three parrots on the balcony"


@contextmanager
def right_after(query: str, change: Callable[[], Any]) -> Iterator[list[str]]:
    """Does the change once, right after the first query that holds these words: as if another
    process had committed it just then. The list holds the query that it followed."""
    followed: list[str] = []

    def watch(execute: Any, sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if not followed and query in sql:
            followed.append(sql)
            change()
        return result

    with connection.execute_wrapper(watch):
        yield followed


def found(world: World, whatsapp_chat: str, query: str) -> list[str]:
    viewer = Viewer(user_role="client", chat_id=world.chat(whatsapp_chat).pk)
    hits = recall(query=query, viewer=viewer, embedder=HashingEmbedder(), min_similarity=0.1).hits
    return [hit.content for hit in hits if not hit.content.startswith("answer to:")]


def test_a_memory_made_private_after_it_was_ranked_is_not_recalled(world: World) -> None:
    world.remember(GODFATHER, FACT)
    Memory.objects.update(visibility="public")
    world.say(CLIENT, "hello")
    assert found(world, CLIENT, "Where is the spare key?") == [FACT]

    with right_after(
        "WITH chosen",
        lambda: memory_set_visibility(
            memory_id=Memory.objects.get().pk, visibility="owner", actor=SYSTEM
        ),
    ) as followed:
        assert found(world, CLIENT, "Where is the spare key?") == []
    assert followed
    assert Memory.objects.get().visibility == "owner"


def test_a_message_taken_back_after_it_was_ranked_is_not_recalled(world: World) -> None:
    world.say(CLIENT, SAID)
    assert found(world, CLIENT, "Who keeps parrots?") == [SAID]

    with right_after(
        "WITH around",
        lambda: message_revoke(
            message=Message.objects.get(content=SAID),
            chat_memory=world.rules.chat_memory,
            now=timezone.now(),
        ),
    ) as followed:
        assert found(world, CLIENT, "Who keeps parrots?") == []
    assert followed


@pytest.mark.parametrize("question", ["Where is the spare key?", "/search spare key", "/memories"])
def test_who_is_no_godfather_any_more_is_answered_as_a_client(world: World, question: str) -> None:
    """The message came in before the setting was changed, and is answered after it."""
    world.remember(GODFATHER, FACT)
    world.say(GODFATHER, "/reset")
    world.receive(message_from(GODFATHER, question))
    assert Turn.objects.latest("id").user_role == "godfather"

    world.with_chat_memory(godfather=frozenset({CLIENT}))
    world.work()

    turn = Turn.objects.latest("id")
    assert turn.user_role == "client"
    assert turn.state == "sent"
    assert (
        "flowerpot"
        not in f"{turn.replay.prompt} {turn.replay.recalled} {world.provider.sent[-1].text}"
    )
