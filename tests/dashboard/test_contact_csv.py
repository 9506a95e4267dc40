"""The lists of contacts and of the inbox as CSV: what is in them, for whom, and the audit."""

from __future__ import annotations

import csv
import io

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat, ChatLabel, Label
from tests.dashboard.staff import staff_with
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db
CONTACTS, INBOX = "/admin/contacts/", "/admin/sessions_app/chat/"
SEE = "sessions_app.view_chat"


def taken(client: Client, address: str, **filters: str) -> list[dict[str, str]]:
    answer = client.get(address, {**filters, "_csv": "1"})
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


@pytest.fixture(scope="module")
def two(module_rows: None) -> None:
    world = new_world()
    world.remember(CLIENT, "I like tea")
    world.say(CLIENT, "=cmd")
    world.say(OTHER_CLIENT, "hello")
    chat = world.chat(CLIENT)
    ChatLabel.objects.create(chat=chat, label=Label.objects.create(name="urgent"))
    Chat.objects.filter(pk=chat.pk).update(staff_name="דנה")


@pytest.fixture
def dana(two: None, world: World) -> Chat:
    return world.chat(CLIENT)


def test_contacts_have_names_numbers_and_counts(admin_client: Client, dana: Chat) -> None:
    rows = taken(admin_client, CONTACTS)
    assert len(rows) == 2
    (row,) = taken(admin_client, CONTACTS, q="דנה")
    assert row["id"] == str(dana.pk)
    assert row["Name by staff"] == "דנה"
    assert row["Name on WhatsApp"] == "Test User"
    assert "1 555-010-0123" in row["Addresses"].replace("+", "")
    assert (row["Conversations"], row["Memories"], row["Labels"]) == ("1", "1", "urgent")
    event = AuditEvent.objects.filter(action="export").latest("id")
    assert event.details == {"list": "contact", "rows": 1, "filters": ["q"]}


def test_the_inbox_has_what_its_lines_show(admin_client: Client, dana: Chat) -> None:
    (row,) = taken(admin_client, INBOX, label=str(Label.objects.get().pk))
    assert row["Name"] == "דנה"
    assert row["Address"] == CLIENT
    assert row["Last message"] == "answer to: =cmd"
    assert (row["Unread"], row["Reviewed"], row["Labels"]) == ("2", "no", "urgent")
    event = AuditEvent.objects.filter(action="export").latest("id")
    assert event.details == {"list": "chat", "rows": 1, "filters": ["label"]}


def test_pages_link_to_their_files_with_their_filters(admin_client: Client, dana: Chat) -> None:
    for page in (CONTACTS, INBOX):
        shown = admin_client.get(page, {"q": "Test", "p": "1"}).content.decode()
        assert 'href="?q=Test&amp;_csv=1"' in shown, page


def test_what_a_reader_may_not_see_is_not_in_it(dana: Chat) -> None:
    reader = staff_with(SEE)
    assert not {"Conversations", "Memories"} & set(taken(reader, CONTACTS)[0])
    assert "Last message" not in taken(reader, INBOX)[0]
    nobody = staff_with("sessions_app.view_message", name="noa")
    for page in (CONTACTS, INBOX):
        assert nobody.get(page, {"_csv": "1"}).status_code == 403


def test_the_number_of_queries_does_not_grow(
    admin_client: Client, world: World, dana: Chat
) -> None:
    def counted(page: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            taken(admin_client, page)
        return len(queries)

    for page in (CONTACTS, INBOX):
        counted(page)
    before = [counted(page) for page in (CONTACTS, INBOX)]
    for number in range(5):
        world.say(f"1555010080{number}@c.us", "hello")
    assert [counted(page) for page in (CONTACTS, INBOX)] == before
