"""Lists in a browser: texts of both directions, rows on a phone, and the audit log's button."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from memoryproject.foundation.audit.audit_events import log_path
from memoryproject.foundation.audit.models import AuditVerification
from memoryproject.foundation.audit.tasks import verify
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.models import CannedReply
from tests.browser.visit import ROW, Visit, is_scrolled_sideways
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


HEBREW = "מה הקוד לדלת הכניסה?"
MESSAGES = "/admin/sessions_app/message/"


def test_hebrew_runs_from_the_right_and_english_from_the_left(staff: Page, world: World) -> None:
    world.say(CLIENT, HEBREW)
    staff.goto(MESSAGES)
    for text, direction in ((HEBREW, "rtl"), (f"answer to: {HEBREW}", "ltr")):
        said = staff.locator("#result_list .said").get_by_text(text, exact=True)
        assert said.evaluate("element => getComputedStyle(element).direction") == direction


def test_a_number_begins_with_its_plus_in_hebrew_too(staff: Page, world: World) -> None:
    world.say(CLIENT, HEBREW)
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/change/")
    staff.get_by_role("button", name="עברית").click()
    expect(staff.locator("html")).to_have_attribute("dir", "rtl")
    title = staff.locator("td.original span").get_by_text(number_shown(CLIENT), exact=True)
    places = title.evaluate(
        """element => {
            const text = [...element.childNodes].find((node) => node.data.includes("+"));
            const left = (at) => {
                const range = document.createRange();
                range.setStart(text, at);
                range.setEnd(text, at + 1);
                return range.getBoundingClientRect().left;
            };
            const plus = text.data.indexOf("+");
            return [left(plus), left(plus + 1), left(text.data.trimEnd().length - 1)];
        }"""
    )
    assert places == sorted(places), "from the left: the plus, the first digit, the last one"


PHONE = {"width": 390, "height": 844}


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


LOG = "/admin/audit/auditevent/"


def test_the_log_is_verified_by_a_button(visit: Visit, staff: Page) -> None:
    log_path().unlink(missing_ok=True)
    staff.goto(LOG)
    staff.get_by_role("link", name="Verify the log").click()
    state = staff.locator("#chain")
    staff.get_by_role("button", name="Verify now").click()
    expect(state).to_contain_text("as soon as a worker is free")
    verify(AuditVerification.objects.latest("id").pk)
    # The page shows by itself what the worker found.
    expect(state).to_contain_text("Verified: no tampering found.")
    assert not is_scrolled_sideways(staff)
    assert visit.troubles() == []
    log_path().unlink()
