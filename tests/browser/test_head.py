"""The page's head: account, language and colours, in sight on every page and screen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visit import Visit, is_scrolled_sideways, serious

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WIDE, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 720}


@pytest.mark.parametrize("screen", [WIDE, PHONE])
def test_the_account_is_in_sight_and_its_menu_opens(
    visit: Visit, staff: Page, screen: dict[str, int]
) -> None:
    staff.set_viewport_size(screen)  # type: ignore[arg-type]
    staff.goto("/admin/auth/user/")
    head = staff.get_by_role("banner")
    account = head.locator(".account-menu > summary")
    box = account.bounding_box()
    assert box is not None
    assert box["y"] < 100
    assert box["x"] + box["width"] > screen["width"] - 40
    account.click()
    for name in ("My account", "Change password", "Two-factor login"):
        expect(head.get_by_role("link", name=name)).to_be_visible()
    assert not is_scrolled_sideways(staff)
    assert serious(staff) == []
    staff.keyboard.press("Escape")
    expect(head.get_by_role("link", name="Two-factor login")).to_be_hidden()
    expect(account).to_be_focused()
    account.press("Enter")
    head.get_by_role("button", name="Log out").press("Enter")
    expect(staff.get_by_role("link", name="Log in again")).to_be_visible()
    assert visit.troubles() == []


def test_the_language_is_switched_where_one_is_and_the_head_is_mirrored(
    visit: Visit, staff: Page
) -> None:
    staff.set_viewport_size(PHONE)  # type: ignore[arg-type]
    staff.goto("/admin/sessions_app/label/?q=x")
    staff.get_by_role("banner").get_by_role("button", name="עברית").click()
    expect(staff.locator("html")).to_have_attribute("dir", "rtl")
    expect(staff).to_have_url(re.compile(r"/label/\?q=x$"))
    box = staff.locator(".account-menu > summary").bounding_box()
    assert box is not None
    assert box["x"] < 40
    assert not is_scrolled_sideways(staff)
    staff.get_by_role("banner").get_by_role("button", name="English").click()
    expect(staff.locator("html")).to_have_attribute("dir", "ltr")
    assert visit.troubles() == []


def test_the_colours_are_chosen_and_kept(visit: Visit, staff: Page) -> None:
    staff.goto("/admin/")
    colours = staff.locator(".theme-switch")
    colours.locator("summary").click()
    colours.get_by_role("button", name="Dark").click()
    expect(staff.locator("html")).to_have_class(re.compile("dark"))
    expect(colours.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    staff.goto("/admin/sessions_app/chat/")
    expect(staff.locator("html")).to_have_class(re.compile("dark"))
    assert visit.troubles() == []
