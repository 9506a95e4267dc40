"""Answers in a browser: explained, taught where one sees their mistakes, and tried again."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import AnswerTrial, CheckDay, Turn
from sessions_app.trials.run_trial import trial_run
from tests.browser.visit import Visit, clicks, count_clicks, looked_at
from tests.world import CLIENT, GODFATHER, World, remember

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


def test_the_prompt_is_shown_before_the_profile_is_saved(visit: Visit, staff: Page) -> None:
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


FACT = "We are open on Fridays until 14:00"


def test_a_missing_fact_is_taught_in_three_clicks(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Are you open on Fridays?")
    count_clicks(staff)
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    staff.get_by_role("link", name="why").click()
    staff.get_by_role("tab", name="Teach").click()
    text = staff.get_by_label("What the assistant should know")
    expect(text).to_have_value("Are you open on Fridays?")
    text.fill(FACT)
    staff.get_by_role("button", name="Remember for this client").click()
    assert clicks(staff) <= 3
    expect(staff.get_by_text("It is remembered for this client from now on.")).to_be_visible()
    memory = Memory.objects.get()
    assert (memory.content, memory.visibility) == (FACT, "chat")
    assert visit.troubles() == []


def test_the_answers_text_may_be_the_beginning(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Are you open on Fridays?")
    staff.goto(f"/admin/sessions_app/turn/{Turn.objects.latest('id').pk}/change/")
    expect(staff.get_by_role("button", name="Begin with the answer's text")).to_be_hidden()
    staff.get_by_text("Remember…").press("Enter")
    staff.get_by_role("button", name="Begin with the answer's text").press("Enter")
    text = staff.get_by_label("What the assistant should know")
    expect(text).to_have_value("answer to: Are you open on Fridays?")
    expect(text).to_be_focused()
    assert visit.troubles() == []


def test_near_misses_come_late_and_can_be_mended(visit: Visit, staff: Page, world: World) -> None:
    remember(world, "The garden has old trees beside the house")
    world.say(CLIENT, "When does TestCorp pay its invoices?")
    staff.goto(f"/admin/sessions_app/turn/{Turn.objects.latest('id').pk}/change/")
    near = staff.locator("li.near")
    expect(near).to_contain_text("too weak to be used")
    assert looked_at(staff) == []
    near.get_by_text("Edit…").press("Enter")
    near.get_by_label("What it should say").fill("TestCorp pays on Mondays")
    with staff.expect_navigation():
        near.get_by_role("button", name="Save").press("Enter")
    expect(near).to_contain_text("would be used now")
    assert visit.troubles() == []


PAYS = "TestCorp pays its invoices within 30 days"


def test_an_answer_is_tried_again_and_compared(visit: Visit, staff: Page, world: World) -> None:
    remember(world, PAYS)
    world.say(CLIENT, "When does TestCorp pay its invoices?")
    turn = Turn.objects.latest("id")
    staff.goto(f"/admin/sessions_app/turn/{turn.pk}/change/")
    with staff.expect_navigation():
        staff.get_by_role("link", name="Try again and compare…").click()
    assert looked_at(staff) == []
    staff.get_by_text("Choose the texts").click()
    staff.get_by_role("checkbox", name=PAYS).uncheck()
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
    expect(column.locator("ins")).to_have_text("bills")
    expect(column.locator("del")).to_contain_text("invoices")
    typed = staff.get_by_label("Instructions for this trial only")
    expect(typed).to_have_value("For the next one.")
    assert looked_at(staff) == []
    assert visit.troubles() == []


def test_answers_with_a_change_are_judged_by_keys(visit: Visit, staff: Page, world: World) -> None:
    remember(world, PAYS)
    for question in ("When does TestCorp pay its invoices?", "Who pays within 30 days?"):
        world.say(CLIENT, question)
    memory = Memory.objects.get()
    staff.goto(f"/admin/memories_app/memory/{memory.pk}/change/")
    staff.get_by_label("Content").fill("TestCorp pays its invoices within 60 days")
    staff.get_by_role("button", name="See what would change").press("Enter")
    staff.get_by_role("button", name="Compare 2 answers of the model").press("Enter")
    rows = staff.locator("article.compared[data-open]")
    expect(rows).to_have_count(2)
    model = ScriptedChatModel(lambda _request: "Within sixty days.")
    for trial in AnswerTrial.objects.all():
        trial_run(
            trial_id=trial.pk, dependencies=world.dependencies, model_named=lambda _name: model
        )
    expect(staff.get_by_text("Within sixty days.")).to_have_count(2)
    judged = staff.locator("article.compared")
    judged.first.press("1")
    expect(judged.last).to_be_focused()
    judged.last.press("s")
    expect(staff.get_by_text("1 better · 0 worse · 1 the same")).to_be_visible()
    judged.last.get_by_role("button", name="Worse").click()
    expect(staff.get_by_text("1 better · 1 worse · 0 the same")).to_be_visible()
    assert looked_at(staff) == []
    memory.refresh_from_db()
    assert memory.content == PAYS
    with staff.expect_navigation():
        staff.locator("[data-save]").press("Enter")
    memory.refresh_from_db()
    assert memory.content == "TestCorp pays its invoices within 60 days"
    assert visit.troubles() == []


def test_the_question_set_shows_its_results(visit: Visit, staff: Page) -> None:
    staff.goto("/admin/sessions_app/checkquestion/")
    with staff.expect_navigation():
        staff.get_by_role("link", name="בית קפה").press("Enter")
    expect(staff.locator(".planned-row")).to_have_count(20)
    assert looked_at(staff) == []
    with staff.expect_navigation():
        staff.get_by_role("button", name="Add the questions").press("Enter")
    CheckDay.objects.create(day="2026-03-01", passed=17, failed=3)
    with staff.expect_navigation():
        staff.reload()
    expect(staff.get_by_role("img", name="Plot of the results")).to_be_visible()
    assert looked_at(staff) == []
    staff.get_by_text("As a table").press("Enter")
    expect(staff.get_by_role("cell", name="17")).to_be_visible()
    staff.get_by_role("link", name="מתי אתם פותחים?").click()
    expect(staff.get_by_text("Recalled at the last check")).to_be_visible()
    assert looked_at(staff) == []
    assert visit.troubles() == []
