"""What all pages have in a browser: the head with account, language, colours and search; forms, and
the first page."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.browser.visit import SOON, Visit, is_scrolled_sideways, looked_at, serious, style
from tests.programs import python
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


WIDE, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 720}


@pytest.mark.parametrize("screen", [WIDE, PHONE])
def test_the_account_and_its_menu_open(visit: Visit, staff: Page, screen: dict[str, int]) -> None:
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


def test_the_language_is_switched_here_and_the_head_mirrored(visit: Visit, staff: Page) -> None:
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


def test_a_keyboard_searches_from_any_page(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Where is the lighthouse?")
    world.say(OTHER_CLIENT, "Is the door open?")
    # The field of the list's own search has the focus there.
    staff.goto("/admin/contacts/")
    staff.keyboard.press("/")
    box = staff.get_by_role("searchbox", name="Search people, messages and memories")
    expect(box).to_be_focused()
    staff.keyboard.type("lighthouse")
    hits = staff.locator(".search-hits")
    expect(hits.locator("mark").first).to_have_text("lighthouse", timeout=SOON)
    expect(hits.get_by_role("heading", name="Messages")).to_be_visible()
    # What is typed next replaces it; nothing of it is a shortcut.
    box.fill("door?")
    expect(hits.locator("mark").first).to_have_text("door", timeout=SOON)
    expect(hits).not_to_contain_text("lighthouse")
    staff.keyboard.press("ArrowDown")
    expect(hits.locator(".search-hit").first).to_be_focused()
    staff.keyboard.press("ArrowUp")
    expect(box).to_be_focused()
    staff.keyboard.press("Escape")
    expect(hits).to_be_hidden()
    expect(box).to_be_focused()
    box.fill("lighthouse")
    expect(hits.locator("mark").first).to_have_text("lighthouse", timeout=SOON)
    staff.keyboard.press("ArrowDown")
    with staff.expect_navigation():
        staff.keyboard.press("Enter")
    expect(staff).to_have_url(re.compile(r"/conversation/\?q=lighthouse&at=.*#m-"))
    assert visit.troubles() == []


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


BOTH = (
    "import os, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'memoryproject.settings';"
    "django.setup(); import memoryproject.urls, unfold.forms;"
    "from django.contrib.admin import helpers;"
    "print(helpers.AdminForm is unfold.forms.AdminForm)"
)


def test_a_form_says_the_time_zone_once(staff: Page) -> None:
    """Django's script compares the server's clock with the browser's, beside each such field."""
    client = staff.context.new_cdp_session(staff)
    client.send("Emulation.setTimezoneOverride", {"timezoneId": "Pacific/Auckland"})
    for address in ("/admin/memories_app/memory/add/", "/admin/api/apitoken/add/"):
        staff.goto(address)
        expect(staff.locator(".timezonewarning").first).to_be_attached()
        expect(staff.locator(".timezonewarning").first).to_be_hidden()
        expect(staff.get_by_text("Times in")).to_be_visible()


def test_a_file_is_chosen_without_an_error(visit: Visit, staff: Page) -> None:
    for name in ("admin:memories_app_sourcedocument_add", "admin:memories_app_memory_import"):
        staff.goto(reverse(name))
        file = {"name": "prices.txt", "mimeType": "text/plain", "buffer": b"Roses cost 5"}
        staff.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
        assert staff.locator("input[type=file]").evaluate("field => field.files.length") == 1
    assert visit.troubles() == []


def test_a_form_looks_the_same_whichever_form_was_opened_before() -> None:
    found = python("-c", BOTH)
    assert found.stdout.strip() == "True"


def test_it_is_dark_for_who_likes_it_dark(browser: Browser, live_server: LiveServer) -> None:
    papers = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(live_server.url)
        papers.append(style(page, "body", "backgroundColor"))
        context.close()
    assert papers == ["rgb(246, 248, 247)", "rgb(19, 25, 23)"]


# What axe is asked on the pages: faults are found, also where their kind of element is known.


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
