"""In a group what one member said is that member's: "I" in it is nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.base import OfflineChatModel
from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.text.phone_numbers import number_shown
from tests.world import CLIENT, GODFATHER, World

pytestmark = pytest.mark.usefixtures("default_embedder")

GROUP_ID = "120363000000000001"
GROUP = f"{GROUP_ID}@g.us"
PHONES = {"Dana": "15550100123", "Avi": "15550100456", "Noa": "15550100789"}


def in_group(world: World, name: str, text: str, **changes: Any) -> list[str]:
    party = Party(phone=PHONES[name], name=changes.pop("called", name))
    return world.say(GROUP, text, party=party, group_id=GROUP_ID, mentions_us=True, **changes)


TOLD_OF_THEMSELVES = [
    ("Dana", "remember that I'm allergic to nuts", "am I allergic to nuts?"),
    ("Dana", "recuerda que soy alérgica a las nueces", "¿soy alérgico a las nueces?"),
    ("Dana", "תזכור שאני אלרגית לאגוזים", "אני אלרגי לאגוזים?"),
    ("Dana", "ricorda che vivo a Roma", "vivo a Roma?"),
]


@pytest.mark.parametrize(("name", "told", "asked"), TOLD_OF_THEMSELVES)
def test_what_a_member_says_of_themselves_is_told_as_theirs(
    world: World, name: str, told: str, asked: str
) -> None:
    """In whatever language: "I" in it is never who asks."""
    in_group(world, name, told)
    fact = Memory.objects.get().content
    in_group(world, name, "/reset")
    in_group(world, "Avi", asked)
    system = world.prompt()[0].content
    assert f"(memory of {name}, " in system
    assert "said by this person" not in system
    assert "whoever asks now" in system
    world.use(chat_model=OfflineChatModel())
    (reply,) = in_group(world, "Avi", asked)
    assert f"• {name}: {fact}" in reply


def test_members_are_told_apart(world: World) -> None:
    """By name, two of one name by their numbers, and who has no name by the number alone."""
    facts = {"Dana": "Tuesday", "Avi": "Friday", "Noa": "Monday"}
    names = {"Dana": "Kim", "Avi": "Kim", "Noa": ""}
    for name, day in facts.items():
        in_group(world, name, f"/remember my shift is on {day}", called=names[name])
    # The owner is told who said it, and a client of another chat nothing.
    assert "(memory of Kim" in world.seen_by_model(GODFATHER, "whose shift is on Tuesday?")
    assert "Kim" not in world.seen_by_model(CLIENT, "whose shift is on Tuesday?")
    world.use(chat_model=OfflineChatModel())
    (reply,) = in_group(world, "Avi", "when is my shift?", called="Kim")
    for name, day in facts.items():
        who = f"{names[name]} {number_shown(PHONES[name] + '@c.us')}".strip()
        assert f"• {who}: my shift is on {day}" in reply
    for command in ("/search shift", "/memories", "/forget shift"):
        assert in_group(world, "Noa", command, called="")[0].count("from Kim") == 2


def test_a_fact_whose_message_is_gone_is_still_a_members(world: World) -> None:
    in_group(world, "Dana", "remember that I'm allergic to nuts")
    Memory.objects.update(source_message_id=None)
    in_group(world, "Avi", "am I allergic to nuts?")
    assert "(memory of a member, " in world.prompt()[0].content


def test_a_message_of_a_member_is_recalled_with_their_name(world: World) -> None:
    in_group(world, "Dana", "I'm allergic to walnuts")
    in_group(world, "Dana", "/reset")
    in_group(world, "Avi", "who is allergic to walnuts?")
    (line,) = [each for each in world.prompt()[0].content.splitlines() if "(they wrote, " in each]
    assert line.endswith(") Dana: I'm allergic to walnuts")
