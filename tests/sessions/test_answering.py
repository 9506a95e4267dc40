"""A message comes in, is remembered, answered with what is known, and the answer goes out."""

from __future__ import annotations

from sessions_app.models import Turn
from tests.world import CLIENT, World


def test_a_message_is_answered_and_both_are_stored(world: World) -> None:
    assert world.say(CLIENT, "Hello") == ["answer to: Hello"]
    stored = [
        (message.role, message.content, message.order_num) for message in world.messages(CLIENT)
    ]
    assert stored == [("user", "Hello", 1), ("assistant", "answer to: Hello", 2)]
    assert Turn.objects.get().state == "sent"
