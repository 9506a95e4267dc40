"""The replay of an answer, and the assistant's profile, in a browser: on any screen, in light and
dark, without a serious violation."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.models import Turn
from tests.browser.visit import Visit, looked_at
from tests.world import CLIENT, GODFATHER, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def replay_of(page: Page, turn: Turn) -> None:
    page.goto(f"/admin/sessions_app/turn/{turn.pk}/change/")


def test_an_answer_is_explained_on_any_screen(visit: Visit, staff: Page, world: World) -> None:
    world.with_answer_rules(min_similarity=0.0)
    world.remember(GODFATHER, "TestCorp pays its invoices within 30 days")
    world.say(GODFATHER, "/reset")
    world.say(GODFATHER, "מתי TestCorp משלמת? When does TestCorp pay its invoices?")
    replay_of(staff, Turn.objects.latest("id"))
    expect(staff.locator(".recalled > li").first).to_contain_text("within 30 days")
    prompt = staff.locator("details.line.system")
    expect(prompt.locator(".fenced")).to_be_hidden()
    prompt.locator("summary").press("Enter")
    expect(prompt.locator(".fenced")).to_contain_text("within 30 days")
    assert looked_at(staff) == []
    with staff.expect_navigation():
        staff.get_by_role("link", name="Recall this now").click()
    expect(staff.get_by_role("heading", name="Recalled now")).to_be_visible()
    assert looked_at(staff) == []
    assert visit.troubles() == []


def test_a_failed_answer_is_found_and_sent_again_by_keyboard(
    visit: Visit, staff: Page, world: World
) -> None:
    world.provider.fail_next(SendError("window closed", permanent=True))
    world.say(CLIENT, "Lost")
    staff.goto("/admin/sessions_app/turn/")
    assert looked_at(staff) == []
    with staff.expect_navigation():
        staff.get_by_role("link", name="Failed 1").press("Enter")
    with staff.expect_navigation():
        staff.locator("#result_list tbody a").first.press("Enter")
    with staff.expect_navigation():
        staff.get_by_role("link", name="Send it again").press("Enter")
    assert looked_at(staff) == []
    with staff.expect_navigation():
        staff.get_by_role("button", name="Send it again").press("Enter")
    expect(staff.get_by_text("It is being sent again.")).to_be_visible()
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Lost"]
    assert visit.troubles() == []


def test_the_prompt_is_shown_beside_the_profile_before_it_is_saved(
    visit: Visit, staff: Page
) -> None:
    staff.goto("/admin/sessions_app/assistantprofile/")
    staff.locator("#id_name").fill("דנה")
    staff.get_by_label("Talking to").select_option("godfather")
    staff.get_by_role("button", name="Preview the prompt").click()
    preview = staff.locator("#preview")
    expect(preview).to_contain_text("You are דנה")
    expect(preview).to_contain_text("the godfather, the owner")
    expect(staff.locator("#id_name")).to_have_value("דנה")
    assert looked_at(staff) == []
    assert visit.troubles() == []
