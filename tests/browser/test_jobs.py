"""The jobs of staff, each done with the mouse and its clicks counted.

A choice in a list counts as two clicks. Typing, and the keys that a page names, count as none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import Page, expect

from memories_app.models import Memory
from memoryproject.foundation.integrations.media_storage.storage_choice import FolderStorage
from memoryproject.staff_site.models import NotificationSettings
from sessions_app.models import (
    AnswerRating,
    AnswerTrial,
    AssistantProfile,
    Broadcast,
    ChatLabel,
    ChatPause,
    ChatSession,
    CheckQuestion,
    ForgetReceipt,
    Label,
    Message,
    Rule,
    SessionOutcome,
    Turn,
)
from sessions_app.outcomes.judge import sessions_judge
from sessions_app.trials.run_trial import trial_run
from sessions_app.turns.question_set import questions_check_store
from tests.browser.test_broadcasts import listed as listed
from tests.browser.test_forget import work
from tests.browser.test_reply_box import PICTURE
from tests.browser.visit import Visit, clicks, count_clicks
from tests.remembering import remember as proposed
from tests.world import CLIENT, World, message_from, remember

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
CHATS = "/admin/sessions_app/chat/"
QUESTION = "When do you close on Fridays?"
STALE, RIGHT = "We close at six on Fridays", "We close at two on Fridays"
A_CHOICE = 2


@dataclass
class Job:
    """What a job has. ``choices``: the choices in lists that were made."""

    page: Page
    world: World
    folder: Path
    choices: int = 0

    def button(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def link(self, name: str) -> None:
        with self.page.expect_navigation():
            self.page.get_by_role("link", name=name).first.click()

    def says(self, text: str) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible()

    def conversation(self) -> None:
        self.page.goto(f"{CHATS}{self.world.chat(CLIENT).pk}/conversation/")

    def misled(self) -> Turn:
        """An answer for which something wrong was recalled."""
        self.world.with_answer_rules(min_similarity=0.0)
        remember(self.world, STALE)
        self.world.say(CLIENT, QUESTION)
        return Turn.objects.latest("id")


# The jobs of the review; the one to see why and correct is in test_workspace.py.


def find_by_text(job: Job) -> None:
    job.world.say(CLIENT, "Where is the lighthouse?")
    job.page.goto("/admin/contacts/")
    job.page.keyboard.press("/")
    job.page.keyboard.type("lighthouse")
    expect(job.page.locator(".search-hits mark").first).to_have_text("lighthouse")
    job.page.keyboard.press("ArrowDown")
    with job.page.expect_navigation():
        job.page.keyboard.press("Enter")
    expect(job.page.locator(".bubble", has_text="lighthouse").first).to_be_in_viewport()


def reply_with_a_picture_and_hand_back(job: Job) -> None:
    job.world.use(media=FolderStorage(job.folder))
    job.world.say(CLIENT, "What does it look like?")
    job.conversation()
    with job.page.expect_file_chooser() as chooser:
        job.page.locator("label[for=takeover-file]").click()
    chooser.value.set_files({"name": "lamp.png", "mimeType": "image/png", "buffer": PICTURE})
    job.page.get_by_label("Reply as staff").fill("Like this")
    with job.page.expect_navigation():
        job.button("Send")
    job.button("Turn assistant back on")
    job.says("Assistant is on")
    assert Turn.objects.filter(by_hand=True).exists()
    assert not ChatPause.objects.exists()


def forget_with_a_receipt(job: Job) -> None:
    job.world.remember(CLIENT, "The gate opens with the number of the old tram")
    job.page.goto("/admin/memories_app/memory/")
    job.page.locator("input.action-select").first.click()
    job.page.locator("select[name=action]").first.select_option("forget_selected")
    job.choices += 1
    with job.page.expect_navigation():
        job.page.locator("button[name=index]").first.click()
    job.page.locator("#id_typed").fill("FORGET")
    with job.page.expect_navigation():
        job.button("Erase permanently")
    work()
    expect(job.page.get_by_role("heading", level=1)).to_have_text("Erased")
    receipt = ForgetReceipt.objects.get()
    with job.page.expect_navigation():
        job.page.locator(f"a[href$='/forgetreceipt/{receipt.pk}/change/']").click()
    expect(job.page.locator("#content")).to_contain_text(str(receipt.receipt_id))


def approve_a_memory(job: Job) -> None:
    made = proposed("Dana likes tea", proposed=True, confidence=0.4)
    job.page.goto(f"{CHATS}?needs=1")
    job.page.get_by_role("link", name="Suggested memory").click()
    job.button("Approve")
    job.says("It is approved, and counts from now on.")
    assert Memory.objects.get(pk=made.pk).status == "active"


def import_prices(job: Job) -> None:
    job.page.goto("/admin/")
    job.page.get_by_text("Knowledge", exact=True).click()
    job.link("Import a table")
    job.page.locator("textarea").first.fill("product,price\nBagel,12\nCoffee,9")
    job.button("Preview")
    job.says("Nothing is stored yet.")
    with job.page.expect_navigation():
        job.button("Remember what is ticked")
    assert Memory.objects.filter(content__contains="Bagel").exists()


def see_health(job: Job) -> None:
    job.world.receive(message_from(CLIENT, "hello?"))
    job.page.goto("/admin/")
    job.says("Right now")
    for part, text in (
        ("workers", "none running"),
        ("schedules", "none installed"),
        ("waiting", "the oldest for"),
        ("storage", "free on the disk"),
    ):
        expect(job.page.locator(f"#figure-{part}")).to_contain_text(text)
    expect(job.page.locator(".figure.bad")).to_have_count(2)


def see_who_read(job: Job) -> None:
    job.world.say(CLIENT, "Hi")
    job.conversation()
    with job.page.expect_navigation():
        job.page.locator("#content a[href^='/admin/contacts/']").first.click()
    reads = job.page.get_by_role("region", name="Reads and changes by staff")
    expect(reads.locator("li").first).to_contain_text("staff")


# The jobs that came later.


def mark_an_answer_right(job: Job) -> None:
    turn = job.misled()
    job.conversation()
    job.page.locator(".bubble.out .text").last.click()
    job.page.get_by_role("tab", name="Teach").click()
    job.button("Good: this is right")
    job.says("You rated this answer good")
    assert AnswerRating.objects.get(turn=turn).is_good


def try_a_change_on_the_question_set(job: Job) -> None:
    job.misled()
    memory = Memory.objects.get()
    question = CheckQuestion.objects.create(text=QUESTION, expected="two")
    questions_check_store(dependencies=job.world.dependencies, now=timezone.now())
    question.refresh_from_db()
    assert question.state == "fails"
    job.page.goto(f"/admin/memories_app/memory/{memory.pk}/change/")
    job.page.get_by_label("Content").fill(RIGHT)
    job.button("See what would change")
    # The question was asked once, and is recalled with the change beside what holds.
    job.says("For 1 of them something else would be recalled")
    expect(job.page.locator(".compared .sides del").first).to_contain_text(STALE)
    expect(job.page.locator(".compared .sides ins").first).to_contain_text(RIGHT)
    memory.refresh_from_db()
    assert memory.content == STALE
    with job.page.expect_navigation():
        job.page.locator("[data-save]").click()
    memory.refresh_from_db()
    assert memory.content == RIGHT
    questions_check_store(dependencies=job.world.dependencies, now=timezone.now())
    assert CheckQuestion.objects.get().state == "passes"


def see_why_it_did_not_help_and_overrule_it(job: Job) -> None:
    job.world.say(CLIENT, QUESTION)
    job.world.say(CLIENT, QUESTION)
    ago = timedelta(hours=25)
    Message.objects.update(received_at=F("received_at") - ago)
    Turn.objects.update(created_at=F("created_at") - ago)
    ended = timezone.now() - timedelta(hours=1)
    ChatSession.objects.update(status="expired", expired_at=ended, last_active=ended - ago)
    sessions_judge(embedder=job.world.dependencies.embedder, now=timezone.now())
    assert SessionOutcome.objects.get().verdict == "not_helped"
    job.page.goto("/admin/")
    job.link("Did it help?")
    expect(job.page.locator("article .asked").first).to_contain_text("Against:")
    with job.page.expect_navigation():
        job.page.locator("article button[value=helped]").click()
    assert SessionOutcome.objects.get().decided == "helped"


def teach_an_unknown_question(job: Job) -> None:
    job.world.say(CLIENT, QUESTION)
    job.page.goto("/admin/")
    job.link("Unknown questions")
    job.page.get_by_text("Teach…").click()
    job.page.get_by_label("What the assistant should know").fill(RIGHT)
    with job.page.expect_navigation():
        job.button("Remember for everyone")
    assert Memory.objects.get().content == RIGHT


def send_a_draft(job: Job) -> None:
    job.world.say(CLIENT, "Hi")
    chat = job.world.chat(CLIENT)
    ChatPause.objects.create(chat=chat, since=timezone.now())
    job.world.say(CLIENT, QUESTION)
    job.conversation()
    job.button("Draft for me")
    job.says("A draft is being made")
    draft = AnswerTrial.objects.get(state="waiting")
    needs = job.world.dependencies
    trial_run(trial_id=draft.pk, dependencies=needs, model_named=lambda _: None)
    expect(job.page.get_by_label("Reply as staff")).to_have_value(f"answer to: {QUESTION}")
    with job.page.expect_navigation():
        job.button("Send")
    assert Turn.objects.filter(by_hand=True).exists()


def set_hours_with_a_holiday(job: Job) -> None:
    job.page.goto("/admin/sessions_app/openinghours/")
    job.page.locator("#id_monday").fill("9:00-17:00")
    job.page.locator("#id_dates").fill("25/12/2027 closed Christmas")
    with job.page.expect_navigation():
        job.button("Save")
    assert "Christmas" in AssistantProfile.objects.get().hours["dates"]


def make_a_rule_with_a_dry_run(job: Job) -> None:
    job.world.say(CLIENT, "An urgent invoice")
    job.page.goto("/admin/sessions_app/rule/add/")
    job.page.locator("#id_name").fill("Invoices")
    job.page.locator("#id_words").fill("invoice")
    job.page.locator("#id_tells").click()
    with job.page.expect_navigation():
        job.button("Save")
    job.link("Try it on last week")
    job.says("In the last 7 days it would have met")
    job.says("1 event")
    assert Rule.objects.get().name == "Invoices"


def subscribe_to_a_kind(job: Job) -> None:
    job.page.goto("/admin/account/notifications/")
    job.page.locator("input[name=wanted]:not(:checked)").first.click()
    with job.page.expect_navigation():
        job.button("Save")
    assert NotificationSettings.objects.exists()


def say_something_to_a_segment(job: Job) -> None:
    job.world.say(CLIENT, "Hi")
    label = Label.objects.create(name="VIP")
    ChatLabel.objects.create(chat=job.world.chat(CLIENT), label=label)
    job.page.goto("/admin/broadcasts/")
    job.link("sale")
    job.page.get_by_label("{{1}}").fill("{name|there}")
    job.page.get_by_label("{{2}}").fill("nine")
    job.page.locator("#id_labels").select_option(label="VIP")
    job.choices += 1
    job.page.get_by_label("Number for the test").fill("15550100999")
    job.button("Send a test")
    job.button("Preview")
    job.says("It goes to 1 person")
    job.button("Send to 1 person")
    job.says("next messages at")
    assert Broadcast.objects.get().recipients.count() == 1


def undo(job: Job) -> None:
    approve_a_memory(job)
    job.button("Undo")
    job.says("It is undone.")
    assert Memory.objects.get().status == "proposed"


JOBS: list[tuple[Callable[[Job], None], int]] = [
    (find_by_text, 0),
    (reply_with_a_picture_and_hand_back, 4),
    (forget_with_a_receipt, 6),
    (import_prices, 4),
    (see_health, 0),
    (see_who_read, 2),
    (mark_an_answer_right, 3),
    (try_a_change_on_the_question_set, 2),
    (see_why_it_did_not_help_and_overrule_it, 2),
    (teach_an_unknown_question, 3),
    (send_a_draft, 2),
    (set_hours_with_a_holiday, 1),
    (make_a_rule_with_a_dry_run, 3),
    (subscribe_to_a_kind, 2),
    (say_something_to_a_segment, 6),
    (undo, 3),
]


@pytest.mark.parametrize(("do", "limit"), JOBS, ids=[do.__name__ for do, _ in JOBS])
def test_a_job_takes_few_clicks(
    visit: Visit,
    staff: Page,
    world: World,
    listed: None,
    settings: Any,
    tmp_path: Path,
    do: Callable[[Job], None],
    limit: int,
) -> None:
    settings.DATA_DIR = tmp_path
    count_clicks(staff)
    job = Job(staff, world, tmp_path)
    do(job)
    assert clicks(staff) + A_CHOICE * job.choices <= limit
    assert visit.troubles() == []
