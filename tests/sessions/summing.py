"""What the tests of summaries share."""

from __future__ import annotations

from sessions_app.models import SummarizationMetadata
from tests.world import CLIENT, World


def summaries(whatsapp_chat: str = CLIENT) -> list[SummarizationMetadata]:
    made = SummarizationMetadata.objects.filter(session__chat__whatsapp_chat=whatsapp_chat)
    return list(made.select_related("summary_message").order_by("session", "number"))


def talk_to(world: World, count: int, start: int = 1) -> None:
    """So many exchanges, of two messages each."""
    for number in range(start, start + count):
        world.say(CLIENT, f"fact {number}")
