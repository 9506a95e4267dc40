"""Text that was typed isn't lost where the language is switched or a refused page is left.

What happens to it in other cases: see test_drafts.py.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from sessions_app.models import AssistantProfile, Message, Turn
from tests.browser.visit import Visit
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TEXT = "Good morning,\nit is ready at five."


@pytest.fixture
def refused(staff: Page, world: World) -> Page:
    """The page of a refused reply."""
    world.say(CLIENT, "Is anybody there?")
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    staff.locator(".reply [name=key]").evaluate("field => { field.value = 'none'; }")
    staff.get_by_label("Reply as staff").fill(TEXT)
    with staff.expect_response(lambda answer: answer.status == 409):
        staff.get_by_role("button", name="Send", exact=True).click()
    return staff


def test_a_refused_reply_stays_when_the_language_is_switched(refused: Page, visit: Visit) -> None:
    refused.get_by_role("button", name="עברית").click()
    expect(refused.locator("html")).to_have_attribute("lang", "he")
    expect(refused.locator("#takeover-text")).to_have_value(TEXT)
    assert [each for each in visit.troubles() if "409" not in each] == []


def test_it_stays_when_the_page_is_asked_for_anew_and_is_sent_once(refused: Page) -> None:
    refused.goto(refused.url)
    expect(refused.locator("#takeover-text")).to_have_value(TEXT)
    refused.get_by_role("button", name="Send", exact=True).click()
    expect(refused.get_by_text("Your reply is on its way.")).to_be_visible()
    expect(refused.locator("#takeover-text")).to_have_value("")
    assert Turn.objects.filter(by_hand=True).count() == 1


def let_window_close() -> None:
    """What the person wrote is two days old by now."""
    long_ago = timezone.now() - timedelta(days=2)
    Message.objects.update(timestamp=long_ago)
    Turn.objects.update(asked_at=long_ago)


@pytest.fixture
def too_late(staff: Page, world: World) -> Page:
    """The page of a reply that was written within WhatsApp's window and sent after it."""
    world.say(CLIENT, "Is anybody there?")
    chat = world.chat(CLIENT)
    staff.goto(f"/admin/sessions_app/chat/{chat.pk}/conversation/")
    let_window_close()
    staff.get_by_label("Reply as staff").fill(TEXT)
    with staff.expect_response(lambda answer: answer.status == 409):
        staff.get_by_role("button", name="Send", exact=True).click()
    return staff


def test_a_reply_after_the_window_stays_to_be_copied(too_late: Page) -> None:
    for language, button in (("he", "עברית"), ("en", "English")):
        expect(too_late.locator("#takeover-unsent")).to_have_value(TEXT)
        too_late.get_by_role("button", name=button).click()
        expect(too_late.locator("html")).to_have_attribute("lang", language)
        expect(too_late.locator("#takeover-unsent")).to_be_visible()
        expect(too_late.locator("#takeover-unsent")).to_have_value(TEXT)


def test_a_reply_after_the_window_is_ready_to_send_once_the_person_writes(
    too_late: Page, world: World
) -> None:
    world.say(CLIENT, "Hello?")
    too_late.get_by_role("link", name="Back to the conversation").click()
    expect(too_late.locator("#takeover-text")).to_have_value(TEXT)


def test_nothing_is_offered_to_copy_where_nothing_was_typed(staff: Page, world: World) -> None:
    world.say(CLIENT, "Is anybody there?")
    let_window_close()
    staff.goto(reverse("admin:sessions_app_chat_takeover", args=[world.chat(CLIENT).pk]))
    expect(staff.get_by_text("window has been closed")).to_be_visible()
    expect(staff.locator("#takeover-unsent")).to_be_hidden()


def test_it_comes_to_the_conversation(refused: Page) -> None:
    refused.get_by_role("link", name="Back to the conversation").click()
    expect(refused.locator("#takeover-text")).to_have_value(TEXT)
    refused.reload()
    expect(refused.locator("#takeover-text")).to_have_value(TEXT)
    refused.get_by_role("button", name="Discard").click()
    expect(refused.locator("#takeover-text")).to_have_value("")
    refused.reload()
    expect(refused.locator("#takeover-text")).to_have_value("")


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
