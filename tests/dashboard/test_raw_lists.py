"""The lists behind the pages: what stands in them and how they lead on, in plain words; and how
their rows are found and counted without reading all of them."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin import site
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.admin_kit.list_csv import MAX_ROWS, BoundedPaginator
from memoryproject.foundation.audit.audit_events import COMMAND_LINE, audit_record
from sessions_app.inbox.chat_list import COUNTED
from sessions_app.models import (
    Chat,
    ChatSession,
    InboundDelivery,
    Message,
    OutboundPart,
    SummarizationMetadata,
    Turn,
)
from sessions_app.recall.staff_search import newest_messages_found
from tests.copies import chats_many
from tests.dashboard.staff import page
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db

CHATS = "/admin/sessions_app/chat/"
MESSAGES = "/admin/sessions_app/message/"
DELIVERIES = "/admin/sessions_app/inbounddelivery/"
PARTS = "/admin/sessions_app/outboundpart/"
SESSIONS = "/admin/sessions_app/chatsession/"
GROUP = "120363040000000001@g.us"
HEBREW: Any = {"accept-language": "he"}
# Names of columns and words of ours that say nothing to staff.
ODD = re.compile(r"\b(told|order_num|num|godfather|gone|whatsapp chat)\b|^(is|was) ")


@pytest.fixture(scope="module")
def two_chats(module_rows: None) -> None:
    world = new_world()
    world.say(CLIENT, "The invoices of March are late")
    world.say(OTHER_CLIENT, "החשבונית לא הגיעה")


@pytest.fixture
def said(two_chats: None, db: None) -> Message:
    """What one client says; another one says something else."""
    return Message.objects.get(chat__whatsapp_chat=CLIENT, role="user")


# Finding rows


def found(client: Client, address: str, **query: Any) -> set[Any]:
    answer = client.get(address, query)
    assert answer.status_code == 200
    return set(answer.context["cl"].queryset.values_list("pk", flat=True))


def test_rows_are_found_by_words_ids_and_the_chat(said: Message, admin_client: Client) -> None:
    other = Message.objects.get(chat__whatsapp_chat=OTHER_CLIENT, role="user")
    assert {said.pk, other.pk} & found(admin_client, MESSAGES, q="invoice") == {said.pk}
    assert {said.pk, other.pk} & found(admin_client, MESSAGES, q="חשבונית") == {other.pk}
    of_chat = set(said.chat.messages.values_list("pk", flat=True))
    delivery = InboundDelivery.objects.get(message=said)
    turn = Turn.objects.get(message=said)
    part = OutboundPart.objects.get(turn=turn)
    for address, asked, rows in (
        (MESSAGES, ("zyqorvane",), set()),
        (MESSAGES, (said.pk, said.provider_message_id), {said.pk}),
        (MESSAGES, (said.session_id, CLIENT), of_chat),
        (DELIVERIES, (delivery.delivery_key, said.provider_message_id, CLIENT), {delivery.pk}),
        (PARTS, (turn.turn_id, part.provider_message_id, CLIENT), {part.pk}),
    ):
        for words in asked:
            assert found(admin_client, address, q=str(words)) == rows, (address, words)


def test_sessions_and_summaries_lead_on(admin_client: Client, world: World) -> None:
    world.summarizing(2)
    for text in ("The kitchen is to be green", "Thank you"):
        world.say(CLIENT, text)
    world.sum_up(CLIENT)
    session = world.session(CLIENT)
    shown = page(admin_client, f"{SESSIONS}{session.pk}/change/")
    for name in ("message", "summarizationmetadata"):
        links = rf'href="(/admin/sessions_app/{name}/\?[^"]+)"'
        link = re.search(links, page(admin_client, SESSIONS) + shown)
        assert link is not None, name
        rows = admin_client.get(html.unescape(link[1])).context["cl"].result_list
        assert {row.session_id for row in rows} == {session.pk}
    summary = SummarizationMetadata.objects.earliest("first_order")
    address = f"/admin/sessions_app/summarizationmetadata/{summary.pk}/change/"
    assert "The kitchen is to be green" in page(admin_client, address)
    assert f"{MESSAGES}{world.messages(CLIENT)[0].pk}/change/" in page(admin_client, address)
    # Archived ones are shown when they are asked for.
    ChatSession.objects.update(status="archived", expired_at=timezone.now())
    assert found(admin_client, SESSIONS) == set()
    filters = re.findall(r'href="(\?[^"]*status=archived[^"]*)"', page(admin_client, SESSIONS))
    assert found(admin_client, f"{SESSIONS}{html.unescape(filters[0])}") == {session.pk}


# In plain words


def test_a_delivery_says_in_words_what_became_of_it(admin_client: Client) -> None:
    outcomes = ("status read", "reaction taken away", "stored", "not processed: DataError")
    for number, outcome in enumerate(outcomes):
        InboundDelivery.objects.create(
            provider="cloud", delivery_key=f"key-{number}", event="StatusUpdate", outcome=outcome
        )
    listed = page(admin_client, DELIVERIES)
    for words in (">Read<", "reaction removed", "not processed: DataError"):
        assert words in listed
    assert "נשמר" in admin_client.get(DELIVERIES, headers=HEBREW).content.decode()
    key = InboundDelivery.objects.get(delivery_key="key-0").pk
    for shown in (listed, page(admin_client, f"{DELIVERIES}{key}/change/")):
        assert "status read" not in shown


def test_only_permissions_with_pages_are_offered(admin_client: Client) -> None:
    """Those of libraries have English names, and grant nothing here."""
    for key in (f"{Group.objects.earliest('pk').pk}/change", "add"):
        form = page(admin_client, f"/admin/auth/group/{key}/")
        for name, is_there in (("Memories: view", True), ("Access att", False), ("TOTP", False)):
            assert (name in form) == is_there, name


def authors(client: Client, address: str) -> dict[str, str]:
    """Who wrote each message of a list that isn't the assistant's, by its text."""
    answer = client.get(address)
    rows = answer.context["cl"].result_list
    shown = re.findall(r"field-author[^>]*>\s*<bdi>([^<]*)</bdi>", answer.content.decode())
    assert len(shown) == len(rows)
    told = {row.content: name for row, name in zip(rows, shown, strict=True)}
    return {text: name for text, name in told.items() if name != "Assistant"}


def test_lists_name_who_wrote(
    admin_client: Client, admin_user: User, world: World, settings: Any
) -> None:
    """The person by name, or by role where it isn't known; the assistant; staff by name."""
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    world.say(CLIENT, "hello")
    world.say(GODFATHER, "good morning")
    Chat.objects.filter(whatsapp_chat=GODFATHER).update(client_name="")
    reply = {"text": "Noa will call you", "key": "00000000-0000-4000-8000-000000000009"}
    chat = world.chat(CLIENT)
    admin_client.post(f"/admin/sessions_app/turn/takeover/{chat.pk}/reply/", reply)
    wrote = {"hello": "Test User", "good morning": "Owner", "Noa will call you": "admin"}
    assert authors(admin_client, MESSAGES) == wrote
    sheet = admin_client.get(f"{MESSAGES}?_csv=1").content.decode()
    assert "Test User" in sheet
    assert "admin" in sheet
    assert "בעל העסק" in admin_client.get(MESSAGES, headers=HEBREW).content.decode()
    Chat.objects.filter(whatsapp_chat=CLIENT).update(client_name="")
    assert authors(admin_client, MESSAGES)["hello"] == "Client"
    User.objects.filter(pk=admin_user.pk).update(username="noa")
    in_session = f"{MESSAGES}?session__session_id__exact={world.session(CLIENT).pk}"
    assert authors(admin_client, in_session)["Noa will call you"] == "noa"


