"""Typed text stays until it is stored, for who typed it, also where the language is switched or a
refused page is left; logged out, a page shows nobody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import FilePayload, Page, Route, expect

from memories_app.models import Memory
from sessions_app.models import AssistantProfile, Message, Note, Turn
from tests.browser.conftest import PASSWORD, USERNAME
from tests.browser.visit import SOON, Visit
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


TEXT = "Good morning,\nit is ready at five."
SECRET = "Zyqorvane"


def conversation(world: World, by: str = CLIENT) -> str:
    return f"/admin/sessions_app/chat/{world.chat(by).pk}/conversation/"


@pytest.fixture
def open_chat(staff: Page, world: World) -> Page:
    """The conversation of a client, in which a reply is typed."""
    world.say(CLIENT, "Is anybody there?")
    world.say(OTHER_CLIENT, "Hello?")
    staff.goto(conversation(world))
    staff.get_by_label("Reply as staff").fill(TEXT)
    return staff


def ask_nothing(page: Page) -> None:
    """Let the page not notice by itself that the session ended: its polls reach nobody."""

    def refuse(route: Route) -> None:
        headers = route.request.headers
        if "x-live" in headers and "x-staff" not in headers:
            route.abort()
        else:
            route.fallback()

    page.route("**/*", refuse)
    # One that is on its way already would still be answered.
    page.reload()


def box(page: Page) -> str:
    return page.locator("#takeover-text").input_value()


def send(page: Page) -> None:
    page.get_by_role("button", name="Send", exact=True).click()


def log_in(page: Page, name: str = USERNAME) -> None:
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def drop_session(page: Page) -> None:
    """The session ends: its cookie goes. That of the forms' tokens stays."""
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)


def end_all_sessions(_page: Page) -> None:
    Session.objects.all().delete()


def drop_all_cookies(page: Page) -> None:
    page.context.clear_cookies()


@pytest.mark.parametrize("end", [drop_all_cookies, end_all_sessions])
def test_a_reply_survives_the_end_of_the_session(
    open_chat: Page, end: Callable[[Page], None], world: World
) -> None:
    ask_nothing(open_chat)
    end(open_chat)
    send(open_chat)
    log_in(open_chat)
    expect(open_chat.locator("#takeover-text")).to_have_value(TEXT)
    assert conversation(world) in open_chat.url
    assert not Turn.objects.filter(by_hand=True).exists()
    send(open_chat)
    expect(open_chat.get_by_text("Your reply is on its way.")).to_be_visible()
    expect(open_chat.locator("#takeover-text")).to_have_value("")
    assert Turn.objects.filter(by_hand=True).count() == 1
    open_chat.reload()
    assert box(open_chat) == ""


def test_so_it_does_when_it_was_typed_for_long(staff: Page, world: World) -> None:
    """The server is asked before the form is sent."""
    world.say(CLIENT, "Is anybody there?")
    staff.goto(conversation(world))
    ask_nothing(staff)
    staff.evaluate("() => { window.staffSession.isFresh = () => false; }")
    staff.get_by_label("Reply as staff").fill(TEXT)
    drop_session(staff)
    send(staff)
    log_in(staff)
    expect(staff.get_by_text("Your draft was restored.")).to_be_visible()
    assert box(staff) == TEXT
    staff.evaluate("() => { window.staffSession.isFresh = () => false; }")
    send(staff)
    expect(staff.get_by_text("Your reply is on its way.")).to_be_visible()
    assert Turn.objects.filter(by_hand=True).count() == 1


def test_a_page_that_noticed_it_leads_back_to_the_text(open_chat: Page, world: World) -> None:
    end_all_sessions(open_chat)
    expect(open_chat.get_by_text("You are logged out.")).to_be_visible(timeout=SOON)
    open_chat.get_by_role("link", name="Log in again").click()
    log_in(open_chat)
    expect(open_chat.locator("#takeover-text")).to_have_value(TEXT)
    assert conversation(world) in open_chat.url


