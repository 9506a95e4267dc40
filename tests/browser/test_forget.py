"""Forgetting in a browser: by the keyboard alone, at both widths, light and dark, in Hebrew."""

from __future__ import annotations

import io

import pytest
from django.utils import translation
from playwright.sync_api import Page, expect
from pypdf import PdfReader

from memories_app.models import Memory
from sessions_app.forgetting.receipt_pages import receipt_document
from sessions_app.models import ForgetReceipt, ForgetRun
from sessions_app.tasks import run_forgetting
from tests.browser.visit import Visit, style
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FACT = "The gate of the yard opens with the number of the old tram"
RUNS = "/admin/sessions_app/forgetrun/"
MAX_TABS = 150


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is there, as somebody does who has no mouse."""
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("one => document.activeElement.matches(one)", selector):
            return
    raise AssertionError(f"the keyboard doesn't get to {selector}")


def press(page: Page, key: str = "Enter") -> None:
    """A key that leads to another page."""
    with page.expect_navigation():
        page.keyboard.press(key)


def work() -> None:
    """What the workers do."""
    for run in ForgetRun.objects.filter(state="waiting"):
        run_forgetting(str(run.pk))


def test_by_keyboard_from_a_list_to_the_receipt(visit: Visit, staff: Page, world: World) -> None:
    world.remember(CLIENT, FACT)
    staff.goto("/admin/memories_app/memory/")
    tab_to(staff, "input.action-select")
    staff.keyboard.press("Space")
    tab_to(staff, "select[name=action]")
    staff.keyboard.type("Erase")
    tab_to(staff, ".actionbar button, button[name=index]")
    press(staff)

    expect(staff.get_by_role("heading", level=1)).to_have_text("Preview")
    expect(staff.get_by_text("Restoring is impossible.")).to_be_visible()
    expect(staff.get_by_role("list", name="Memories to erase")).to_contain_text(FACT)
    tab_to(staff, "#id_typed")
    staff.keyboard.type("FORGET")
    press(staff)

    expect(staff.get_by_role("progressbar")).to_be_visible()
    work()
    expect(staff.get_by_role("heading", level=1)).to_have_text("Erased")
    receipt = ForgetReceipt.objects.get()
    tab_to(staff, f"a[href$='/forgetreceipt/{receipt.pk}/change/']")
    press(staff)

    expect(staff.locator("#content")).to_contain_text(str(receipt.receipt_id))
    staff.evaluate("window.print = () => { window.printed = true; }")
    tab_to(staff, "button[data-print]")
    staff.keyboard.press("Enter")
    assert staff.evaluate("window.printed")
    assert not Memory.objects.exists()
    assert visit.troubles() == []


@pytest.mark.parametrize("language", ["en", "he"])
def test_receipts_are_printed_without_the_page_around_them(
    visit: Visit, staff: Page, world: World, language: str
) -> None:
    world.remember(CLIENT, FACT)
    run = ForgetRun.objects.create(asked_by="staff", total=1, state="waiting")
    run.items.create(number=1, kind="memory", object_id=Memory.objects.get().pk)
    run_forgetting(str(run.pk))
    receipt = ForgetReceipt.objects.get()
    staff.set_extra_http_headers({"Accept-Language": language})
    staff.emulate_media(media="print", color_scheme="dark")
    receipts = "/admin/sessions_app/forgetreceipt/"
    for address in (f"{receipts}{receipt.pk}/change/", f"{RUNS}{run.pk}/receipts/"):
        staff.goto(address)
        with translation.override(language):
            document = receipt_document(receipt)
        for _name, value in document.parts[0].facts:
            expect(staff.get_by_text(value, exact=True).first).to_be_visible()
        expect(staff.get_by_text(document.notes[0])).to_be_visible()
        for left_out in (".room-nav", ".page-head", "button", "a.button", ".skip"):
            for each in staff.locator(left_out).all():
                expect(each).to_be_hidden()
        assert style(staff, "body", "direction") == ("rtl" if language == "he" else "ltr")
        assert style(staff, ".receipt dd", "color") == "rgb(0, 0, 0)"
        assert style(staff, ".receipt tr", "breakInside") == "avoid"
        pages = PdfReader(io.BytesIO(staff.pdf())).pages
        text = "".join(page.extract_text() for page in pages).replace("\n", "")
        assert receipt.content_hash in text
    assert visit.troubles() == []
