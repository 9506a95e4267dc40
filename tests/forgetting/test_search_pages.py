"""Staff look for what is to be forgotten, and choose of what was found."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.text.terms import index_text
from sessions_app.forgetting import find_matches as searches
from sessions_app.forgetting.runs import MAX_ITEMS
from sessions_app.models import ForgetRun
from tests.copies import row_copy
from tests.forgetting.pages import FACT, NOBODY, OTHER, SEARCH, text
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(admin_client: Client) -> Client:
    return admin_client


def searched(staff: Client, words: str, **changes: Any) -> Any:
    given = {"words": words, "kinds": ["memory", "message"], "how": "words", **changes}
    return staff.post(SEARCH, given)


def test_by_search_with_words(world: World, staff: Client) -> None:
    world.remember(CLIENT, FACT)
    world.say(OTHER_CLIENT, f"Somebody told me: {FACT}")
    world.remember(GODFATHER, OTHER)
    shown = text(searched(staff, "yard trams"))
    assert FACT in shown
    assert OTHER not in shown
    assert "Somebody told me" in shown
    only = text(searched(staff, "yard tram", chat=OTHER_CLIENT))
    assert "Somebody told me" in only
    assert "/remember" not in only
    assert "Nothing matches" in text(searched(staff, "yard tram", until="2020-01-01"))
    assert "Nothing matches" in text(searched(staff, "giraffe"))
    event = AuditEvent.objects.filter(action="conversation.read").latest("id")
    assert event.details == {"list": "forget search", "searched": True}


def test_by_search_with_meaning(world: World, staff: Client) -> None:
    world.remember(GODFATHER, "TestCorp owes me 5000 shekels from invoice INV-001")
    world.say(CLIENT, "Our dog is called Rufus and he likes bones")
    assert "INV-001" in text(searched(staff, "What does TestCorp owe me?", how="meaning"))
    needed = searched(staff, "the dog", how="meaning", kinds=["message"])
    assert "within one chat only" in text(needed)
    found = searched(
        staff, "What is our dog called?", how="meaning", kinds=["message"], chat=CLIENT
    )
    assert "Rufus" in text(found)


def test_the_chosen_hits_or_all_of_them(world: World, staff: Client, monkeypatch: Any) -> None:
    facts = [f"{word} is kept in the blue shed" for word in ("Paint", "Rope", "Salt")]
    for fact in facts:
        world.remember(GODFATHER, fact)
    monkeypatch.setattr(searches, "MAX_SHOWN", 2)
    shown = text(searched(staff, "blue shed", kinds=["memory"]))
    assert "3 matches" in shown
    values = re.findall(r'name="chosen" value="([^"]+)"', shown)
    assert len(values) == 2
    given = {"words": "blue shed", "kinds": ["memory"], "how": "words"}
    one = staff.post(f"{SEARCH}choose/", {**given, "chosen": values[:1]})
    every = staff.post(f"{SEARCH}choose/", {**given, "all": "yes"})
    totals = [
        ForgetRun.objects.get(pk=each["Location"].split("/")[-3]).total for each in (one, every)
    ]
    assert totals == [1, 3]


@pytest.mark.slow
def test_more_than_can_be_forgotten_at_once_isnt_offered(staff: Client) -> None:
    shed = index_text("It is kept in the blue shed")
    memory = Memory.objects.create(
        content="It is kept in the blue shed",
        visibility="owner",
        fact_key="0",
        terms=shed.terms,
        term_count=shed.length,
    )
    row_copy(
        memory,
        MAX_ITEMS,
        memory_id="gen_random_uuid()",
        content="content || ' ' || number",
        fact_key="number::text",
    )
    shown = text(searched(staff, "blue shed", kinds=["memory"]))
    assert "At most 10000 are erased at once" in shown
    assert 'name="all"' not in shown
    given = {"words": "blue shed", "kinds": ["memory"], "how": "words", "all": "yes"}
    assert "At most 10000" in text(staff.post(f"{SEARCH}choose/", given))
    assert not ForgetRun.objects.exists()

    # Of a list neither, nor is anything else done with all of so many.
    every = {"_selected_action": str(Memory.objects.first().pk), "select_across": "1"}
    memories = reverse("admin:memories_app_memory_changelist")
    for action, told in (("forget_selected", "At most 10000"), ("pin", "at most 900")):
        answer = staff.post(memories, {**every, "action": action}, follow=True)
        assert told in text(answer)
    assert not ForgetRun.objects.exists()
    assert not Memory.objects.filter(pinned=True).exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"words": ""},
        {"words": "\x00"},
        {"words": "a" * 600},
        {"words": "!?"},
        {"chat": "15550009999@c.us"},
        {"since": "2026-13-45"},
        {"since": "9999-12-31", "until": "9999-12-31"},
        {"since": "0001-01-01"},
        {"since": "2026-02-02", "until": "2026-01-01"},
        {"kinds": ["nonsense"]},
        {"how": "magic"},
    ],
)
def test_bad_searches_are_told_plainly(staff: Client, changes: dict[str, Any]) -> None:
    answer = searched(staff, **{"words": "tram", **changes})
    assert answer.status_code == 200
    assert "errorlist" in text(answer) or "Nothing matches" in text(answer)


@pytest.mark.parametrize("chosen", [[], ["memory:no-id"], [f"chat:{NOBODY}"], ["\x00"]])
def test_forged_choices_are_refused(staff: Client, chosen: list[str]) -> None:
    given = {"words": "tram", "kinds": ["memory"], "how": "words", "chosen": chosen}
    answer = staff.post(f"{SEARCH}choose/", given)
    assert "Nothing is chosen" in text(answer)
    assert not ForgetRun.objects.exists()