@pytest.mark.parametrize(
    ("names", "title"),
    [
        ({"client_name": "Dana"}, "Dana (+1 555-010-0123)"),
        ({"client_name": "דנה"}, "\u2068דנה\u2069 (\u2066+1 555-010-0123\u2069)"),
        ({"client_name": ""}, "+1 555-010-0123"),
        ({"whatsapp_chat": "IL.1@bsuid", "client_name": "Dana"}, "Dana (IL.1@bsuid)"),
        ({"whatsapp_chat": GROUP, "is_group": True, "client_name": "Shifts"}, "Shifts"),
        ({"whatsapp_chat": GROUP, "is_group": True, "client_name": ""}, GROUP),
    ],
)
def test_a_chat_is_called_by_name_and_number(names: dict[str, object], title: str) -> None:
    assert str(Chat(**{"whatsapp_chat": CLIENT, **names})) == title


def test_fields_and_columns_are_named_in_plain_words(admin_client: Client) -> None:
    """Those of all our models, and of all lists and pages of the admin."""
    page(admin_client, "/admin/")  # registers the pages
    ours = ("memoryproject", "sessions_app", "memories_app", "cards_app")
    named = [
        (f"{model.__name__}.{field.name}", str(text))
        for model in apps.get_models()
        if model.__module__.startswith(ours)
        for field in model._meta.fields
        for text in (field.verbose_name, field.help_text)
    ]
    named += [
        (f"{type(each).__name__}.{name}", str(getattr(column, "short_description", "")))
        for each in site._registry.values()
        for name, column in vars(type(each)).items()
    ]
    assert len(named) > 1_000
    odd = [f"{where}: {text}" for where, text in named if ODD.search(text)]
    assert not odd, "\n".join(odd)


