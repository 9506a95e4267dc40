"""Staff see whether a chat is answered and what it used, and block and allow it."""

from __future__ import annotations

import html
import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from memoryproject.foundation.integrations.llm.base import Completion
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import AssistantProfile, ChatAccess, InboundDelivery, Turn, UsageDay
from tests.dashboard.test_dashboard_page import TILE
from tests.forms import opened
from tests.limits.conftest import Limiting, audited
from tests.shown import messages_of, words_of
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db
PRICES = {"scripted": (1_000.0, 2_000.0)}
INBOX = "/admin/sessions_app/chat/"


@pytest.fixture(autouse=True)
def owner(settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})


def panel(client: Client, world: World, whatsapp_chat: str = CLIENT) -> str:
    answer = client.get(f"{INBOX}{world.chat(whatsapp_chat).pk}/conversation/")
    assert answer.status_code == 200
    found = re.search(r'<section id="access".*?</section>', answer.content.decode(), re.S)
    assert found is not None
    return words_of(found[0])


def decide(client: Client, world: World, whatsapp_chat: str = CLIENT, **form: str) -> list[str]:
    """Post the panel's form; return the messages that the user sees."""
    address = f"{INBOX}{world.chat(whatsapp_chat).pk}/access/"
    return messages_of(client.post(address, form, follow=True))


def left(client: Client, world: World) -> list[InboundDelivery]:
    """The deliveries to which the panel's link leads, the newest first."""
    page = client.get(f"{INBOX}{world.chat(CLIENT).pk}/conversation/").content.decode()
    (address,) = re.findall(r'<a href="([^"]*inbounddelivery[^"]*)">See them', page)
    answer = client.get(html.unescape(address))
    assert answer.status_code == 200
    return list(answer.context["cl"].queryset)


def listed(client: Client, access: str) -> list[str]:
    page = client.get(INBOX, {"access": access}).context["page"]
    return sorted(chat.whatsapp_chat for chat in page.object_list)