def test_drafts_are_of_their_conversation(open_chat: Page, world: World) -> None:
    open_chat.goto(conversation(world, OTHER_CLIENT))
    assert box(open_chat) == ""
    open_chat.get_by_label("Reply as staff").fill("Another one")
    open_chat.goto("/admin/")
    open_chat.goto(conversation(world))
    expect(open_chat.get_by_text("Your draft was restored.")).to_be_visible()
    assert box(open_chat) == TEXT
    open_chat.go_back()
    open_chat.go_back()
    expect(open_chat.locator("#takeover-text")).to_have_value("Another one")


def test_a_reply_and_a_note_are_drafts_beside_each_other(open_chat: Page) -> None:
    note = open_chat.locator(".note-form textarea")
    note.fill("Call her on Monday.")
    open_chat.reload()
    assert (box(open_chat), note.input_value()) == (TEXT, "Call her on Monday.")
    open_chat.locator(".note-form button").last.click()
    expect(open_chat.locator(".note-form textarea")).to_have_value("")
    assert Note.objects.get().text == "Call her on Monday."
    expect(open_chat.locator("#takeover-text")).to_have_value(TEXT)


def test_without_a_connection_the_text_stays_and_is_sent_later(open_chat: Page) -> None:
    open_chat.context.set_offline(True)
    send(open_chat)
    expect(open_chat.get_by_text("The server can't be reached.")).to_be_visible()
    assert box(open_chat) == TEXT
    open_chat.context.set_offline(False)
    send(open_chat)
    expect(open_chat.get_by_text("Your reply is on its way.")).to_be_visible()
    assert Turn.objects.filter(by_hand=True).count() == 1


def test_an_answer_lost_on_the_way_sends_nothing_twice(open_chat: Page, world: World) -> None:
    def lose(route: object) -> None:
        route.fetch(max_redirects=0)  # type: ignore[attr-defined]
        route.abort()  # type: ignore[attr-defined]

    open_chat.route("**/reply/", lose)
    with open_chat.expect_event("requestfailed", lambda each: each.method == "POST"):
        send(open_chat)
    open_chat.unroute("**/reply/")
    # What fetched it in the place of the browser has put its cookie there.
    open_chat.context.clear_cookies(name="staff-saved")
    open_chat.goto(conversation(world))
    assert box(open_chat) == TEXT
    send(open_chat)
    expect(open_chat.get_by_text("This reply was sent already.")).to_be_visible()
    assert Turn.objects.filter(by_hand=True).count() == 1
    assert box(open_chat) == ""


def test_a_page_of_an_error_leads_back_to_the_text(open_chat: Page, world: World) -> None:
    """Here: another tab has logged in anew, and the form's token is none any more."""
    token = open_chat.locator(".reply [name=csrfmiddlewaretoken]")
    token.evaluate("field => { field.value = 'x'; }")
    send(open_chat)
    told = "This page was open before you logged in."
    expect(open_chat.get_by_role("heading", name=told)).to_be_visible()
    open_chat.get_by_role("link", name="Back to your text").click()
    expect(open_chat.locator("#takeover-text")).to_have_value(TEXT)
    send(open_chat)
    expect(open_chat.get_by_text("Your reply is on its way.")).to_be_visible()


def test_a_double_click_sends_once_and_says_one_thing(open_chat: Page) -> None:
    for twice in ("click", "keys"):
        open_chat.get_by_label("Reply as staff").fill(f"By {twice}")
        with open_chat.expect_navigation():
            if twice == "click":
                open_chat.get_by_role("button", name="Send", exact=True).dblclick(
                    no_wait_after=True
                )
            else:
                form = open_chat.locator("form.reply")
                form.evaluate("form => { form.requestSubmit(); form.requestSubmit(); }")
        expect(open_chat.get_by_text("Your reply is on its way.")).to_be_visible()
        assert open_chat.get_by_text("This wasn't sent.").count() == 0
        assert box(open_chat) == ""
    assert Turn.objects.filter(by_hand=True).count() == 2


