"""Contacts in a browser: a person is found by the number as people write it, and looked at."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.clicks import clicks, count_clicks
from tests.browser.visit import Visit, looked_at

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_contact_is_found_by_a_local_number_in_two_clicks(
    visit: Visit, staff: Page, omar: None
) -> None:
    """One click opens the list, whose search has the focus already, and one the person."""
    count_clicks(staff)
    staff.goto("/admin/")
    with staff.expect_navigation():
        staff.get_by_role("link", name="Contacts").click()
    staff.keyboard.type("055-010-0101")
    with staff.expect_navigation():
        staff.keyboard.press("Enter")
    expect(staff.locator(".contact")).to_have_count(1)
    assert looked_at(staff) == []
    with staff.expect_navigation():
        staff.get_by_role("link", name="Omar Haddad").click()
    assert clicks(staff) <= 2
    expect(staff.get_by_role("heading", level=1)).to_have_text("Omar Haddad")
    expect(staff.locator(".contact-number")).to_have_text("+972 55-010-0101")
    assert looked_at(staff) == []
    assert visit.troubles() == []
