"""What jobs of the day cost in clicks, where no other test of a page counts them."""

from __future__ import annotations

import re

import pytest
from django.test import override_settings
from playwright.sync_api import Page, expect

from memories_app.models import Memory
from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.embedding.choice import embedder
from sessions_app.models import Chat, ForgetRun
from sessions_app.tasks import run_forgetting
from tests.browser.clicks import clicks, count_clicks
from tests.browser.visit import Visit
from tests.remembering import memory_update
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_clients_conversation_is_two_clicks_from_any_page(
    visit: Visit, staff: Page, omar: None
) -> None:
    """One into the search in the head, one on the client."""
    count_clicks(staff)
    staff.goto("/admin/memories_app/memory/")
    staff.get_by_role("searchbox", name="Search people, messages and memories").click()
    staff.keyboard.type("055-010-0101")
    with staff.expect_navigation():
        staff.locator(".search-hits a.search-hit", has_text="Omar Haddad").click()
    assert clicks(staff) <= 2
    expect(staff.locator(".bubble.in")).to_contain_text("shalom")
    assert visit.troubles() == []


def test_a_person_is_erased_with_a_receipt_in_four_clicks(
    visit: Visit, staff: Page, world: World
) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    chat = world.chat(CLIENT)
    count_clicks(staff)
    staff.goto(f"/admin/sessions_app/chat/{chat.pk}/conversation/")
    with staff.expect_navigation():
        staff.get_by_role("link", name="Erase this person").click()
    with staff.expect_navigation():
        staff.get_by_role("button", name="Preview").click()
    staff.locator("#id_typed").fill(chat.whatsapp_chat)
    with staff.expect_navigation():
        staff.get_by_role("button", name="Erase permanently").click()
    run_forgetting(str(ForgetRun.objects.get(state="waiting").pk))
    with staff.expect_navigation():
        staff.get_by_role("link", name="All receipts to print").click()
    expect(staff.get_by_role("button", name="Print or save as PDF")).to_be_visible()
    assert clicks(staff) <= 4
    assert not Chat.objects.filter(pk=chat.pk).exists()
    assert not Memory.objects.exists()
    assert visit.troubles() == []


def test_who_changed_a_memory_is_two_clicks_from_home(
    visit: Visit, staff: Page, world: World
) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    memory = Memory.objects.get()
    memory_update(
        memory_id=memory.pk,
        content="TestCorp pays in 60 days",
        actor=Actor("staff", "noa"),
        embedder=embedder(),
    )
    count_clicks(staff)
    staff.goto("/admin/")
    with staff.expect_navigation():
        staff.get_by_role("link", name=re.compile("^Memories added")).click()
    with staff.expect_navigation():
        staff.get_by_role("link", name="TestCorp pays in 60 days").click()
    assert clicks(staff) <= 2
    revisions = staff.get_by_role("region", name="Revisions")
    expect(revisions).to_contain_text("noa")
    expect(revisions.locator("del")).to_contain_text("30")
    assert visit.troubles() == []


@override_settings(MODEL_PRICES={"scripted": (1_000.0, 2_000.0)})
def test_todays_cost_is_on_home(staff: Page, world: World) -> None:
    world.say(CLIENT, "Hello")
    staff.goto("/admin/")
    cost = staff.locator("#figure-tokens")
    expect(cost).to_contain_text(re.compile(r"estimated cost (under )?USD\s\d"))
