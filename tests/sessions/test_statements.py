"""How many statements a message and its answer take: one more of them slows every message."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db(transaction=True)

MAX_TO_TAKE_IN = 17
MAX_TO_ANSWER = 75


def statements(queries: CaptureQueriesContext) -> str:
    return "\n".join(query["sql"][:160] for query in queries)


def test_a_message_in_a_conversation_takes_few_statements(world: World) -> None:
    for number in range(6):
        world.say(CLIENT, f"number {number} about the invoice of March")
    world.remember(CLIENT, "The invoice of March was paid")
    with CaptureQueriesContext(connection) as queries:
        world.receive(message_from(CLIENT, "what about the invoice of March?"))
    assert len(queries) <= MAX_TO_TAKE_IN, statements(queries)
    with CaptureQueriesContext(connection) as queries:
        world.work()
    assert len(queries) <= MAX_TO_ANSWER, statements(queries)
    assert "paid" in "\n".join(message.content for message in world.prompt())
