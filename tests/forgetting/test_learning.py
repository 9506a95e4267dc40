"""What was forgotten isn't learned again by itself."""

from __future__ import annotations

import pytest

from memories_app.models import Memory
from sessions_app.models import ExtractionWork
from tests.extraction.learning import Learning, fact
from tests.world import CLIENT, World

SAID = "I own a boat in the harbour of Acre"


@pytest.fixture
def learning(world: World) -> Learning:
    return Learning(world)


def forget(learning: Learning) -> None:
    learning.world.forget("memory", Memory.objects.get().pk)


def test_a_forgotten_fact_is_not_learned_from_another_message(learning: Learning) -> None:
    learning.say(SAID, fact(SAID))
    forget(learning)
    learning.say(f"As I said: {SAID}", fact(SAID))
    assert not Memory.objects.exists()
    assert ExtractionWork.objects.latest("turn_id").outcome == "1 forgotten"


def test_a_person_may_tell_it_again(learning: Learning) -> None:
    learning.say(SAID, fact(SAID))
    forget(learning)
    learning.world.remember(CLIENT, SAID)
    assert Memory.objects.get().content == SAID


def test_what_is_forgotten_while_the_model_reads_is_not_stored(learning: Learning) -> None:
    learning.say(SAID, fact(SAID))
    learning.during = lambda: forget(learning)
    learning.say(f"As I said: {SAID}", fact(SAID))
    assert not Memory.objects.exists()
