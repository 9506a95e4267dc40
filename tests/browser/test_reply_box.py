"""The reply box of a conversation in a browser: always in sight, and a reply is one click; and the
panel by which staff take a chat over."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from memoryproject.foundation.integrations.media_storage.storage_choice import FolderStorage
from sessions_app.models import AnswerTrial, CannedReply, Chat, ChatPause, Turn
from sessions_app.trials.run_trial import trial_run
from tests.browser.test_conversation import HURRIED
from tests.browser.visit import SOON, Visit, clicks, count_clicks, looked_at
from tests.world import CLIENT, World, message_from

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


SIZES = [(1440, 900), (390, 844)]


@pytest.fixture
def long_talk(world: World) -> str:
    """The address of a conversation that no screen shows whole."""
    for number in range(20):
        world.say(CLIENT, f"question {number}")
    return f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/"


def open_at_the_end(staff: Page, address: str) -> None:
    staff.add_init_script(HURRIED)
    staff.goto(address)
    # The first visit begins at what is unread.
    staff.goto(address)
    expect(staff.locator(".bubble").last).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("size", SIZES)
def test_the_box_and_the_newest_message_are_in_sight_and_a_reply_is_one_click(
    visit: Visit, staff: Page, world: World, long_talk: str, size: tuple[int, int]
) -> None:
    staff.set_viewport_size({"width": size[0], "height": size[1]})
    count_clicks(staff)
    open_at_the_end(staff, long_talk)
    box = staff.get_by_label("Reply as staff")
    send = staff.get_by_role("button", name="Send", exact=True)
    expect(box).to_be_in_viewport(ratio=1)
    expect(send).to_be_in_viewport(ratio=1)
    box.fill("line\n" * 40)
    expect(send).to_be_in_viewport(ratio=1)
    expect(staff.locator(".bubble").last).to_be_in_viewport()
    box.fill("Here is Dana")
    with staff.expect_navigation():
        send.click()
    assert clicks(staff) == 1
    assert Turn.objects.get(by_hand=True).reply is not None
    expect(staff.locator(".bubble .text").last).to_have_text("Here is Dana")
    expect(staff.locator(".bubble").last).to_be_in_viewport(ratio=1)
    expect(box).to_be_in_viewport(ratio=1)
    assert visit.troubles() == []


def test_who_reads_the_end_stays_there_and_who_reads_above_gets_a_button(
    visit: Visit, staff: Page, world: World, long_talk: str
) -> None:
    open_at_the_end(staff, long_talk)
    newer = staff.get_by_role("button", name="New messages")
    world.receive(message_from(CLIENT, "Another one"))
    expect(staff.locator(".bubble .text").last).to_have_text("Another one", timeout=SOON)
    expect(staff.locator(".bubble").last).to_be_in_viewport(ratio=1)
    expect(newer).to_be_hidden()
    read = staff.locator(".bubble", has_text="answer to: question 8")
    read.scroll_into_view_if_needed()
    above = read.bounding_box()
    world.receive(message_from(CLIENT, "And the last"))
    expect(staff.locator(".bubble .text").last).to_have_text("And the last", timeout=SOON)
    assert read.bounding_box() == above
    expect(newer).to_be_in_viewport()
    newer.click()
    expect(staff.locator(".bubble").last).to_be_in_viewport(ratio=1)
    expect(newer).to_be_hidden()
    assert visit.troubles() == []


def test_a_canned_reply_comes_by_its_shortcut_and_is_read_before_it_goes_out(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "Hi")
    Chat.objects.update(client_name="Emma")
    CannedReply.objects.create(name="Greeting", shortcut="hi", text="Hello {name}!\nHow are you?")
    CannedReply.objects.create(name="Hours", shortcut="hours", text="Open until five.")
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    box = staff.get_by_label("Reply as staff")
    offered = staff.get_by_role("listbox", name="Canned replies").get_by_role("option")
    box.press_sequentially("Well: /ho")
    expect(offered).to_have_count(1)
    assert looked_at(staff) == []
    box.press("Escape")
    expect(offered).to_have_count(0)
    expect(box).to_have_value("Well: /ho")
    box.fill("")
    staff.get_by_role("button", name="Canned replies").click()
    expect(offered).to_have_count(2)
    box.press("ArrowDown")
    box.press("Enter")
    expect(box).to_have_value("Open until five.")
    box.fill("")
    box.press_sequentially("/hi")
    expect(offered).to_have_count(1)
    box.press("Tab")
    expect(box).to_have_value("Hello Emma!\nHow are you?")
    assert not Turn.objects.filter(by_hand=True).exists()
    with staff.expect_navigation():
        box.press("Control+Enter")
    world.work()
    assert world.provider.sent[-1].text == "Hello Emma!\nHow are you?"
    assert visit.troubles() == []


def test_a_message_is_quoted_by_arrow_and_by_key(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Is it open?")
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    question = staff.locator(".bubble.in")
    box = staff.get_by_label("Reply as staff")
    quoting = staff.locator(".quoting")
    question.focus()
    staff.keyboard.press("q")
    expect(quoting).to_contain_text("Is it open?")
    expect(box).to_be_focused()
    staff.get_by_role("link", name="Quote nothing").click()
    expect(quoting).to_be_hidden()
    question.get_by_role("link", name="Reply to this message").click()
    assert looked_at(staff) == []
    box.fill("Until five")
    with staff.expect_navigation():
        box.press("Control+Enter")
    expect(staff.locator(".bubble.out").last.locator(".quoted")).to_have_text("Is it open?")
    expect(quoting).to_be_hidden()
    assert visit.troubles() == []


PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(300)
GIVE = """([how, name, size]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(size).fill(7)], name, { type: "image/png" }));
  const box = document.getElementById("takeover-text");
  const event = how === "drop"
    ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
    : new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
  box.dispatchEvent(event);
}"""


def test_a_file_is_attached_taken_away_and_sent_with_its_caption(
    visit: Visit, staff: Page, world: World, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    world.use(media=FolderStorage(tmp_path / "media"))
    world.say(CLIENT, "What does it look like?")
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    box = staff.get_by_label("Reply as staff")
    attached = staff.locator(".attached")
    field = staff.get_by_label("Attach a file")
    field.set_input_files({"name": "lamp.png", "mimeType": "image/png", "buffer": PICTURE})
    expect(attached).to_contain_text("lamp.png")
    assert looked_at(staff) == []
    staff.get_by_role("button", name="Remove the file").click()
    expect(attached).to_be_hidden()
    box.press("Control+Enter")
    assert not Turn.objects.filter(by_hand=True).exists()
    field.set_input_files({"name": "lamp.png", "mimeType": "image/png", "buffer": PICTURE})
    box.fill("Like this")
    with staff.expect_navigation():
        box.press("Control+Enter")
    world.work()
    (sent,) = world.provider.sent_files.values()
    assert (sent.kind, sent.filename, sent.content) == ("image", "lamp.png", PICTURE)
    assert world.provider.sent[-1].text == "Like this"
    expect(staff.locator(".bubble.out").last.locator(".media img")).to_have_count(1)
    assert visit.troubles() == []


@pytest.mark.parametrize("how", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted_and_one_that_is_too_large_is_refused_at_once(
    visit: Visit, staff: Page, world: World, how: str
) -> None:
    world.say(CLIENT, "Hi")
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    staff.get_by_label("Reply as staff").fill("Typed")
    staff.evaluate(GIVE, [how, "large.png", 5 * 1024 * 1024 + 1])
    expect(staff.locator(".attach-problem")).to_contain_text("up to 5 MB")
    expect(staff.locator(".attached")).to_be_hidden()
    staff.evaluate(GIVE, [how, "small.png", 300])
    expect(staff.locator(".attached")).to_contain_text("small.png")
    expect(staff.locator(".attach-problem")).to_be_hidden()
    expect(staff.get_by_label("Reply as staff")).to_have_value("Typed")
    assert staff.evaluate("document.getElementById('takeover-file').files.length") == 1
    assert visit.troubles() == []


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_on_a_page_of_its_own_its_menus_are_in_sight(
    visit: Visit, staff: Page, world: World, size: tuple[int, int]
) -> None:
    """A refused time or reply leads to that page, which has no conversation above the panel."""
    for number in range(8):
        name = f"hours{number}"
        CannedReply.objects.create(name=name, shortcut=name, text="Open until five. " * 9)
    world.say(CLIENT, "Is anybody there?")
    staff.set_viewport_size({"width": size[0], "height": size[1]})
    staff.goto(f"/admin/sessions_app/turn/takeover/{world.chat(CLIENT).pk}/")
    box = staff.get_by_label("Reply as staff")
    box.press("/")
    replies = staff.get_by_role("listbox", name="Canned replies")
    expect(replies).to_be_in_viewport(ratio=1)
    expect(box).to_be_in_viewport(ratio=1)
    box.press("Escape")
    staff.get_by_text("Pause assistant").press("Enter")
    expect(staff.locator(".pause .panel")).to_be_in_viewport(ratio=1)
    assert looked_at(staff) == []
    assert visit.troubles() == []


def test_an_open_page_tells_how_long_replies_are_taken(timed: Visit, world: World) -> None:
    page = timed.page
    world.say(CLIENT, "Is anybody there?")
    page.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    told = page.locator("#takeover-window")
    expect(told).to_contain_text("left")
    page.get_by_label("Reply as staff").fill("half a sentence")
    page.clock.run_for("23:05:00")
    expect(told.locator("[data-left]")).to_have_text(re.compile(r"^5\d minutes$"))
    page.clock.run_for("01:00:00")
    expect(told).to_contain_text("has closed meanwhile")
    expect(page.get_by_label("Reply as staff")).to_have_value("half a sentence")
    assert timed.troubles() == []


def test_colleagues_see_a_pause_at_once_and_keep_what_they_type(
    staff: Page, world: World, long_talk: str
) -> None:
    open_at_the_end(staff, long_talk)
    title = staff.locator("#takeover-title")
    expect(title).to_have_text("Assistant is on")
    box = staff.get_by_label("Reply as staff")
    box.fill("I am typing")
    pause = ChatPause.objects.create(chat=world.chat(CLIENT))
    expect(title).to_have_text("The assistant is paused")
    expect(staff.locator("#takeover")).to_have_class(re.compile("paused"))
    expect(box).to_have_value("I am typing")
    pause.delete()
    expect(title).to_have_text("Assistant is on")
    staff.get_by_text("Pause assistant").click()
    staff.get_by_role("button", name="For 1 hour").click()
    expect(title).to_have_text("The assistant is paused")
    assert ChatPause.objects.count() == 1


def test_a_draft_comes_into_an_empty_box_and_stands_beside_typed_words(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "Hi")
    chat = world.chat(CLIENT)
    ChatPause.objects.create(chat=chat, since=timezone.now())
    world.say(CLIENT, "When do you open?")
    staff.goto(f"/admin/sessions_app/chat/{chat.pk}/conversation/")
    box = staff.get_by_label("Reply as staff")

    def drafted() -> None:
        expect(staff.get_by_text("A draft is being made")).to_be_visible()
        draft = AnswerTrial.objects.get(state="waiting")
        trial_run(trial_id=draft.pk, dependencies=world.dependencies, model_named=lambda _: None)
        expect(staff.get_by_role("button", name="Drop the draft")).to_be_visible(timeout=SOON)

    box.press("Alt+Enter")
    drafted()
    expect(box).to_have_value("answer to: When do you open?")
    staff.get_by_role("button", name="Drop the draft").click()
    expect(box).to_have_value("")
    box.fill("At nine, I think")
    staff.get_by_role("button", name="Draft for me").click()
    drafted()
    expect(box).to_have_value("At nine, I think")
    assert looked_at(staff) == []
    staff.get_by_role("button", name="Use the draft").click()
    expect(box).to_have_value("answer to: When do you open?")
    box.fill("We open at nine.")
    with staff.expect_navigation():
        box.press("Control+Enter")
    lesson = staff.get_by_label("Teach this?")
    expect(lesson).to_have_value("We open at nine.")
    lesson.press("Escape")
    expect(lesson).to_be_hidden()
    assert visit.troubles() == []
