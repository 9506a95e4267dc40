"""Lists count so many rows and no more, say so, and look for what is rare once."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.admin_kit.list_csv import MAX_ROWS, BoundedPaginator
from sessions_app.inbox.chat_list import COUNTED
from sessions_app.models import Chat, ChatActivity

pytestmark = pytest.mark.django_db

CHATS = "/admin/sessions_app/chat/"
ADDRESSES = "/admin/sessions_app/chataddress/"


class Three(BoundedPaginator):
    most = 3


def chats(count: int) -> list[Chat]:
    made = Chat.objects.bulk_create(
        Chat(whatsapp_chat=f"{15550100000 + number}@c.us", provider="cloud")
        for number in range(count)
    )
    ChatActivity.objects.bulk_create(
        ChatActivity(chat=chat, last_at=chat.created_at) for chat in made
    )
    return made


@pytest.mark.parametrize(
    ("rows", "counted", "more", "shown"),
    [
        (0, 0, False, [[]]),
        (1, 1, False, [[0]]),
        (2, 2, False, [[0, 1]]),
        (3, 3, False, [[0, 1], [2]]),
        (4, 3, True, [[0, 1], [2]]),
    ],
)
def test_pages_hold_the_first_rows_in_order(
    rows: int, counted: int, more: bool, shown: list[list[int]]
) -> None:
    made = chats(rows)
    pages = Three(Chat.objects.order_by("whatsapp_chat"), 2)
    assert (pages.count, pages.more) == (counted, more)
    keys = [[chat.pk for chat in page.object_list] for page in pages]
    assert keys == [[made[place].pk for place in page] for page in shown]


def test_a_page_that_is_none_is_the_nearest_one() -> None:
    chats(3)
    pages = Three(Chat.objects.order_by("whatsapp_chat"), 2)
    numbers = [pages.get_page(asked).number for asked in ("abc", "0", "-1", "99", None)]
    assert numbers == [1, 2, 2, 2, 1]


def test_an_endless_list_says_that_there_are_more(admin_client: Client) -> None:
    chats(MAX_ROWS + 1)
    # The inbox counts as far as somebody goes, and never further than any list.
    text = admin_client.get(CHATS).content.decode()
    assert f"1–50 of more than {COUNTED}" in text
    last = admin_client.get(CHATS, {"p": MAX_ROWS // 50}).content.decode()
    assert f"{MAX_ROWS - 49}–{MAX_ROWS} of more than {MAX_ROWS}" in last
    Chat.objects.first().delete()
    last = admin_client.get(CHATS, {"p": MAX_ROWS // 50}).content.decode()
    assert f"{MAX_ROWS - 49}–{MAX_ROWS} of {MAX_ROWS}" in last


def test_a_list_of_the_admin_says_it_too(admin_client: Client) -> None:
    made = chats(MAX_ROWS + 1)
    made[0].addresses.model.objects.bulk_create(
        made[0].addresses.model(chat=chat, address=chat.whatsapp_chat) for chat in made
    )
    text = admin_client.get(ADDRESSES).content.decode()
    assert f"more than {MAX_ROWS} " in text
    few = admin_client.get(ADDRESSES, {"q": made[7].whatsapp_chat}).content.decode()
    assert "more than" not in few
    assert "1 chat address" in few


def test_what_a_filter_finds_little_of_is_looked_for_once(admin_client: Client) -> None:
    made = chats(60)
    Chat.objects.filter(pk=made[3].pk).update(provider="green")
    with CaptureQueriesContext(connection) as asked:
        answer = admin_client.get(CHATS, {"provider": "green"})
    assert made[3].shown_number in answer.content.decode()
    filtered = [one["sql"] for one in asked if "\"provider\" = 'green'" in one["sql"]]
    assert len(filtered) == 2
    assert sum(str(made[3].pk.hex) in sql for sql in filtered) == 1
