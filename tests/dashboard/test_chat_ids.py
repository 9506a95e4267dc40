"""Staff find a chat by any spelling of its id."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.documents.admin import UploadForm
from sessions_app.forgetting.choose_pages import SearchForm
from sessions_app.models import Chat
from tests.remembering import remember
from tests.world import CLIENT, OTHER_CLIENT, World

PHONE = CLIENT.removesuffix("@c.us")
SPELLINGS = [CLIENT, f"+{CLIENT}", f"+{PHONE}", f"{PHONE}@C.US", f"{PHONE}@s.whatsapp.net"]
# The lists that are searched by a chat, and the name of a list's own parameter.
LISTS = ["chat", "turn", "message", "inbounddelivery", "outboundpart"]


def listed(client: Client, address: str, query: str) -> int:
    """How many rows a list has; the inbox is a page of its own."""
    context = client.get(address, {"q": query}).context
    found = context["cl"].result_count if "cl" in context else context["page"].paginator.count
    return int(found)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_lists_find_a_chat_by_any_spelling(
    world: World, admin_client: Client, spelling: str
) -> None:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "hello")
    for name in LISTS:
        address = reverse(f"admin:sessions_app_{name}_changelist")
        found, everything = (listed(admin_client, address, q) for q in (spelling, ""))
        assert 0 < found == everything / 2, name


@pytest.mark.parametrize("spelling", [f"+{CLIENT}", f"{PHONE}@C.US"])
def test_memories_and_cards_are_found_by_any_spelling(
    world: World, admin_client: Client, spelling: str
) -> None:
    world.say(CLIENT, "hello")
    remember("Dana likes tea", visibility="chat", chat_id=world.chat(CLIENT).pk)
    page = admin_client.get(reverse("admin:memories_app_memory_changelist"), {"q": spelling})
    assert "Dana likes tea" in page.content.decode()


@pytest.mark.parametrize("spelling", [*SPELLINGS, PHONE])
def test_forms_take_any_spelling(world: World, spelling: str) -> None:
    world.say(CLIENT, "hello")
    chat = Chat.objects.get()
    for form in (UploadForm({"whatsapp_chat": spelling}), SearchForm({"chat": spelling})):
        form.is_valid()
        assert chat in form.cleaned_data.values()
