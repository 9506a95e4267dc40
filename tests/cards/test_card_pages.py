"""Staff's pages of cards."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from cards_app.models import MemoryCard
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.cards.make_cards import card_make
from sessions_app.models import CardWork, Chat, ChatSession
from tests.dashboard.staff import page as shown
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db
LIST = "/admin/cards_app/memorycard/"
SESSIONS = "/admin/sessions_app/chatsession/"


@pytest.fixture(scope="module")
def two_cards(module_rows: None) -> None:
    world = new_world()
    world.say(CLIENT, "We decided to take two rooms <b>in Haifa</b>")
    world.say(OTHER_CLIENT, "מתי פותחים את הבריכה?")
    for who in (CLIENT, OTHER_CLIENT):
        card_make(session_id=world.session(who).pk)


@pytest.fixture
def sessions(two_cards: None, world: World) -> list[ChatSession]:
    return [world.session(CLIENT), world.session(OTHER_CLIENT)]


def act(staff: Client, at: str, action: str, *items: Any) -> Any:
    chosen = {"action": action, "_selected_action": [str(item.pk) for item in items]}
    return staff.post(at, chosen, follow=True)


def test_the_list_shows_titles_and_chats(admin_client: Client, sessions: Any) -> None:
    page = shown(admin_client, LIST)
    assert "two rooms &lt;b&gt;in Haifa&lt;/b&gt;" in page
    assert "מתי פותחים" in page
    assert f"<bdi>{Chat.objects.get(whatsapp_chat=CLIENT).shown_name}</bdi>" in page
    assert "0, 0" not in page


def test_a_card_of_earlier_rules_has_its_pages(admin_client: Client, sessions: Any) -> None:
    MemoryCard.objects.update(outcome=None, algorithm_version="1.0", source_digest="of 1.0")
    assert "two rooms" in shown(admin_client, LIST)
    assert "How it ended" in shown(admin_client, f"{LIST}{sessions[0].pk}/change/")
    card = card_make(session_id=sessions[0].pk)
    assert card.algorithm_version == "1.8"
    assert (card.outcome or {})["settled"], "it was made again"


@pytest.mark.parametrize(
    ("asked", "found"),
    [("room", [0]), ("בריכה", [1]), ("nothing", []), (CLIENT, [0]), ("room Haifa", [0])],
)
def test_search_finds_words_in_any_form_and_chats(
    admin_client: Client, sessions: Any, asked: str, found: list[int]
) -> None:
    page = shown(admin_client, LIST, q=asked)
    assert [number for number, session in enumerate(sessions) if str(session.pk) in page] == found


def test_search_by_the_id_of_a_session_or_a_chat(admin_client: Client, sessions: Any) -> None:
    for key in (sessions[1].pk, sessions[1].chat_id):
        page = shown(admin_client, LIST, q=str(key))
        assert "בריכה" in page
        assert "Haifa" not in page


def test_filters(admin_client: Client, sessions: Any) -> None:
    assert "בריכה" not in shown(admin_client, LIST, holds="decisions")
    assert "Haifa" not in shown(admin_client, LIST, holds="todos")
    assert "Haifa" in shown(admin_client, LIST, algorithm_version="1.8")


def test_the_page_of_a_card(admin_client: Client, sessions: Any) -> None:
    page = shown(admin_client, f"{LIST}{sessions[0].pk}/change/")
    assert page.count("We decided to take two rooms &lt;b&gt;in Haifa&lt;/b&gt;") >= 3
    assert f"# Memory Card for Session: {sessions[0].pk}" in page
    ended = page[page.index("How it ended") : page.index("What was said")]
    assert "We decided to take two rooms" in ended
    assert f"{SESSIONS}{sessions[0].pk}/change/" in page
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.object_type) == ("conversation.read", "card")
    assert event.object_id == str(sessions[0].pk)


def test_a_session_leads_to_its_card(admin_client: Client, sessions: Any) -> None:
    page = shown(admin_client, f"{SESSIONS}{sessions[0].pk}/change/")
    assert f"{LIST}{sessions[0].pk}/change/" in page
    MemoryCard.objects.all().delete()
    assert "none yet" in shown(admin_client, f"{SESSIONS}{sessions[0].pk}/change/")


def test_make_the_card_again(admin_client: Client, sessions: Any) -> None:
    MemoryCard.objects.filter(pk=sessions[0].pk).update(title="old", source_digest="old")
    page = act(admin_client, LIST, "make_again", MemoryCard.objects.get(pk=sessions[0].pk))
    assert "1 card is as the messages are now" in page.content.decode()
    assert MemoryCard.objects.get(pk=sessions[0].pk).title.startswith("We decided")


def test_make_the_cards_of_sessions(admin_client: Client, sessions: Any) -> None:
    MemoryCard.objects.all().delete()
    act(admin_client, SESSIONS, "make_selected_cards", *sessions)
    assert MemoryCard.objects.count() == 2
    assert not CardWork.objects.exists()
