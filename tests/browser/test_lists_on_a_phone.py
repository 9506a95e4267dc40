"""Lists of the admin on a phone: a row is two lines, which open what it is about. That each list's
rows are, test_every_page.py sees."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from sessions_app.models import CannedReply
from tests.browser.visit import MEASURED, ROW, is_long
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PHONE = {"width": 390, "height": 844}


def test_costs_have_two_lines_a_row(staff: Page, world: World, settings: Any) -> None:
    settings.MODEL_PRICES = {"scripted": (1_000.0, 2_000.0)}
    world.say(CLIENT, "is the terrace open")
    staff.set_viewport_size(PHONE)  # type: ignore[arg-type]
    staff.goto("/admin/costs/?period=7")
    tables = staff.locator(".costs .table")
    expect(tables).to_have_count(3)
    for table in tables.all():
        is_wider = table.evaluate("frame => frame.scrollWidth > frame.clientWidth")
        assert not is_wider, table.inner_text()
    rows = staff.locator(".costs tbody tr")
    expect(rows).to_have_count(9)
    assert not [row for row in rows.evaluate_all(MEASURED) if is_long(row)]
    today = rows.first
    expect(today.locator(".row-time")).to_contain_text("USD")
    expect(today.get_by_role("cell", name="Prompt: ")).to_be_visible()


def test_a_long_text_is_cut_at_its_own_end(staff: Page, world: World) -> None:
    """In a page from right to left, too, where an English text's end is on the right."""
    CannedReply.objects.create(
        name="Greeting", shortcut="greet", text="Hello, this is " + "us " * 99
    )
    staff.set_viewport_size(PHONE)  # type: ignore[arg-type]
    address = reverse("admin:sessions_app_cannedreply_changelist")
    for language in ("en", "he"):
        staff.goto(address)
        cookie = {"name": "django_language", "value": language, "url": staff.url}
        staff.context.add_cookies([cookie])  # type: ignore[list-item]
        staff.goto(address)
        assert staff.locator("html").get_attribute("lang") == language
        shown = staff.locator(f"{ROW} .row-rest").evaluate_all(
            """cells => cells.map(cell => {
                const text = document.createRange();
                text.selectNodeContents(cell);
                const row = cell.closest("tr").getBoundingClientRect();
                const width = cell.getBoundingClientRect().width;
                return text.getBoundingClientRect().left >= row.left && width > 20;
            })"""
        )
        assert shown == [True, True], language


def test_a_touch_opens_the_row_and_the_box_chooses_it(staff: Page, world: World) -> None:
    world.say(CLIENT, "is the terrace open")
    staff.set_viewport_size(PHONE)  # type: ignore[arg-type]
    staff.goto(reverse("admin:sessions_app_message_changelist"))
    row = staff.locator(ROW).last
    expect(staff.locator("#changelist-search kbd")).to_be_hidden()
    expect(row.locator(".row-title")).to_have_text("is the terrace open")
    expect(row.locator(".row-time")).to_be_visible()
    row.get_by_role("checkbox").check()
    expect(staff.get_by_role("group", name="Actions for the ticked rows")).to_be_visible()
    # At the end of the second line, where there is no link of its own.
    row.click(position={"x": 340, "y": 48})
    expect(staff.locator("h1")).not_to_have_text("Messages")
    assert "/change/" in staff.url


def test_a_wide_screen_has_a_table(staff: Page, world: World) -> None:
    world.say(CLIENT, "is the terrace open")
    staff.set_viewport_size({"width": 1280, "height": 800})
    staff.goto(reverse("admin:sessions_app_message_changelist"))
    expect(staff.get_by_role("columnheader", name="Written by")).to_be_visible()
    expect(staff.locator("#changelist-search kbd")).to_be_visible()
    row = staff.locator(ROW).last
    expect(row.locator(".row-year")).to_be_visible()
    tops = row.locator("td, th").evaluate_all("cells => cells.map(cell => cell.offsetTop)")
    assert len(set(tops)) == 1