def test_each_tab_keeps_its_own_text(open_chat: Page, world: World) -> None:
    other = open_chat.context.new_page()
    other.goto(conversation(world))
    # What another tab typed comes up here, and ends with it.
    assert box(other) == TEXT
    other.get_by_label("Reply as staff").fill("Something else")
    send(open_chat)
    expect(open_chat.get_by_text("Your reply is on its way.")).to_be_visible()
    other.reload()
    assert box(other) == "Something else"
    open_chat.goto(conversation(world))
    assert box(open_chat) == "Something else"
    send(other)
    expect(other.get_by_text("Your reply is on its way.")).to_be_visible()
    for page in (open_chat, other):
        page.reload()
        assert box(page) == ""


@pytest.mark.parametrize("form", ["profile", "memory", "teach"])
def test_long_forms_keep_their_text(staff: Page, world: World, form: str) -> None:
    world.remember(GODFATHER, "The Sea Café opens at nine.")
    world.say(CLIENT, "When do you open?")
    AssistantProfile.objects.get_or_create(pk=1)
    memory, turn = Memory.objects.get(), Turn.objects.latest("id")
    pages = {
        "profile": ("/admin/sessions_app/assistantprofile/1/change/", "[name=persona]"),
        "memory": (f"/admin/memories_app/memory/{memory.pk}/change/", "[name=content]"),
        "teach": (f"/admin/sessions_app/turn/{turn.pk}/change/", "#teach-text"),
    }
    address, field = pages[form]
    staff.goto(address)
    unfold = "field => { field.closest('details')?.setAttribute('open', ''); }"
    staff.locator(field).evaluate(unfold)
    staff.locator(field).fill("Kind and short.")
    staff.goto("/admin/")
    drop_session(staff)
    staff.goto(address)
    log_in(staff)
    expect(staff.locator(field)).to_have_value("Kind and short.")


def test_nobody_else_sees_a_draft(open_chat: Page, world: World) -> None:
    get_user_model()._default_manager.create_superuser(username="noa", password=PASSWORD)
    drop_session(open_chat)
    open_chat.goto(conversation(world))
    log_in(open_chat, "noa")
    expect(open_chat.locator("#takeover-text")).to_have_value("")
    drop_session(open_chat)
    open_chat.goto(conversation(world))
    log_in(open_chat)
    expect(open_chat.locator("#takeover-text")).to_have_value(TEXT)


def test_logging_out_removes_drafts(open_chat: Page) -> None:
    open_chat.reload()
    assert box(open_chat) == TEXT
    open_chat.locator(".account-menu summary").click()
    open_chat.get_by_role("button", name="Log out").click()
    # With the page's scripts.
    open_chat.wait_for_url("**/logout/")
    expect(open_chat.locator("#takeover-text")).to_have_count(0)
    assert "five" not in open_chat.evaluate("JSON.stringify([localStorage, sessionStorage])")


def test_drafts_end_after_a_week(open_chat: Page) -> None:
    open_chat.reload()
    open_chat.evaluate(
        """() => {
            const key = Object.keys(localStorage).find((each) => each.startsWith("staff-drafts"));
            const drafts = JSON.parse(localStorage.getItem(key));
            for (const each of Object.values(drafts)) each.at -= 8 * 24 * 3600 * 1000;
            localStorage.setItem(key, JSON.stringify(drafts));
        }"""
    )
    open_chat.reload()
    assert box(open_chat) == ""


# --- logged out


def assert_nobody_is_shown(page: Page) -> None:
    expect(page.get_by_text("You are logged out.")).to_be_visible(timeout=SOON)
    left = page.evaluate("document.title + document.body.innerText")
    assert SECRET not in left
    assert "Omar" not in left
    assert "55501" not in left.replace("-", "")


