"""The admin in a browser: lists, search, detail, forms."""

from __future__ import annotations

import re

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import Page, expect

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.store.remember import memory_remember
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.conversations.message_store import NewMessage, messages_add
from sessions_app.models import AssistantProfile, Chat, ChatSession, Turn
from tests.browser.visit import Visit, is_scrolled_sideways, style
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HEBREW = "מה הקוד לדלת הכניסה?"
SESSIONS = "/admin/sessions_app/chatsession/"
MESSAGES = "/admin/sessions_app/message/"
TURNS = "/admin/sessions_app/turn/"
MEMORIES = "/admin/memories_app/memory/"
ROWS = "#result_list tbody tr"


def test_a_wrong_password_is_refused_and_a_right_one_leads_to_the_overview(
    visit: Visit, staff: Page
) -> None:
    staff.goto("/admin/")
    staff.locator(".account-menu > summary").click()
    staff.get_by_role("button", name="Log out").click()
    staff.goto("/admin/")
    staff.fill("#id_username", "staff")
    staff.fill("#id_password", "wrong")
    staff.click("#login-form button[type=submit]")
    expect(staff.get_by_text("correct username and password")).to_be_visible()
    assert visit.troubles() == []


def test_the_overview_begins_with_conversations(visit: Visit, staff: Page) -> None:
    staff.goto("/admin/")
    menu = staff.get_by_role("navigation", name="Main")
    expect(menu.locator("summary:visible")).to_have_text(
        ["Knowledge", "Privacy & audit", "Settings"]
    )
    expect(menu.get_by_role("link", name="Home")).to_have_attribute("aria-current", "page")
    expect(menu.get_by_role("link", name="Inbox")).to_have_attribute(
        "href", "/admin/sessions_app/chat/"
    )
    expect(staff.get_by_role("banner")).to_contain_text("Times in UTC")
    assert visit.troubles() == []


@pytest.mark.parametrize(
    ("address", "by"),
    [
        (SESSIONS, "make demo"),
        (MESSAGES, "make demo"),
        (TURNS, "make demo"),
        (MEMORIES, "/remember"),
    ],
)
def test_an_empty_list_says_how_it_fills(staff: Page, address: str, by: str) -> None:
    staff.goto(address)
    expect(staff.locator(".nothing")).to_contain_text(by)


def test_a_session_leads_to_its_messages_in_reading_order(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "Good morning")
    world.say(CLIENT, HEBREW)
    world.say(OTHER_CLIENT, "Somebody else")
    staff.goto(SESSIONS)
    assert staff.locator(ROWS).count() == 2
    staff.locator(ROWS, has_text=number_shown(CLIENT)).get_by_role("link", name="read 4").click()
    said = ["Good morning", "answer to: Good morning", HEBREW, f"answer to: {HEBREW}"]
    expect(staff.locator("#result_list .said")).to_have_text(said)
    assert visit.troubles() == []


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


def test_search_finds_words_people_and_nothing(staff: Page, world: World) -> None:
    world.say(CLIENT, "The dishwasher leaks")
    world.say(OTHER_CLIENT, HEBREW)
    for address, query, rows in (
        (MESSAGES, "dishwasher", 2),
        (MESSAGES, "לדלת", 2),
        (SESSIONS, OTHER_CLIENT, 1),
        (TURNS, OTHER_CLIENT, 1),
    ):
        staff.goto(address)
        staff.fill("#searchbar", query)
        staff.press("#searchbar", "Enter")
        expect(staff.locator(ROWS)).to_have_count(rows)
    staff.goto(f"{MESSAGES}?q=unheard")
    expect(staff.locator(".nothing")).to_contain_text("Nothing matches")


def test_what_people_write_is_shown_and_not_run(visit: Visit, staff: Page, world: World) -> None:
    attack = "<script>document.title='taken'</script><b>bold</b>"
    world.say(CLIENT, attack)
    staff.goto(MESSAGES)
    shown = staff.locator("#result_list .said").get_by_text(attack, exact=True)
    expect(shown).to_be_visible()
    staff.goto(f"{TURNS}{Turn.objects.get().pk}/change/")
    expect(staff.get_by_role("main").get_by_text(attack, exact=True).first).to_be_visible()
    assert staff.title() != "taken"
    assert visit.troubles() == []


