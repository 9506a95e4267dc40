"""A number after a list means that entry of it, and is never searched for as a word."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.conversations.phrases import TEXTS
from sessions_app.models import Turn
from sessions_app.models.chats import Speaker
from sessions_app.turns.commands.replies import numbers_in
from tests.tables import table
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from, new_world

MEETING = "the meeting is on 2 May"
BROTHER = "Ron is my brother"
HAIFA = "Ron lives in Haifa"


@pytest.fixture(scope="module")
def facts(module_rows: None) -> None:
    world = new_world()
    for fact in (MEETING, BROTHER, HAIFA):
        world.remember(CLIENT, fact)


@pytest.fixture
def told(facts: None, world: World) -> World:
    return world


def one(world: World, chat: str, text: str) -> str:
    (reply,) = world.say(chat, text)
    return reply


def kept() -> set[str]:
    return set(Memory.objects.values_list("content", flat=True))


def entry(reply: str, number: int) -> str:
    """The memory with this number in a list that was sent."""
    (found,) = re.findall(rf"^{number}\. (.*)$", reply, re.MULTILINE)
    return str(found)


def is_text(name: str, reply: str) -> bool:
    """Whether the reply is this text of ours, in any language."""
    patterns = (re.sub(r"\\{\w+\\}", ".*", re.escape(text)) for text in TEXTS[name].values())
    return any(re.fullmatch(pattern, reply, re.DOTALL) for pattern in patterns)


@table(
    "number",
    ["2", "#2", "2.", "2)", "(2)", "[2]", "no. 2", "No 2", "number 2", "the 2nd", "2️⃣", "②", "２"]
    + ["٢", "۲", "२", "02", "מספר 2", "מס' 2", "את 2", "\u200f2\u200f", "номер 2", "№ 2"],
)
def test_a_number_is_read_as_people_write_it(number: str) -> None:
    assert numbers_in(number) == [2]


@pytest.mark.parametrize("number", ["2", "the 2nd", "٢", "\u200f2\u200f"])
def test_a_number_after_a_list_means_its_entry(told: World, number: str) -> None:
    asked = one(told, CLIENT, "/forget Ron")
    meant = entry(asked, 2)
    key = Memory.objects.get(content=meant).pk.hex[:8]
    done = one(told, CLIENT, f"/forget {number}")
    assert is_text("forgotten_number", done)
    assert key in done
    assert kept() == {MEETING, BROTHER, HAIFA} - {meant}


@pytest.mark.parametrize("command", ["/memories", "/search Ron", "/export", "/forget Ron"])
def test_every_list_of_memories_can_be_named_by_its_numbers(told: World, command: str) -> None:
    meant = entry(one(told, CLIENT, command), 2)
    assert "number 2" in one(told, CLIENT, "/forget 2")
    assert kept() == {MEETING, BROTHER, HAIFA} - {meant}


def test_without_a_list_a_number_forgets_nothing(world: World) -> None:
    facts = {MEETING, "code 7741", "closed at 12:30", "it costs ₪2", "from 2-5"}
    for fact in facts:
        world.remember(CLIENT, fact)
    for number in ("2", "#2", "2.", "٢", "no. 2", "7741", "12:30", "₪2", "2-5"):
        assert "Nothing was forgotten" in one(world, CLIENT, f"/forget {number}"), number
    assert kept() == facts


def test_several_numbers_at_once_forget_nothing(told: World) -> None:
    one(told, CLIENT, "/forget Ron")
    for numbers in ("1 2", "1,2", "1 and 2", "1-2", "1/2", "1, 2.", "1 ו-2"):
        assert is_text("forget_one_number", one(told, CLIENT, f"/forget {numbers}")), numbers
    assert kept() == {MEETING, BROTHER, HAIFA}


def test_a_phone_number_is_searched_for(world: World) -> None:
    for number in ("054-1234567", "+972 50 123 4567", "0521234567"):
        world.remember(CLIENT, f"the plumber has {number}")
        one(world, CLIENT, "/memories")
        assert "Forgotten (" in one(world, CLIENT, f"/forget {number}")
    assert kept() == set()


def test_an_id_stays_an_id(told: World) -> None:
    one(told, CLIENT, "/memories")
    memory = Memory.objects.get(content=HAIFA)
    Memory.objects.filter(pk=memory.pk).delete()
    memory.pk = memory.pk.__class__("12345678" + memory.pk.hex[8:])
    memory.save(force_insert=True)
    assert one(told, CLIENT, "/forget 12345678") == "🗑️ Forgotten (12345678)."
    assert kept() == {MEETING, BROTHER}


def test_numbers_stay_when_an_entry_goes(told: World) -> None:
    listed = one(told, CLIENT, "/memories")
    assert "number 1" in one(told, CLIENT, "/forget 1")
    assert "number 3" in one(told, CLIENT, "/forget 3")
    assert kept() == {entry(listed, 2)}
    assert is_text("forget_gone", one(told, CLIENT, "/forget 1"))
    assert is_text("forget_not_listed", one(told, CLIENT, "/forget 4"))
    assert kept() == {entry(listed, 2)}


def test_a_page_goes_on_counting(world: World) -> None:
    for number in range(12):
        world.remember(CLIENT, f"fact {'abcdefghijkl'[number]} is true")
    one(world, CLIENT, "/memories")
    meant = entry(one(world, CLIENT, "/memories 2"), 11)
    assert is_text("forget_not_listed", one(world, CLIENT, "/forget 2"))
    one(world, CLIENT, "/forget 11")
    assert len(kept()) == 11
    assert meant not in kept()


def test_a_list_is_good_for_ten_minutes(told: World) -> None:
    one(told, CLIENT, "/forget Ron")
    later = timezone.now() - timedelta(minutes=10, seconds=5)
    Turn.objects.update(finished_at=later, created_at=later, asked_at=later)
    assert is_text("forget_no_list", one(told, CLIENT, "/forget 2"))
    assert len(kept()) == 3


def test_a_number_that_was_written_in_time_counts_when_it_is_answered_late(told: World) -> None:
    meant = entry(one(told, CLIENT, "/forget Ron"), 2)
    told.receive(message_from(CLIENT, "/forget 2"))
    Turn.objects.filter(state="pending").update(asked_at=timezone.now() + timedelta(minutes=9))
    told.work()
    assert meant not in kept()


def test_a_list_that_may_not_have_arrived_is_not_counted_by(told: World) -> None:
    one(told, CLIENT, "/memories")
    one(told, CLIENT, "/forget Ron")
    Turn.objects.filter(pk=Turn.objects.latest("pk").pk).update(state="unconfirmed")
    assert is_text("forget_no_list", one(told, CLIENT, "/forget 2"))
    assert len(kept()) == 3


def test_a_list_of_another_chat_does_not_count(told: World) -> None:
    told.remember(OTHER_CLIENT, "the parcel weighs 2 kilograms")
    one(told, CLIENT, "/memories")
    assert is_text("forget_no_list", one(told, OTHER_CLIENT, "/forget 2"))
    assert len(kept()) == 4


def test_a_list_that_a_program_was_shown_in_the_persons_place_does_not_count(told: World) -> None:
    one(told, CLIENT, "/memories")
    turn = Turn.objects.latest("pk")
    speaker = Speaker(kind="token", name="a program").as_context()
    Turn.objects.filter(pk=turn.pk).update(context={**turn.context, **speaker})
    assert is_text("forget_no_list", one(told, CLIENT, "/forget 2"))
    assert len(kept()) == 3


def test_in_a_group_the_list_of_another_person_does_not_count(world: World) -> None:
    group = "120363000000000001@g.us"

    def say(phone: str, text: str) -> str:
        event = message_from(group, text, party=Party(phone=phone, name=phone))
        world.receive(replace(event, group_id=group, mentions_us=True))
        before = len(world.provider.sent)
        world.work()
        return "\n".join(sent.text for sent in world.provider.sent[before:])

    for fact in (BROTHER, HAIFA):
        say("15550100123", f"/remember {fact}")
    meant = entry(say("15550100123", "/memories"), 2)
    assert is_text("forget_no_list", say("15550100456", "/forget 2"))
    assert kept() == {BROTHER, HAIFA}
    say("15550100123", "/forget 2")
    assert kept() == {BROTHER, HAIFA} - {meant}


def test_a_message_that_was_found_is_no_memory(told: World) -> None:
    one(told, CLIENT, "Ron has bought a parrot from Brazil")
    found = one(told, CLIENT, "/search parrot")
    number = next(n for n in range(1, 10) if "parrot" in entry(found, n))
    assert is_text("forget_said", one(told, CLIENT, f"/forget {number}"))
    assert len(kept()) == 3


def test_after_a_list_of_the_model_no_number_is_guessed(told: World) -> None:
    one(told, CLIENT, "/memories")
    model = ScriptedChatModel(["You could:\n1. call Ron\n2. write to Ron"])
    told.use(chat_model=model)
    one(told, CLIENT, "what can I do?")
    assert is_text("forget_no_list", one(told, CLIENT, "/forget 2"))
    assert len(kept()) == 3


def test_hebrew_lists_have_numbers_too(world: World) -> None:
    facts = {"הספק משלם במזומן", "הספק גר בחיפה", "הפגישה ב-2 במאי"}
    for fact in facts:
        one(world, CLIENT, f"/remember {fact}")
    assert is_text("forget_no_list", one(world, CLIENT, "/forget 2"))
    meant = entry(one(world, CLIENT, "/forget הספק"), 2)
    assert "שכחתי את מספר 2" in one(world, CLIENT, "/forget מספר 2")
    assert kept() == facts - {meant}


def test_what_a_client_told_is_shown_to_the_owner_before_it_goes(world: World) -> None:
    world.remember(CLIENT, "the blue sofa needs a new cover")
    asked = one(world, GODFATHER, "/forget sofa")
    assert "from Test User" in asked
    assert len(kept()) == 1
    assert "number 1" in one(world, GODFATHER, "/forget 1")
    assert kept() == set()


def test_what_is_public_is_refused_by_its_number_too(world: World) -> None:
    world.remember(GODFATHER, "we close at noon")
    Memory.objects.update(visibility="public")
    assert "we close" in one(world, CLIENT, "/memories")
    assert "only the business" in one(world, CLIENT, "/forget 1")
    assert len(kept()) == 1


@table(
    ("text", "numbers"),
    [
        ("10 11 12 13", [10, 11, 12, 13]),
        ("054-1234567", None),
        ("054 123 4567", None),
        ("+1 555 010", None),
        ("2026-05-02", None),
        ("02.05.2026", None),
        ("2.5", [2, 5]),
        ("room 2", None),
        ("2 sofas", None),
        ("?!", None),
        ("", None),
        ("9" * 5_000, None),
    ],
)
def test_shapes_of_numbers(text: str, numbers: list[int] | None) -> None:
    assert numbers_in(text) == numbers
