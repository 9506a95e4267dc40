"""A form that was refused because somebody else saved meanwhile, on any screen, by keyboard."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, expect

from memoryproject.foundation.outgoing_webhooks.models import WebhookEndpoint
from sessions_app.models import AssistantProfile, Note
from tests.browser.visit import Visit, looked_at
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MEANWHILE = "Somebody else saved this meanwhile and changed: "


def test_an_endpoint_is_decided_about_and_saved(visit: Visit, staff: Page) -> None:
    endpoint = WebhookEndpoint.objects.create(name="crm", url="https://1.1.1.1/", secret="whsec_x")
    staff.goto(f"/admin/hooks/webhookendpoint/{endpoint.pk}/change/")
    staff.fill("#id_name", "erp")
    WebhookEndpoint.objects.update(name="crm of the shop", enabled=False)
    staff.locator("#id_name").press("Enter")
    expect(staff.get_by_text(f"{MEANWHILE}Name, Enabled.")).to_be_visible()
    expect(staff.locator(".said", has_text="crm of the shop")).to_be_visible()
    expect(staff.locator("#id_name")).to_have_value("erp")
    expect(staff.locator("#id_enabled")).not_to_be_checked()
    assert looked_at(staff) == []
    with staff.expect_navigation():
        staff.locator("#id_name").press("Enter")
    endpoint.refresh_from_db()
    assert (endpoint.name, endpoint.enabled) == ("erp", False)
    assert visit.troubles() == []


def test_the_profile_shows_what_is_stored_beside_each_field(staff: Page) -> None:
    AssistantProfile.objects.get_or_create(pk=1)
    staff.goto("/admin/sessions_app/assistantprofile/1/change/")
    staff.get_by_label("Persona").fill("Kind.")
    AssistantProfile.objects.update(persona="Short.")
    staff.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(staff.get_by_text(f"{MEANWHILE}Persona.")).to_be_visible()
    expect(staff.locator(".said", has_text="Short.")).to_be_visible()
    expect(staff.get_by_label("Persona")).to_have_value("Kind.")
    assert looked_at(staff) == []


def test_a_note_is_asked_about_on_a_page_of_its_own(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "Hello")
    chat, author = world.chat(CLIENT), User.objects.get()
    note = Note.objects.create(
        chat=chat, author=author, author_name="staff", text="call", created_at=timezone.now()
    )
    staff.goto(f"/admin/sessions_app/chat/{chat.pk}/conversation/")
    staff.get_by_text("Change or delete").press("Enter")
    staff.get_by_label("The note", exact=True).fill("called back")
    Note.objects.update(text="on it")
    staff.get_by_role("button", name="Change", exact=True).press("Enter")
    expect(staff.get_by_text(f"{MEANWHILE}The note.")).to_be_visible()
    expect(staff.locator(".said", has_text="on it")).to_be_visible()
    assert looked_at(staff) == []
    with staff.expect_navigation(url="**/conversation/"):
        staff.get_by_role("button", name="Change", exact=True).press("Enter")
    note.refresh_from_db()
    assert note.text == "called back"
    assert visit.troubles() == []