@pytest.mark.parametrize("text", ["word " * 4_000, "x" * 20_000, HEBREW * 1_000])
def test_very_long_texts_leave_the_page_in_shape(staff: Page, world: World, text: str) -> None:
    world.say(CLIENT, text)
    said = world.messages(CLIENT)[0]
    for address in (MESSAGES, TURNS, f"{MESSAGES}{said.pk}/change/"):
        staff.goto(address)
        assert not is_scrolled_sideways(staff), address
    assert staff.locator(".field-whole_text .said").inner_text() == text
    staff.goto(f"{TURNS}{Turn.objects.get().pk}/change/")
    assert not is_scrolled_sideways(staff)


def test_three_hundred_messages_come_in_pages(staff: Page, world: World) -> None:
    world.say(CLIENT, "first")
    with transaction.atomic():
        session = ChatSession.objects.select_for_update().get()
        for number in range(3, 301):
            new = NewMessage(role="user", content=f"message {number}", timestamp=timezone.now())
            messages_add(session=session, new=[new], token_limit=4_000, now=timezone.now())
    staff.goto(f"{MESSAGES}?session__session_id__exact={session.pk}")
    assert staff.locator(ROWS).count() == 50
    assert "300 messages" in staff.locator(".paginator").inner_text()
    staff.locator(".paginator").get_by_role("link", name="6", exact=True).click()
    last_page = [str(number) for number in range(251, 301)]
    expect(staff.locator(f"{ROWS} .field-order_num")).to_have_text(last_page)


def test_a_turn_tells_how_its_answer_came_about(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "/remember I prefer deliveries after 5 pm")
    world.say(CLIENT, "When do I prefer deliveries?")
    turn = Turn.objects.latest("id")
    staff.goto(f"{TURNS}?q={CLIENT}")
    staff.locator(ROWS).first.get_by_role("link").first.click()
    expect(staff).to_have_url(re.compile(rf"/{turn.pk}/change/"))
    main = staff.get_by_role("main")
    expect(main).to_contain_text("When do I prefer deliveries?")
    expect(main).to_contain_text("I prefer deliveries after 5 pm")
    expect(main).to_contain_text("You are DeniDin")
    assert visit.troubles() == []


def test_the_profile_is_saved_and_goes_into_the_next_prompt(
    visit: Visit, staff: Page, world: World
) -> None:
    staff.goto("/admin/sessions_app/assistantprofile/")
    staff.fill("#id_name", "Dani")
    staff.fill("#id_business_facts", "חנות פרחים ברחוב הדוגמה 5")
    assert style(staff, "#id_business_facts", "direction") == "rtl"
    staff.get_by_role("button", name="Save", exact=True).click()
    expect(staff.locator(".messagelist .success")).to_contain_text("changed successfully")
    expect(staff.locator("#id_name")).to_have_value("Dani")
    assert AssistantProfile.objects.get().business_facts == "חנות פרחים ברחוב הדוגמה 5"
    world.say(CLIENT, "Hello")
    assert "You are Dani" in world.prompt()[0].content
    assert "חנות פרחים" in world.prompt()[0].content
    assert visit.troubles() == []


def test_a_memory_made_public_is_recalled_for_everyone(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "/remember The parking is behind the house")
    world.say(OTHER_CLIENT, "Where is the parking?")
    assert "behind the house" not in world.prompt()[0].content
    staff.goto(MEMORIES)
    staff.locator(ROWS).get_by_role("link").first.click()
    staff.select_option("#id_visibility", "public")
    staff.get_by_role("button", name="Save", exact=True).click()
    expect(staff.locator(".messagelist .success")).to_be_visible()
    assert Memory.objects.get().visibility == "public"
    world.say(OTHER_CLIENT, "And where is the parking, please?")
    assert "behind the house" in world.prompt()[0].content
    assert visit.troubles() == []


