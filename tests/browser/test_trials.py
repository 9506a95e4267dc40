"""Trying an answer again in a browser: two quick clicks, the wait, and the result beside it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memories_app.facts.validation import NewMemory
from memories_app.store.remember import memory_remember
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import AnswerTrial, Turn
from sessions_app.trials.facade import trial_run
from tests.browser.visit import Visit, looked_at
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
FACT = "TestCorp pays its invoices within 30 days"


def test_an_answer_is_tried_again_and_compared(visit: Visit, staff: Page, world: World) -> None:
    memory_remember(
        NewMemory(content=FACT, visibility="public"), embedder=world.dependencies.embedder
    )
    world.say(CLIENT, "When does TestCorp pay its invoices?")
    turn = Turn.objects.latest("id")
    staff.goto(f"/admin/sessions_app/turn/{turn.pk}/change/")
    with staff.expect_navigation():
        staff.get_by_role("link", name="Try again and compare…").click()
    assert looked_at(staff) == []
    staff.get_by_text("Choose the texts").click()
    staff.get_by_role("checkbox", name=FACT).uncheck()
    expect(staff.get_by_role("radio", name="Those that are ticked below")).to_be_checked()
    staff.get_by_text("Edit the instructions").click()
    staff.get_by_label("Instructions for this trial only").fill("Be brief.")
    expect(staff.get_by_role("radio", name="As edited below")).to_be_checked()
    staff.get_by_role("button", name="Try again").dblclick()
    expect(staff.get_by_role("status").filter(has_text="A worker is asking")).to_be_visible()
    trial = AnswerTrial.objects.get()
    assert (trial.memories, trial.chosen) == ("chosen", [])
    staff.get_by_text("Edit the instructions").click()
    staff.get_by_label("Instructions for this trial only").fill("For the next one.")
    model = ScriptedChatModel(lambda _request: "answer to: When does TestCorp pay its bills?")
    trial_run(trial_id=trial.pk, dependencies=world.dependencies, model_named=lambda _name: model)
    column = staff.get_by_role("article").filter(has_text="Trial 1")
    expect(column.locator("ins")).to_have_text("bills?")
    expect(column.locator("del")).to_contain_text("invoices?")
    typed = staff.get_by_label("Instructions for this trial only")
    expect(typed).to_have_value("For the next one.")
    assert looked_at(staff) == []
    assert visit.troubles() == []
