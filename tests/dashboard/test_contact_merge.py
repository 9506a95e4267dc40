"""Merging two contacts: finding the other one, the preview, and what the merged contact is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from sessions_app.models import Chat, ChatAccess, Note
from tests.forms import opened, save
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from, new_world

pytestmark = pytest.mark.django_db
GROUP = "120363000000000001"


def find(chat: Chat, query: str = "") -> str:
    return f"/admin/contacts/{chat.pk}/merge/" + (f"?q={query}" if query else "")


def preview(one: Chat, other: Chat) -> str:
    return f"/admin/contacts/{one.pk}/merge/{other.pk}/"


def shown(client: Client, address: str) -> str:
    answer = client.get(address, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def merge(client: Client, one: Chat, other: Chat, **values: Any) -> Chat:
    answer = save(client, preview(one, other), {"name": "", **values})
    assert (answer.status_code, "merge" in answer["Location"]) == (302, False)
    return Chat.objects.get(addresses__address=CLIENT)


@pytest.fixture(scope="module")
def both(module_rows: None) -> None:
    """Dana's number, and the one of the same person at work."""
    world = new_world()
    world.say(CLIENT, "hello")
    world.remember(CLIENT, "I like tea")
    party = Party(phone=OTHER_CLIENT.partition("@")[0], name="Dana at work")
    world.remember(OTHER_CLIENT, "I like cake")
    world.say(OTHER_CLIENT, "hello from work", party=party)


@pytest.fixture
def dana(both: None, world: World) -> Chat:
    """The older of the two."""
    return world.chat(CLIENT)


@pytest.fixture
def work(both: None, world: World) -> Chat:
    return world.chat(OTHER_CLIENT)


def test_the_other_is_found_by_either(admin_client: Client, dana: Chat, work: Chat) -> None:
    assert find(dana) in shown(admin_client, f"/admin/contacts/{dana.pk}/")
    link = preview(dana, work)
    assert link in shown(admin_client, find(dana, "at work"))
    assert link in shown(admin_client, find(dana, "5550100456"))
    assert link not in shown(admin_client, find(dana, "nobody"))
    assert preview(dana, dana) not in shown(admin_client, find(dana, "5550100123"))


def test_the_preview_shows_both(admin_client: Client, world: World, dana: Chat, work: Chat) -> None:
    world.remember(OTHER_CLIENT, "I like tea")
    Note.objects.create(chat=work, author_name="noa", text="x", created_at=timezone.now())
    ChatAccess.objects.create(chat=work, standing="blocked")
    Chat.objects.filter(pk=work.pk).update(memory_enabled=False)
    page = shown(admin_client, preview(work, dana))
    rows = {label: [cell.strip() for cell in cells] for label, *cells in _table(page)}
    assert rows["Messages"] == ["4", "6", "10"]
    assert rows["Memories"] == ["1", "2", "2"]
    assert rows["Notes"] == ["0", "1", "1"]
    assert rows["Access"] == ["–", "blocked", "blocked"]
    assert rows["Memory"] == ["as set for all", "off", "off"]
    assert "1 memory of both says the same" in page
    assert "two phone numbers" in page
    assert "Both are in a conversation now" in page
    assert Chat.objects.count() == 2, "nothing happens before it is confirmed"


def _table(page: str) -> list[list[str]]:
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    return [
        [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.S)]
        for row in rows
    ]


def test_the_merged_contact_holds_all_of_both(admin_client: Client, dana: Chat, work: Chat) -> None:
    merged = merge(admin_client, work, dana, name="Dana at work")
    assert merged.pk == dana.pk, "the older one stays"
    assert not Chat.objects.filter(pk=work.pk).exists()
    assert merged.staff_name == "Dana at work"
    assert merged.messages.count() == 8
    assert Memory.objects.filter(chat_id=merged.pk).count() == 2
    assert merged.sessions.filter(status="active").count() == 1
    page = shown(admin_client, f"/admin/contacts/{merged.pk}/")
    assert "I like tea" in page
    assert "I like cake" in page


def test_both_numbers_reach_it(admin_client: Client, world: World, dana: Chat, work: Chat) -> None:
    merged = merge(admin_client, dana, work)
    for number in (CLIENT, OTHER_CLIENT, CLIENT):
        world.say(number, "me again")
        assert world.provider.sent[-1].to.whatsapp_chat == number
    # Also where both have asked meanwhile.
    world.receive(message_from(CLIENT, "from home"), message_from(OTHER_CLIENT, "from work"))
    world.work()
    asked = [part.to.whatsapp_chat for part in world.provider.sent[-2:]]
    assert asked == [CLIENT, OTHER_CLIENT]
    assert Chat.objects.count() == 1
    assert merged.messages.count() == 18
    assert "I like tea" in world.seen_by_model(OTHER_CLIENT, "Do I like tea?")
    assert set(merged.addresses.values_list("left_at", flat=True)) == {None}


def test_ids_of_both_numbers_stay_apart(
    admin_client: Client, world: World, dana: Chat, work: Chat
) -> None:
    """The first id of a number is no sign that it changed hands, though the other one has one."""
    phones = [number.partition("@")[0] for number in (CLIENT, OTHER_CLIENT)]
    world.say(OTHER_CLIENT, "with an id", party=Party(phone=phones[1], bsuid="US.2"))
    merge(admin_client, dana, work)
    world.say(CLIENT, "with an id, too", party=Party(phone=phones[0], bsuid="US.1"))
    assert Chat.objects.count() == 1
    world.say(CLIENT, "a stranger has the number", party=Party(phone=phones[0], bsuid="US.3"))
    assert Chat.objects.count() == 2


def test_what_changed_is_shown_again(
    admin_client: Client, world: World, dana: Chat, work: Chat
) -> None:
    form = opened(admin_client, preview(dana, work))
    world.say(OTHER_CLIENT, "one more")
    answer = admin_client.post(preview(dana, work), {**form, "name": ""})
    assert answer.status_code == 200
    assert "changed meanwhile" in answer.content.decode()
    assert Chat.objects.count() == 2
    form = opened(admin_client, preview(dana, work))
    assert admin_client.post(preview(dana, work), {**form, "name": ""}).status_code == 302


def test_owners_and_groups(admin_client: Client, world: World, dana: Chat, settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    world.say(GODFATHER, "hello")
    owner = world.chat(GODFATHER)
    world.say(CLIENT, "hello", group_id=GROUP, mentions_us=True)
    group = Chat.objects.get(is_group=True)
    for other, problem in ((owner, "the owner"), (group, "group"), (dana, "same contact")):
        page = shown(admin_client, preview(dana, other))
        assert problem in page, other
    assert find(group) not in shown(admin_client, f"/admin/contacts/{group.pk}/")
    assert Chat.objects.count() == 4


def test_integrators_hear_that_memories_moved(admin_client: Client, dana: Chat, work: Chat) -> None:
    WebhookEndpoint.objects.create(
        name="shop",
        url="https://shop.example/hook",
        event_types=["memory.changed"],
        secret="x" * 32,
    )
    memory = Memory.objects.get(chat_id=work.pk)
    merge(admin_client, dana, work)
    told = WebhookDelivery.objects.get()
    assert (told.data["memory_id"], told.chat_id) == (str(memory.pk), dana.pk)
    assert told.data["fields"] == ["whatsapp_chat"]
