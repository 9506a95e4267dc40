"""Logging in by keyboard alone, with a code from an app."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django_otp.plugins.otp_totp.models import TOTPDevice
from playwright.sync_api import expect

from tests.browser.conftest import PASSWORD, USERNAME
from tests.browser.visit import Visit, is_scrolled_sideways, serious
from tests.staff.people import code_now

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_password_and_code_by_keyboard(visit: Visit, width: int, scheme: str) -> None:
    user = get_user_model()._default_manager.create_superuser(USERNAME, password=PASSWORD)
    device = TOTPDevice.objects.create(user=user, name="app", confirmed=True)
    page = visit.page
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/admin/audit/auditevent/")
    assert serious(page) == []
    page.locator("#id_username").focus()
    page.keyboard.type(USERNAME)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.get_by_label("Code")).to_be_focused()
    assert serious(page) == []
    assert not is_scrolled_sideways(page)
    page.keyboard.type(code_now(device))
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page).to_have_url(f"{visit.url}/admin/audit/auditevent/")
    assert visit.troubles() == []


def test_setting_it_up(visit: Visit) -> None:
    get_user_model()._default_manager.create_superuser(USERNAME, password=PASSWORD)
    page = visit.page
    page.goto("/admin/account/two-factor/")
    page.fill("#id_username", USERNAME)
    page.fill("#id_password", PASSWORD)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_label("Password").fill(PASSWORD)
    with page.expect_navigation():
        page.get_by_role("button", name="Set up").press("Enter")
    expect(page.locator(".access-qr svg")).to_be_visible()
    page.get_by_role("textbox", name="Code").fill(code_now(TOTPDevice.objects.get()))
    with page.expect_navigation():
        page.keyboard.press("Enter")
    codes = page.locator(".access-codes li")
    expect(codes).to_have_count(10)
    assert not is_scrolled_sideways(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copy = page.get_by_role("button", name="Copy")
    copy.press("Enter")
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").split() == codes.all_inner_texts()
    page.context.clear_permissions()
    # As by plain HTTP, where browsers have no clipboard.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    copy.press("Enter")
    expect(page.get_by_text("It is selected")).to_be_visible()
    assert page.evaluate("getSelection().toString()").split() == codes.all_inner_texts()
    assert visit.troubles() == []
