"""The pages of memory cards and memory documents, with texts of any length and direction."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from memories_app.memory_documents.database_store import DatabaseStore
from memories_app.models import MemoryDocument
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from sessions_app.cards.make_cards import cards_make
from sessions_app.models import ChatSession
from tests.browser.visit import Visit, is_scrolled_sideways
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HEBREW = "החלטנו לשלם ביום חמישי!"
CARDS = "/admin/cards_app/memorycard/"
DOCUMENTS = "/admin/memories_app/memorydocument/"
LONG = "a" * 200
SIZES: list[ViewportSize] = [{"width": 1280, "height": 900}, {"width": 390, "height": 844}]


@pytest.fixture
def card(world: World) -> ChatSession:
    world.say(CLIENT, HEBREW)
    world.say(CLIENT, "Remember to ask TestCorp about " + "x" * 300)
    session = ChatSession.objects.get()
    assert cards_make(session_ids=[session.pk]) == 1
    return session


@pytest.fixture
def document() -> MemoryDocument:
    content = {"decision": "x" * 3_000, "rationale": HEBREW, "further": {"y" * 300: [HEBREW]}}
    store = DatabaseStore(actor=COMMAND_LINE)
    store.save(category="decisions", identifier=LONG, content=content)
    return MemoryDocument.objects.get()


def is_within(page: Page, selector: str) -> bool:
    """Whether the whole of such an element is in the width of the window."""
    script = "element => element.getBoundingClientRect().right <= window.innerWidth"
    return bool(page.locator(selector).first.evaluate(script))


@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_cards_fit_the_window(
    visit: Visit, staff: Page, card: ChatSession, size: ViewportSize
) -> None:
    staff.set_viewport_size(size)
    for address in (CARDS, f"{CARDS}{card.pk}/change/"):
        staff.goto(address)
        assert not is_scrolled_sideways(staff), address
    assert visit.troubles() == []


def test_a_hebrew_card_runs_from_the_right_without_its_roles(
    staff: Page, card: ChatSession
) -> None:
    staff.goto(f"{CARDS}{card.pk}/change/")
    first = staff.locator(".field-bullets .said").first
    expect(first).to_have_text(HEBREW)
    assert first.evaluate("element => getComputedStyle(element).direction") == "rtl"
    expect(staff.locator(".field-bullets .quiet").first).to_have_text("[Client]")


def test_cards_are_filtered_by_what_their_pages_call_it(staff: Page, card: ChatSession) -> None:
    staff.goto(CARDS)
    for name, key in (("tasks", "todos"), ("questions", "notable_quotes"), ("names", "entities")):
        staff.locator(".filters summary").click()
        staff.locator("#changelist-filter").get_by_role("link", name=name, exact=True).click()
        expect(staff).to_have_url(f"{CARDS}?holds={key}")
        expect(staff.locator("#result_list tbody tr")).to_have_count(1)


@pytest.mark.parametrize("size", SIZES, ids=["desk", "phone"])
def test_a_long_name_leaves_documents_in_shape(
    visit: Visit, staff: Page, document: MemoryDocument, size: ViewportSize
) -> None:
    staff.set_viewport_size(size)
    staff.goto(DOCUMENTS)
    assert not is_scrolled_sideways(staff)
    assert is_within(staff, "#result_list th.field-name a")
    staff.goto(f"{DOCUMENTS}{document.pk}/change/")
    assert not is_scrolled_sideways(staff)
    assert is_within(staff, ".field-name .readonly")
    expect(staff.locator(".field-name .readonly")).to_have_text(LONG)
    assert visit.troubles() == []


def test_a_document_without_content_says_so(staff: Page, transactional_db: None) -> None:
    DatabaseStore(actor=COMMAND_LINE).save(category="context", identifier="x", content={})
    staff.goto(f"{DOCUMENTS}{MemoryDocument.objects.get().pk}/change/")
    expect(staff.locator(".field-shown_content .readonly")).to_have_text("–")
