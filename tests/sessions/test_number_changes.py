"""WhatsApp announces that a number changed: two people never become one, in any order."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.models import Chat
from tests.events import moved
from tests.world import CLIENT, GODFATHER, World, remember

NUMBERS = {name: f"1555010030{place}" for place, name in enumerate("ABCD")}
IDS = {name: f"US.2000000000000000000{place}" for place, name in enumerate("RYD")}
WORDS = {"R": "lupus", "Y": "mazda", "D": "tango"}


@dataclass
class Town:
    """People (R, Y, D) and their numbers (A to D), at a time that goes on with each step.

    "Y@A": Y writes from A. "g:Y@A": by Green API, which shows no ids. "Y!@A": with the user id
    even where the others come without. "A>B": the change is announced; "A>B-2": as of two steps
    ago.
    """

    world: World
    with_ids: bool
    told: set[str] = field(default_factory=set)
    now: datetime = field(default_factory=lambda: timezone.now() - timedelta(minutes=30))

    def step(self, step: str) -> None:
        self.now += timedelta(seconds=30)
        if ">" in step:
            change, _, ago = step.partition("-")
            gone, come = (Party(phone=NUMBERS[each]) for each in change.split(">"))
            at = self.now - int(ago or 0) * timedelta(seconds=30)
            self.world.receive(moved(gone, come, at=at))
            return
        who = step.partition("@")[0].strip("g:!")
        self.seen(step, f"/remember my word is {WORDS[who]}" if who not in self.told else "hello")
        self.told.add(who)

    def seen(self, step: str, text: str) -> str:
        person, _, number = step.partition("@")
        who, phone = person.strip("g:!"), NUMBERS[number]
        is_green = person.startswith("g:")
        shows_id = "!" in person or (self.with_ids and not is_green)
        provider = {"provider": "green", "number_id": "1101000001"} if is_green else {}
        party = Party(phone=phone, bsuid=IDS[who] if shows_id else None, name=who)
        address = f"{phone}@c.us"
        replies = self.world.say(address, text, party=party, timestamp=self.now, **provider)
        prompts = getattr(self.world.dependencies.chat_model, "requests")  # noqa: B009
        read = [message.content for message in prompts[-1].messages] if prompts else []
        return "\n".join([*read, *replies])


# The steps, and who then asks from where; in brackets: those whose own word is lost to them, as
# nothing shows that it is theirs.
BOTH = [True, False]
ORDERS: list[tuple[str, str, list[bool]]] = [
    ("R@B Y@A A>B", "Y@B", BOTH),
    ("R@B Y@A A>B A>B", "Y@B", BOTH),
    ("R@B Y@A A>B A>B-1", "Y@B", BOTH),
    ("R@B Y@A A>B Y@B A>B-2", "Y@B", BOTH),
    ("R@B Y@A A>B R@C", "Y@B R@C", [True]),
    ("R@B Y@A A>B Y@B R@C", "R@C Y@B", [True]),
    ("R@B Y@A A>B R@C", "Y@B (R@C)", [False]),
    ("g:R@B Y@A A>B", "Y@B g:Y@B", BOTH),
    ("g:R@B Y@A A>B Y@B", "g:Y@B", BOTH),
    ("R@B g:Y@A A>B", "g:Y@B", BOTH),
    # The old owner is back.
    ("R@B Y@A A>B Y@B R@B", "R@B (Y@A)", [True]),
    ("R@B Y@A A>B R@C C>B", "R@B", [True]),
    # The message comes before the announcement.
    ("R@B Y@A Y@B A>B-1", "Y@B R@C", [True]),
    ("Y@A Y@B A>B-1", "Y@B", [True]),
    ("Y@A g:Y@B A>B-2", "Y@B g:Y@B", [False]),
    # Onwards, back, and whoever has the numbers next.
    ("Y@A A>B B>C D@B", "Y@C D@B", BOTH),
    ("R@B Y@A A>B Y@B B>C D@B D@A", "Y@C (D@A)", BOTH),
    ("Y@A A>B Y@B B>C D@A A>B", "D@B Y@C", BOTH),
    ("Y@A A>B B>A D@B", "Y@A D@B", BOTH),
    ("Y@A A>B D@A A>B", "D@B", BOTH),
    ("Y@A A>B D@A A>B", "D@B Y@C", [True]),
    ("Y@A A>B D@A D>A", "(D@A)", BOTH),
    # Announcements in the wrong order, and late ones.
    ("Y@A B>C A>B-3 D@B", "Y@C D@B", BOTH),
    ("R@B Y@A B>C A>B-3 D@B", "(Y@C) D@B", BOTH),
    ("Y@A A>B B>A A>B-3 D@B", "Y@A D@B", BOTH),
    ("Y@A A>B B>C A>B-3 D@B", "Y@C D@B", BOTH),
    # The user id shows who has the number, where the chat there has none.
    ("R@B Y!@A Y!@B", "Y!@B", [False]),
    ("R@B Y!@A A>C Y!@B", "Y!@B", [False]),
    ("g:R@B Y@A Y@B", "Y@B g:Y@B", [True]),
]


@pytest.mark.parametrize(
    ("order", "asked", "with_ids"),
    [(order, asked, with_ids) for order, asked, ways in ORDERS for with_ids in ways],
)
def test_nobody_is_told_anothers_fact(order: str, asked: str, with_ids: bool, world: World) -> None:
    town = Town(world, with_ids)
    for step in order.split():
        town.step(step)
    town.now += timedelta(minutes=1)
    for step in asked.split():
        seen = town.seen(step.strip("()"), "what is my word?")
        who = step.strip("g:!()").partition("@")[0].strip("!")
        others = {word for name, word in WORDS.items() if name != who}
        assert not [word for word in others if word in seen], f"{step}: {seen}"
        assert step.startswith("(") or who not in town.told or WORDS[who] in seen, step


def test_a_chat_that_holds_only_memories_stays_its_persons(world: World) -> None:
    """Nobody wrote from the new number, but a program has stored what it knows of its holder."""
    world.say(CLIENT, "hello")
    world.talk("hello", f"{NUMBERS['B']}@c.us")
    there = world.chat(f"{NUMBERS['B']}@c.us")
    remember(world, "the diagnosis is lupus", "chat", there.whatsapp_chat)
    there.sessions.all().delete()
    world.receive(moved(Party(phone=CLIENT[:11]), Party(phone=NUMBERS["B"])))
    seen = world.seen_by_model(f"{NUMBERS['B']}@c.us", "What is the diagnosis?")
    assert "lupus" not in seen
    assert Chat.objects.count() == 2


def test_a_clients_change_to_the_owners_number_leaves_the_owner_their_chat(world: World) -> None:
    world.remember(GODFATHER, "the safe's code is 7713")
    world.remember(CLIENT, "my car is a mazda")
    owners = world.chat(GODFATHER)
    world.receive(moved(Party(phone=CLIENT[:11]), Party(phone=GODFATHER[:11])))
    world.say(GODFATHER, "hello")
    assert world.chat(GODFATHER) == owners
    later = timezone.now() + timedelta(seconds=5)
    next_holder = world.seen_by_model(CLIENT, "What car do I have?", timestamp=later)
    assert "mazda" not in next_holder
    assert Chat.objects.count() == 3


def test_the_owners_conversation_moves_to_their_new_number(world: World) -> None:
    """As operations.md says: the settings have the new number before WhatsApp announces it."""
    world.say(CLIENT, "we spoke of the lemon tree")
    world.receive(moved(Party(phone=CLIENT[:11]), Party(phone=GODFATHER[:11])))
    assert "lemon" in world.seen_by_model(GODFATHER, "What did we speak of?")


def test_who_left_a_number_for_the_owners_is_reached_by_their_id(world: World) -> None:
    world.say(GODFATHER, "hello")
    world.say(CLIENT, "hello", party=Party(phone=CLIENT[:11], bsuid=IDS["Y"]))
    world.receive(moved(Party(phone=CLIENT[:11]), Party(phone=GODFATHER[:11])))
    left = Chat.objects.exclude(whatsapp_chat=GODFATHER).get()
    assert (left.whatsapp_chat, left.client_phone) == (f"{IDS['Y']}@bsuid", "")


@pytest.mark.parametrize("writes_first", [False, True])
@pytest.mark.parametrize("is_taken", [False, True])
def test_a_change_that_names_the_new_user_id(
    writes_first: bool, is_taken: bool, world: World
) -> None:
    """With a new number Meta gives a new id; what is written may come before the announcement."""
    town = Town(world, with_ids=True)
    for step in ["R@B"] * is_taken + ["Y@A"]:
        town.step(step)
    at = town.now + timedelta(seconds=10)
    old = Party(phone=NUMBERS["A"], bsuid=IDS["Y"])
    new = Party(phone=NUMBERS["B"], bsuid="US.30000000000000000001")
    here = {"party": new, "timestamp": at + timedelta(seconds=20)}
    if writes_first:
        assert "mazda" not in str(world.say(f"{NUMBERS['B']}@c.us", "hello", **here))
    world.receive(moved(old, new, at=at))
    seen = world.seen_by_model(f"{NUMBERS['B']}@c.us", "what is my word?", **here)
    assert ("mazda" in seen, "lupus" in seen) == (True, False)
    town.now = at + timedelta(minutes=2)
    assert is_taken == ("lupus" in town.seen("R@C", "what is my word?"))
    assert world.chat(f"{NUMBERS['B']}@c.us").addresses.filter(address__endswith="@bsuid").exists()