@pytest.mark.parametrize(
    ("address", "width"),
    [("", 900), ("", 1400), ("/admin/sessions_app/chat/", 1280), ("/admin/", 1280)],
)
def test_a_page_that_asks_is_gone_as_a_whole(
    staff: Page, world: World, omar: None, address: str, width: int
) -> None:
    world.say(CLIENT, f"My secret is {SECRET}")
    staff.set_viewport_size({"width": width, "height": 800})
    staff.goto(address or conversation(world))
    end_all_sessions(staff)
    assert_nobody_is_shown(staff)
    staff.set_viewport_size({"width": 1280, "height": 800})


def test_a_page_that_asks_nothing_ends_with_login(timed: Visit, omar: None, world: World) -> None:
    timed.page.goto(f"/admin/contacts/{world.chat(CLIENT).pk}/")
    end_all_sessions(timed.page)
    timed.page.clock.fast_forward("08:00:05")
    assert_nobody_is_shown(timed.page)


def test_a_page_ends_when_another_tab_logs_out(staff: Page, omar: None, world: World) -> None:
    staff.goto(f"/admin/contacts/{world.chat(CLIENT).pk}/")
    other = staff.context.new_page()
    other.goto("/admin/")
    other.locator(".account-menu summary").click()
    other.get_by_role("button", name="Log out").click()
    assert_nobody_is_shown(staff)


def test_back_after_a_logout_shows_nobody(staff: Page, omar: None, world: World) -> None:
    staff.goto(f"/admin/contacts/{world.chat(CLIENT).pk}/")
    staff.locator(".account-menu summary").click()
    staff.get_by_role("button", name="Log out").click()
    staff.wait_for_url("**/logout/")
    staff.go_back()
    expect(
        staff.get_by_label("Username").or_(staff.get_by_text("You are logged out.")).first
    ).to_be_visible()
    assert "Test User" not in staff.evaluate("document.body.innerText")


@pytest.fixture
def refused(staff: Page, world: World) -> Page:
    """The page of a refused reply."""
    world.say(CLIENT, "Is anybody there?")
    staff.goto(conversation(world))
    staff.locator(".reply [name=key]").evaluate("field => { field.value = 'none'; }")
    staff.get_by_label("Reply as staff").fill(TEXT)
    with staff.expect_response(lambda answer: answer.status == 409):
        send(staff)
    return staff


def test_a_refused_reply_stays_and_is_sent_once(refused: Page, visit: Visit) -> None:
    """When the language is switched, when the page is asked for anew, and in the conversation."""
    refused.get_by_role("button", name="עברית").click()
    expect(refused.locator("html")).to_have_attribute("lang", "he")
    expect(refused.locator("#takeover-text")).to_have_value(TEXT)
    assert [each for each in visit.troubles() if "409" not in each] == []
    refused.get_by_role("button", name="English").click()
    expect(refused.locator("html")).to_have_attribute("lang", "en")
    refused.goto(refused.url)
    expect(refused.locator("#takeover-text")).to_have_value(TEXT)
    refused.get_by_role("link", name="Back to the conversation").click()
    expect(refused.get_by_text("Your draft was restored.")).to_be_visible()
    expect(refused.locator("#takeover-text")).to_have_value(TEXT)
    send(refused)
    expect(refused.get_by_text("Your reply is on its way.")).to_be_visible()
    expect(refused.locator("#takeover-text")).to_have_value("")
    assert Turn.objects.filter(by_hand=True).count() == 1


@pytest.fixture
def too_late(open_chat: Page) -> Page:
    """The page of a reply that was written within WhatsApp's window and sent after it."""
    ask_nothing(open_chat)
    expect(open_chat.locator("#takeover-text")).to_have_value(TEXT)
    long_ago = timezone.now() - timedelta(days=2)
    Message.objects.update(timestamp=long_ago)
    Turn.objects.update(asked_at=long_ago)
    with open_chat.expect_response(lambda answer: answer.status == 409):
        send(open_chat)
    return open_chat