# Counting rows


class Three(BoundedPaginator):
    most = 3


def chats(count: int) -> list[Chat]:
    chats_many(count)
    return list(Chat.objects.order_by("whatsapp_chat"))


def test_pages_hold_the_first_rows_in_order() -> None:
    made: list[Chat] = []
    pages = Three(Chat.objects.order_by("whatsapp_chat"), 2)
    for rows, more, shown in (
        (0, False, [[]]),
        (1, False, [[0]]),
        (2, False, [[0, 1]]),
        (3, False, [[0, 1], [2]]),
        (4, True, [[0, 1], [2]]),
    ):
        Chat.objects.all().delete()
        made = chats(rows)
        pages = Three(Chat.objects.order_by("whatsapp_chat"), 2)
        assert (pages.count, pages.more) == (min(rows, 3), more)
        keys = [[chat.pk for chat in each.object_list] for each in pages]
        assert keys == [[made[place].pk for place in each] for each in shown]
    # A page that is none is the nearest one.
    numbers = [pages.get_page(asked).number for asked in ("abc", "0", "-1", "99", None)]
    assert numbers == [1, 2, 2, 2, 1]


def test_an_endless_list_is_counted_as_far_as_somebody_goes(admin_client: Client) -> None:
    """The inbox by steps, and never further than any list."""
    chats_many(MAX_ROWS + 1)
    assert f"1–50 of more than {COUNTED}" in page(admin_client, CHATS)
    end = f"{MAX_ROWS - 49}–{MAX_ROWS} of"
    assert f"{end} more than {MAX_ROWS}" in page(admin_client, CHATS, p=MAX_ROWS // 50)
    Chat.objects.earliest("pk").delete()
    assert f"{end} {MAX_ROWS}" in page(admin_client, CHATS, p=MAX_ROWS // 50)


def test_no_endless_list_counts_more_than_it_can_show(said: Message, admin_client: Client) -> None:
    for address in (MESSAGES, DELIVERIES, PARTS, SESSIONS, "/admin/sessions_app/turn/"):
        with CaptureQueriesContext(connection) as queries:
            page(admin_client, address)
        counting = [each["sql"] for each in queries if "COUNT(" in each["sql"]]
        of_rows = [sql for sql in counting if f'"{_table(address)}"' in sql]
        assert of_rows
        assert all("LIMIT" in sql for sql in of_rows), of_rows


def _table(address: str) -> str:
    return f"sessions_app_{address.split('/')[3]}"


def test_what_a_filter_finds_little_of_is_looked_for_once(admin_client: Client) -> None:
    made = chats(60)
    Chat.objects.filter(pk=made[3].pk).update(provider="green")
    with CaptureQueriesContext(connection) as asked:
        shown = page(admin_client, CHATS, provider="green")
    assert made[3].shown_number in shown
    filtered = [one["sql"] for one in asked if "\"provider\" = 'green'" in one["sql"]]
    assert len(filtered) == 2
    assert sum(str(made[3].pk.hex) in sql for sql in filtered) == 1


def test_the_newest_are_found_in_order_however_many_are_read_first(world: World) -> None:
    for number in range(4):
        world.say(CLIENT, f"The invoice {number} is late")
    asked = Message.objects.filter(role="user")
    expected = list(asked.order_by("-received_at", "-order_num"))
    for recent in (0, 1, 2, 3, 100):
        for first, count in ((0, 2), (1, 2), (3, 2), (9, 2)):
            newest = newest_messages_found(asked, "invoices", first, count, recent=recent)
            assert newest == expected[first : first + count]
    assert newest_messages_found(asked, "zyqorvane", 0, 2, recent=1) == []


def test_cells_that_hold_nothing_are_empty(admin_client: Client) -> None:
    audit_record("webhook.again", COMMAND_LINE)
    rows = page(admin_client, "/admin/audit/auditevent/").partition("<tbody>")[2]
    assert "<tr" in rows
    assert not re.findall(r">\s*[-–]\s*<", rows)