def test_a_memory_of_no_chat_cannot_be_given_to_its_chat(visit: Visit, staff: Page) -> None:
    memory = memory_remember(
        NewMemory(content="Told by staff", visibility="owner"), embedder=WordLlamaEmbedder()
    ).memory
    staff.goto(f"{MEMORIES}{memory.pk}/change/")
    staff.select_option("#id_visibility", "chat")
    staff.get_by_role("button", name="Save", exact=True).click()
    expect(staff.locator(".errorlist")).to_contain_text("came from no chat")
    assert visit.troubles() == []


def test_memory_is_switched_off_for_one_chat(staff: Page, world: World) -> None:
    world.say(CLIENT, "Hello")
    staff.goto(f"/admin/sessions_app/chat/{Chat.objects.get().pk}/change/")
    assert "Default (on)" in staff.locator("#id_memory_enabled").inner_text()
    staff.select_option("#id_memory_enabled", "false")
    staff.get_by_role("button", name="Save", exact=True).click()
    expect(staff.locator(".messagelist .success")).to_be_visible()
    assert Chat.objects.get().memory_enabled is False
    assert world.say(CLIENT, "Do you keep this?") == ["answer to: Do you keep this?"]
    assert [message.content for message in world.messages(CLIENT)] == ["Hello", "answer to: Hello"]


@pytest.mark.parametrize("address", ["/admin/", SESSIONS, MESSAGES, TURNS, MEMORIES])
def test_the_admin_fits_a_phone(staff: Page, world: World, address: str) -> None:
    world.say(CLIENT, "/remember The parking is behind the house")
    staff.set_viewport_size({"width": 360, "height": 740})
    staff.goto(address)
    assert not is_scrolled_sideways(staff)


def test_a_summary_leads_to_what_it_sums_up_and_along_its_chain(
    visit: Visit, staff: Page, world: World
) -> None:
    world.summarizing(2)
    for text in ("The kitchen is to be green", HEBREW):
        world.say(CLIENT, text)
    world.sum_up(CLIENT)
    staff.goto(SESSIONS)
    staff.locator(ROWS, has_text=number_shown(CLIENT)).locator("th a").first.click()
    staff.get_by_role("link", name="read 2").first.click()
    expect(staff.locator(ROWS)).to_have_count(2)
    staff.locator(ROWS, has_text="1 to 2").locator("th a").click()
    table = staff.locator("table.replay")
    expect(table).to_contain_text("The kitchen is to be green")
    table.get_by_role("link").first.click()
    expect(staff).to_have_url(re.compile("/sessions_app/message/"))
    expect(staff.locator(".said").first).to_have_text("The kitchen is to be green")
    staff.go_back()
    expect(staff).to_have_url(re.compile("/summarizationmetadata/"))
    staff.get_by_role("link", name="all summaries of it").click()
    expect(staff.locator(ROWS)).to_have_count(2)
    assert not is_scrolled_sideways(staff)
    assert visit.troubles() == []


def test_archived_sessions_are_shown_when_they_are_asked_for(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "long ago")
    world.say(OTHER_CLIENT, "today")
    old = ChatSession.objects.filter(chat__whatsapp_chat=CLIENT)
    old.update(status="archived", expired_at=timezone.now())
    staff.goto(SESSIONS)
    expect(staff.locator(ROWS)).to_have_count(1)
    expect(staff.locator("#result_list")).to_contain_text(number_shown(OTHER_CLIENT))
    staff.get_by_text("Filters", exact=True).click()
    choices = staff.locator("#changelist-filter")
    expect(choices.locator("[aria-current]").first).to_have_text("Not archived")
    choices.get_by_role("link", name="Archived", exact=True).click()
    expect(staff.locator("#result_list")).to_contain_text(number_shown(CLIENT))
    expect(staff.locator(ROWS)).to_have_count(1)
    staff.locator(".filters summary").click()
    choices.get_by_role("link", name="All", exact=True).first.click()
    expect(staff.locator(ROWS)).to_have_count(2)
    assert visit.troubles() == []
