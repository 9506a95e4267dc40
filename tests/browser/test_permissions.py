"""The long checklist of permissions can be searched."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visit import Visit, looked_at

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_permission_is_found_among_all(visit: Visit, staff: Page) -> None:
    staff.goto("/admin/auth/group/add/")
    boxes = staff.locator(".permission-list label")
    every = boxes.count()
    assert every > 40
    field = staff.get_by_role("searchbox", name="Find a permission")
    field.fill("answers retry")
    visible = staff.locator(".permission-list label:visible")
    expect(visible).to_have_count(1)
    expect(visible).to_contain_text("Answers: retry failed ones")
    visible.click()
    field.press("Enter")
    expect(field).to_be_visible()
    assert looked_at(staff) == []
    field.fill("nothing like this")
    expect(staff.get_by_text("No permission matches.")).to_be_visible()
    field.fill("")
    expect(visible).to_have_count(every)
    expect(boxes.locator("input:checked")).to_have_count(1)
    assert visit.troubles() == []
