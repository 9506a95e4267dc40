"""Commands with very long arguments: a stranger's text never costs more than its length."""

from __future__ import annotations

import pytest

from memories_app.facts.facts import fact_key
from memories_app.models import Memory
from tests.world import CLIENT, World

MARKS = (".", ". ", ", ", ";", "…", " ", "\n", "-", "'", "[", "a", "א", ", and ")


def test_an_argument_beyond_any_memory_is_refused_unread(world: World) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    for command in ("forget", "search", "memories", "export"):
        (answer,) = world.say(CLIENT, f"/{command} {'.' * 60_000}b")
        assert "at most 8192" in answer
    assert "8192" in world.say(CLIENT, f"/forget {'א' * 60_000}")[0]
    assert Memory.objects.count() == 1


def test_the_longest_argument_is_looked_for(world: World) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    (answer,) = world.say(CLIENT, f"/forget {'.' * 8_191}b")
    assert "at most" not in answer
    assert Memory.objects.count() == 1


@pytest.mark.parametrize("mark", MARKS)
def test_many_characters_are_read_in_linear_time(mark: str) -> None:
    """With a quadratic pattern, each of these would take hours."""
    text = f"x{mark * (400_000 // len(mark))}b"
    assert fact_key(text) == fact_key(f" {text.upper()} ...")
