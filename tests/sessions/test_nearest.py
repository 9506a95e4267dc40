"""A question that recalls too little takes the nearest texts to the model, marked as unsure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories_app.models import Memory
from sessions_app.inbox.needs import is_unknown
from sessions_app.models import Turn
from tests.world import CLIENT, OTHER_CLIENT, World, asked

pytestmark = pytest.mark.django_db(transaction=True)

LOCKER = "The locker of the tall courier is number 17"
PERHAPS = "perhaps about something else"


def test_a_model_gets_the_nearest_below_the_threshold(world: World) -> None:
    world.with_answer_rules(min_similarity=1.1, nearest=2)
    for fact in (LOCKER, "The locker of the old courier is number 4", "The gym shuts at noon"):
        world.remember(CLIENT, fact)
    world.remember(OTHER_CLIENT, "The locker of the new courier is number 9")
    turn = asked(world, "which locker is the courier's?")
    lines = [line for line in world.prompt()[0].content.splitlines() if PERHAPS in line]
    assert {line.rpartition(" ")[2] for line in lines} == {"17", "4"}
    assert [entry["nearest"] for entry in turn.replay.recalled] == [True, True]
    # What is only near tells staff of a gap all the same.
    assert Turn.objects.filter(is_unknown(), pk=turn.pk).exists()


def test_what_is_above_the_threshold_counts_first(world: World) -> None:
    world.remember(CLIENT, LOCKER)
    world.remember(CLIENT, "The locker of the small courier is number 4")
    question = "which number has the locker of the tall courier?"
    sure, near = (entry["score"] for entry in _recalled(world, question, bar=0.0))
    entries = _recalled(world, f"Tell me, {question}", bar=(sure + near) / 2)
    assert [entry.get("nearest", False) for entry in entries] == [False, True]
    assert "17" in entries[0]["content"]
    assert not Turn.objects.filter(is_unknown(), pk=Turn.objects.latest("id").pk).exists()


def _recalled(world: World, question: str, *, bar: float) -> list[dict[str, Any]]:
    world.with_answer_rules(min_similarity=bar, nearest=2)
    recalled: list[dict[str, Any]] = asked(world, question).replay.recalled
    return [entry for entry in recalled if entry["source"] == "memory"]


def test_a_wide_mark_asks(world: World) -> None:
    world.with_answer_rules(min_similarity=1.1, nearest=1)
    world.remember(CLIENT, "快递员的柜子是17号")
    (entry,) = asked(world, "快递员的柜子是几号？谢谢").replay.recalled
    assert entry["nearest"]


def test_thanks_take_none_along(world: World) -> None:
    world.with_answer_rules(min_similarity=1.1, nearest=3)
    world.remember(CLIENT, LOCKER)
    assert asked(world, "thank you so much").replay.recalled == []


def test_a_need_takes_the_nearest_along_and_is_no_unknown_question(world: World) -> None:
    """“I've a flat tyre, help” asks for something that only a model understands."""
    world.with_answer_rules(min_similarity=1.1, nearest=3)
    world.remember(CLIENT, LOCKER)
    turn = asked(world, "I have a parcel and no key for the locker, help")
    assert [entry["nearest"] for entry in turn.replay.recalled] == [True]
    assert PERHAPS in world.prompt()[0].content
    assert not Turn.objects.filter(is_unknown(), pk=turn.pk).exists()


def test_what_was_said_last_stands_first_whichever_is_more_like_the_question(world: World) -> None:
    for fact in ("Marina is not married, and lives alone", "Marina has had a wedding in June"):
        world.remember(CLIENT, fact)
    world.with_answer_rules(min_similarity=0.0, nearest=2)
    asked(world, "is Marina married, or does she live alone?")
    prompt = world.prompt()[0].content
    assert 0 < prompt.index("a wedding in June") < prompt.index("lives alone")


@pytest.mark.parametrize("nearest", [0, 3])
def test_what_is_only_near_hides_nothing_that_has_ended(world: World, nearest: int) -> None:
    for fact in ("The wifi code of the office is 1234", "The wifi router stands in the cellar"):
        world.remember(CLIENT, fact)
    ended = Memory.objects.filter(content__contains="1234")
    ended.update(valid_until=timezone.now() - timedelta(days=3))
    world.with_answer_rules(min_similarity=0.5, nearest=nearest)
    turn = asked(world, "what is the wifi code of the office?")
    wanted = [("1234", False), ("cellar", True)][: 1 + bool(nearest)]
    told = [(each["content"], each.get("nearest", False)) for each in turn.replay.recalled]
    assert [(text.split()[-1], near) for text, near in told] == wanted
    assert "ended) The wifi code of the office is 1234" in world.prompt()[0].content


LAMPS = ("a red lamp", "a green lamp", "a tall lamp", "two small lamps", "a desk lamp")


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("which lamps has Dana ordered?", 5),
        ("איזה מנורות דנה הזמינה? lamp", 5),
        ("quelles lampes Dana a commandées? lamp", 5),
        ("when has Dana ordered the lamp?", 1),
    ],
)
@pytest.mark.parametrize("bar", [0.0, 1.1])
def test_a_question_for_several_things_takes_more_along(
    world: World, question: str, told: int, bar: float
) -> None:
    for lamp in LAMPS:
        world.remember(CLIENT, f"Dana ordered {lamp}")
    world.with_answer_rules(top_k=2, min_similarity=bar, nearest=2)
    entries = [each["content"] for each in asked(world, question).replay.recalled]
    assert len(set(entries)) == max(told, 2)


def test_a_question_for_several_things_hears_of_what_has_ended(world: World) -> None:
    for city in ("Haifa", "Eilat"):
        world.remember(CLIENT, f"Dana lives in the city of {city}")
    Memory.objects.filter(content__contains="Haifa").update(valid_until=timezone.now())
    world.with_answer_rules(min_similarity=0.0)
    for question, hears in (("which cities has Dana lived in?", 2), ("where does Dana live?", 1)):
        turn = asked(world, question)
        assert sum(each["source"] == "memory" for each in turn.replay.recalled) == hears
        assert ("this person, ended" in world.prompt()[0].content) == (hears > 1)