def test_a_reply_after_the_window_stays_to_be_copied(too_late: Page) -> None:
    for language, button in (("he", "עברית"), ("en", "English")):
        expect(too_late.locator("#takeover-unsent")).to_have_value(TEXT)
        too_late.get_by_role("button", name=button).click()
        expect(too_late.locator("html")).to_have_attribute("lang", language)
        expect(too_late.locator("#takeover-unsent")).to_have_value(TEXT)


def test_what_is_typed_in_a_form_stays_when_the_language_is_switched(staff: Page) -> None:
    AssistantProfile.objects.get_or_create(pk=1)
    staff.goto("/admin/sessions_app/assistantprofile/1/change/")
    staff.get_by_label("Persona").fill("Kind.")
    AssistantProfile.objects.update(persona="Short.", business_name="Café")
    staff.get_by_role("button", name="עברית").click()
    expect(staff.locator("html")).to_have_attribute("lang", "he")
    expect(staff.locator("[name=persona]")).to_have_value("Kind.")
    # A field that nobody typed in shows what is stored now.
    expect(staff.locator("[name=business_name]")).to_have_value("Café")
    # The stamp of what was there as it was typed came along, too.
    staff.locator("[name=business_name]").press("Enter")
    expect(staff.locator(".said", has_text="Short.")).to_be_visible()
    assert AssistantProfile.objects.get().persona == "Short."


def test_a_password_is_not_kept(staff: Page) -> None:
    staff.goto("/admin/password_change/")
    staff.locator("#id_old_password").fill("sample-pass-1")
    staff.get_by_role("button", name="עברית").click()
    expect(staff.locator("html")).to_have_attribute("lang", "he")
    expect(staff.locator("#id_old_password")).to_have_value("")
    assert "sample-pass-1" not in staff.evaluate("JSON.stringify([localStorage, sessionStorage])")


def test_a_new_form_gets_no_text_of_a_refused_one_unseen(staff: Page) -> None:
    add, text = "/admin/sessions_app/rule/add/", "We pay it back."
    staff.goto(add)
    staff.locator("[name=name]").fill("Refunds")
    staff.locator("[name=text]").fill(text)
    staff.locator("[name=minutes]").fill("-5")
    with staff.expect_response(lambda answer: answer.request.method == "POST"):
        staff.locator("[name=_save]").click()
    expect(staff.locator("[name=text]")).to_have_value(text)
    staff.goto(add)
    expect(staff.get_by_text("A form that was refused is kept.")).to_be_visible()
    expect(staff.locator("[name=text]")).to_have_value("")
    staff.get_by_role("button", name="Bring it back").click()
    expect(staff.locator("[name=text]")).to_have_value(text)
    expect(staff.get_by_text("Your draft was restored.")).to_be_visible()


@pytest.mark.parametrize(
    "page", ["sessions_app/checkquestion/import/", "memories_app/memory/table/"]
)
def test_the_table_that_is_stored_is_the_one_that_is_shown(staff: Page, page: str) -> None:
    staff.goto(f"/admin/{page}")
    staff.locator("[name=text]").fill("question;answer\nIs A open?;yes it is open")
    staff.get_by_role("button", name="Preview", exact=True).click()
    expect(staff.locator(".planned").get_by_text("Is A open?")).to_be_visible()
    table = b"question;answer\nIs B open?;yes it is open\n"
    if staff.locator("details.table-again").count():
        staff.locator("details.table-again summary").click()
    file: FilePayload = {"name": "b.csv", "mimeType": "text/csv", "buffer": table}
    staff.locator("[name=file]").set_input_files(file)
    staff.get_by_role("button", name="Preview again").click()
    expect(staff.locator(".planned").get_by_text("Is B open?")).to_be_visible()
    expect(staff.locator("[name=text]")).to_have_value(table.decode())
    staff.goto(f"/admin/{page}")
    expect(staff.locator("[name=text]")).to_have_value("")