def test_block_and_unblock_with_a_reason(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Hi")
    assert "answered like everybody" in panel(admin_client, world)
    told = decide(admin_client, world, standing="blocked", reason="spam")
    assert told == ["The chat is blocked: it gets no answers."]
    assert world.say(CLIENT, "Buy my coins") == []
    shown = panel(admin_client, world)
    assert re.search(r"blocked spam · admin, \S+", shown)
    assert "See them in the deliveries" in shown
    assert [each.raw for each in left(admin_client, world)][:1] == [{"text": "Buy my coins"}]
    assert "blocked" in words_of(admin_client.get(INBOX).content.decode())
    told = decide(admin_client, world, standing="blocked", reason="spam")
    assert told == ["Nothing was changed: it was decided so already."]
    decide(admin_client, world, standing="", reason="spam")
    assert world.say(CLIENT, "Hi again") == ["answer to: Hi again"]
    access = ChatAccess.objects.get()
    assert (access.standing, access.reason, access.decided_by.username) == ("", "", "admin")
    assert audited("chat.block", "chat.undecide") == ["chat.block", "chat.undecide"]


@pytest.mark.parametrize("form", [{"standing": "blocked"}, {"standing": "x", "reason": "spam"}])
def test_no_reason_changes_nothing(
    admin_client: Client, world: World, form: dict[str, str]
) -> None:
    world.say(CLIENT, "Hi")
    told = decide(admin_client, world, **form)
    assert told == ["Choose a reason from the list; nothing was changed."]
    assert not ChatAccess.objects.exclude(standing="").exists()


def test_the_owners_chat_cant_be_blocked(admin_client: Client, world: World) -> None:
    world.say(GODFATHER, "Hi")
    assert "it is always answered" in panel(admin_client, world, GODFATHER)
    told = decide(admin_client, world, GODFATHER, standing="blocked", reason="spam")
    assert told == ["This is the owner's chat: it is always answered."]


def test_chosen_chats_are_blocked_and_filtered(admin_client: Client, world: World) -> None:
    for chat in (CLIENT, OTHER_CLIENT, GODFATHER):
        world.say(chat, "Hi")
    world.say(OTHER_CLIENT, "stop")
    chosen = [str(world.chat(chat).pk) for chat in (CLIENT, GODFATHER)]
    answer = admin_client.post(
        INBOX, {"action": "block_selected", "_selected_action": chosen}, follow=True
    )
    assert messages_of(answer) == [
        "1 chat was changed.",
        "1 chat was skipped: already decided so, or the owner's.",
    ]
    assert listed(admin_client, "blocked") == [CLIENT]
    assert listed(admin_client, "opted_out") == [OTHER_CLIENT]
    assert listed(admin_client, "undecided") == sorted([OTHER_CLIENT, GODFATHER])
    for action, found in (("allow_selected", [CLIENT]), ("undecide_selected", [])):
        admin_client.post(INBOX, {"action": action, "_selected_action": chosen[:1]})
        assert listed(admin_client, "allowed") == found


def test_an_opt_out_is_shown_and_staff_cant_end_it(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "stop")
    shown = panel(admin_client, world)
    assert re.search(r"opted out The person stopped the assistant on \S+", shown)
    decide(admin_client, world, standing="allowed", reason="client")
    assert world.say(CLIENT, "Hi") == []


def test_with_an_allow_list_strangers_are_listed_for_staff(
    admin_client: Client, limited: Limiting, settings: Any
) -> None:
    settings.ALLOW_LIST_ONLY = True
    world = limited(allow_list_only=True)
    world.say(CLIENT, "May I?")
    assert "not allowed yet: not answered" in panel(admin_client, world)
    assert listed(admin_client, "undecided") == [CLIENT]
    page = admin_client.get(f"{INBOX}{world.chat(CLIENT).pk}/conversation/").content.decode()
    assert "not answered: Only chats that staff allow are answered" in words_of(page)
    decide(admin_client, world, standing="allowed", reason="client")
    assert world.say(CLIENT, "Now?") == ["answer to: Now?"]


def test_usage_and_limits_are_shown(admin_client: Client, limited: Limiting, settings: Any) -> None:
    settings.MODEL_PRICES, settings.CLIENT_TOKENS_PER_DAY = PRICES, 1_500
    settings.CLIENT_MESSAGES_PER_HOUR, settings.CLIENTS_DAILY_BUDGET = 0, Decimal("2.5")
    world = limited(tokens_per_day=1_500, prices=PRICES)
    model = ScriptedChatModel(lambda _: Completion("answer", "scripted", 1_000, 500))
    world.use(chat_model=model)
    world.say(CLIENT, "one")
    world.say(CLIENT, "two")
    shown = panel(admin_client, world)
    assert "limit reached today The chat has reached its tokens a day" in shown
    assert "Tokens 1,500 of 1,500 1,500" in shown
    assert "Model calls 1 1" in shown
    assert "Estimated cost USD 2.00 USD 2.00" in shown
    assert listed(admin_client, "limited") == [CLIENT]
    board = words_of(admin_client.get("/admin/").content.decode())
    assert "Limits reached 1 clients today: 1 model call, 1,500 tokens" in board
    assert "USD 2.00 of the budget of USD 2.50" in board
    first, refused = Turn.objects.order_by("id")
    replay = admin_client.get(f"/admin/sessions_app/turn/{first.pk}/change/")
    assert "Estimated cost USD 2.00" in words_of(replay.content.decode())
    replay = admin_client.get(f"/admin/sessions_app/turn/{refused.pk}/change/")
    assert "Why the assistant didn't answer: The chat has reached its tokens a day" in words_of(
        replay.content.decode()
    )
    assert "Estimated cost" not in words_of(replay.content.decode())


def test_a_budget_that_is_spent_shows(admin_client: Client, world: World, settings: Any) -> None:
    settings.MODEL_PRICES, settings.CLIENTS_DAILY_BUDGET = PRICES, Decimal(1)
    world.say(CLIENT, "Hi")
    UsageDay.objects.update(cost=1)
    page = admin_client.get("/admin/").content.decode()
    assert "USD 1.00 of the budget of USD 1.00" in words_of(page)
    (tone,) = [match[2].strip() for match in TILE.finditer(page) if match[1] == "limits"]
    assert tone == "bad"


def test_the_privacy_notice_is_of_the_profiles_page(admin_client: Client, world: World) -> None:
    address = "/admin/sessions_app/assistantprofile/1/change/"
    AssistantProfile.objects.get_or_create(pk=1)
    notice = {"privacy_notice_en": "Write stop to end this."}
    answer = admin_client.post(address, {**opened(admin_client, address), **notice})
    assert answer.status_code == 302
    assert AssistantProfile.objects.get().privacy_notice_en == "Write stop to end this."
    assert world.say(CLIENT, "Hi") == ["Write stop to end this.\n\nanswer to: Hi"]
