"""The memories that an answer didn't use: on the page that explains it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Turn
from tests.dashboard.staff import staff_with
from tests.shown import words, words_of
from tests.world import CLIENT, OTHER_CLIENT, World, new_world, remember

pytestmark = pytest.mark.django_db
QUESTION = "When does TestCorp pay its invoices?"
READS = ("sessions_app.view_turn", "memories_app.view_memory")


def near(turn: Turn) -> str:
    return f"/admin/sessions_app/turn/{turn.pk}/near/"


def rows(answer: Any) -> list[str]:
    found = re.findall(r'<li class="near">.*?</li>', answer.content.decode(), re.S)
    return [words_of(row) for row in found]


@pytest.fixture(scope="module")
def answered(module_rows: None) -> None:
    world = new_world()
    remember(world, "TestCorp pays its invoices within 30 days")
    for what in ("roses", "tomatoes", "a swing", "a pond", "a fence", "lemons"):
        remember(world, f"In the garden beside the house there are old trees and {what}")
    world.say(CLIENT, QUESTION)


@pytest.fixture
def asked(answered: None) -> Turn:
    return Turn.objects.latest("id")


def test_the_nearest_five_that_were_not_used_are_marked_as_too_weak(
    admin_client: Client, asked: Turn
) -> None:
    assert [each["content"] for each in asked.replay.recalled if each["source"] == "memory"] == [
        "TestCorp pays its invoices within 30 days"
    ]
    answer = admin_client.get(near(asked))
    shown = rows(answer)
    assert len(shown) == 5
    assert all("old trees" in row and "too weak to be used" in row for row in shown)
    assert "TestCorp pays" not in words(answer)
    assert re.search(r"Found now, .* A memory is used from a score of 0\.\d\d on\.", words(answer))
    scores = [float(re.findall(r"Score (\d\.\d\d)", row)[0]) for row in shown]
    assert scores == sorted(scores, reverse=True)


def test_one_that_was_added_since_is_told_apart(
    admin_client: Client, asked: Turn, world: World
) -> None:
    remember(world, "TestCorp pays its invoices late in December")
    shown = rows(admin_client.get(near(asked)))
    assert "TestCorp pays its invoices late in December" in shown[0]
    assert "would be used now" in shown[0]
    assert "too weak to be used" in shown[1]


def test_nothing_is_shown_that_the_chat_may_not_be_answered_with(
    admin_client: Client, asked: Turn, world: World
) -> None:
    world.say(OTHER_CLIENT, "Hello")
    remember(world, "TestCorp pays its invoices to others weekly", "chat", OTHER_CLIENT)
    remember(world, "TestCorp pays its invoices to the owner daily", "owner")
    shown = words(admin_client.get(near(asked)))
    assert "weekly" not in shown
    assert "daily" not in shown


def test_the_page_gets_the_list_alone_and_leads_to_it(admin_client: Client, asked: Turn) -> None:
    page = admin_client.get(f"/admin/sessions_app/turn/{asked.pk}/change/").content.decode()
    assert f'data-live-part="{near(asked)}"' in page
    part = admin_client.get(near(asked), headers={"X-Requested-With": "live"})
    assert len(rows(part)) == 5
    assert "<html" not in part.content.decode()


def test_a_near_miss_can_be_corrected_in_place(admin_client: Client, asked: Turn) -> None:
    part = admin_client.get(near(asked), headers={"X-Requested-With": "live"}).content.decode()
    form = re.search(r'action="(/admin/sessions_app/turn/\d+/memory/[^"]+)"', part)
    seen = re.search(r'name="seen" value="(\w+)"', part)
    assert form is not None
    assert seen is not None
    admin_client.post(form[1], {"content": "TestCorp pays by cheque", "seen": seen[1]})
    assert Memory.objects.filter(content="TestCorp pays by cheque").exists()


def test_an_erased_question_is_told(admin_client: Client, asked: Turn) -> None:
    Turn.objects.filter(pk=asked.pk).update(message=None)
    assert "The question isn't kept any more" in words(admin_client.get(near(asked)))
    page = admin_client.get(f"/admin/sessions_app/turn/{asked.pk}/change/").content.decode()
    assert "data-live-part" not in page


def test_opening_the_page_is_recorded(admin_client: Client, asked: Turn) -> None:
    admin_client.get(near(asked))
    event = AuditEvent.objects.filter(action="conversation.read").latest("id")
    assert (event.object_id, event.details) == (str(asked.pk), {"near_misses": True})


@pytest.mark.parametrize("right", READS)
def test_who_may_not_see_both_answers_and_memories_is_refused(asked: Turn, right: str) -> None:
    reader = staff_with(right)
    assert reader.get(near(asked)).status_code == 403
    page = reader.get(f"/admin/sessions_app/turn/{asked.pk}/change/")
    assert "Near misses" not in words(page)


def test_who_may_only_look_is_offered_no_change(asked: Turn) -> None:
    answer = staff_with(*READS).get(near(asked))
    assert len(rows(answer)) == 5
    assert "Edit…" not in words(answer)
    assert "Erase…" not in words(answer)
