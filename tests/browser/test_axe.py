"""What axe is asked on the pages: faults are found, also where their kind of element is known."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.visit import serious

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FAULTS = {
    "image-alt": "<img src='data:,'>",
    "label": "<input type='text'>",
    "color-contrast": "<p style='color: #bbb; background: #fff'>pale</p>",
    "list": "<ul><p>no item</p></ul>",
    "heading-order": "<h1>One</h1><h5>Five</h5>",
}
ADD = "html => document.querySelector('main').insertAdjacentHTML('beforeend', html)"


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_is_found_on_the_page_on_which_it_comes(staff: Page, rule: str) -> None:
    staff.goto("/admin/password_change/")
    known: set[str] = set()
    assert serious(staff, known) == []
    assert serious(staff, known) == []
    staff.evaluate(ADD, FAULTS[rule])
    assert [each.split(":")[0] for each in serious(staff, known)] == [rule]


def test_a_known_text_is_pale_on_another_ground(staff: Page) -> None:
    staff.goto("/admin/password_change/")
    text = "<p style='color: #595959'>text</p>"
    known: set[str] = set()
    staff.evaluate(ADD, f"<div style='background: #fff'>{text}</div>")
    assert serious(staff, known) == []
    for ground in ("background: #666", "background: #fff; opacity: 0.4"):
        staff.evaluate(ADD, f"<div style='{ground}'>{text}</div>")
        (found,) = serious(staff, known)
        assert found.startswith("color-contrast")
        staff.evaluate("document.querySelector('main').lastElementChild.remove()")
