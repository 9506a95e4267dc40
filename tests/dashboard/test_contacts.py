"""Contacts: the list and its file, the page of one person with everything that is kept of them, the
name that staff give them, and the export that they can read. What each shows, and to whom."""

from __future__ import annotations

import csv
import io
import re

import pytest
from django.test import Client
from django.utils import timezone

from cards_app.models import MemoryCard
from memories_app.facts.facts import fact_key
from memories_app.models import Memory, MemoryRevision, SourceDocument
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.contacts.readable_export import ROWS_AT_ONCE
from sessions_app.models import (
    Chat,
    ChatAccess,
    ChatAddress,
    ChatLabel,
    ChatPause,
    Label,
    Message,
    Note,
    UsageDay,
)
from tests.dashboard.staff import page, staff_with
from tests.forms import save
from tests.shown import found_in
from tests.world import CLIENT, OTHER_CLIENT, World, message_from, new_world, write_as

pytestmark = pytest.mark.django_db

CONTACTS, INBOX = "/admin/contacts/", "/admin/sessions_app/chat/"
SEE = "sessions_app.view_chat"
FACT, NAME = "I am allergic to nuts", "דנה מהמאפייה"
# Each block of a person's page, the right that shows it, and something that stands in it.
BLOCKS = {
    "sessions": ("sessions_app.view_chatsession", "6 messages"),
    "memories": ("memories_app.view_memory", FACT),
    "documents": ("memories_app.view_sourcedocument", "menu.pdf"),
    "cards": ("cards_app.view_memorycard", "Order of a cake"),
    "notes": ("sessions_app.view_message", "Prefers calls"),
    "receipts": ("sessions_app.view_forgetreceipt", "Nothing of this contact was erased."),
    "events": ("audit.view_auditevent", "Reads and changes by staff"),
}


@pytest.fixture(scope="module")
def everything(module_rows: None) -> None:
    """A client of whom there is a row of each kind; another one's memory is not theirs."""
    world, now = new_world(), timezone.now()
    write_as(world, OTHER_CLIENT, "Omar", "/remember The other one drinks tea")
    world.say(CLIENT, "When do you open?")
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "=cmd")
    chat = world.chat(CLIENT)
    edited = chat.messages.get(content="When do you open?")
    edited.history = [{"content": "When do you close?", "until": "2026-01-01T00:00:00Z"}]
    edited.save()
    ChatLabel.objects.create(chat=chat, label=Label.objects.create(name="Urgent", colour="red"))
    ChatAccess.objects.update_or_create(chat=chat, defaults={"standing": "blocked"})
    ChatAddress.objects.create(chat=chat, provider="green", address="972521234567@c.us")
    MemoryRevision.objects.create(
        memory=Memory.objects.get(content=FACT),
        number=1,
        content="I am allergic to notes",
        visibility="chat",
        type="fact",
        changed_by_kind="staff",
        reason="edited",
    )
    SourceDocument.objects.create(
        name="menu.pdf", size=1, sha256="a" * 64, chat_id=chat.pk, visibility="chat", state="ready"
    )
    MemoryCard.objects.create(
        session_id=world.session(CLIENT).pk,
        chat_id=chat.pk,
        session_started_at=now,
        title="Order of a cake",
        summary_bullets=["[user] Asked for the hours"],
        extracted_at=now,
        last_order=1,
    )
    Note.objects.create(chat=chat, author_name="noa", text="Prefers calls", created_at=now)
    UsageDay.objects.filter(chat=chat).delete()
    UsageDay.objects.create(chat=chat, day=timezone.localdate(), model_calls=321, cost="1.5")


@pytest.fixture
def dana(everything: None, world: World) -> Chat:
    return world.chat(CLIENT)


def address(chat: Chat, what: str = "") -> str:
    return f"{CONTACTS}{chat.pk}/{what}"


def rows(shown: str) -> list[str]:
    return re.findall(r'<li class="contact">.*?</li>', shown, re.S)


def names(shown: str) -> list[str]:
    return re.findall(r'class="contact-name"[^>]*><bdi>(.*?)</bdi>', shown)


def block(shown: str, name: str) -> str:
    section = rf'<section class="card[^"]*" aria-labelledby="{name}">.*?</section>'
    found = re.search(section, shown, re.S)
    return found[0] if found else ""


def taken(client: Client, list_address: str, **filters: str) -> list[dict[str, str]]:
    answer = client.get(list_address, {**filters, "_csv": "1"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def last_export() -> dict[str, object]:
    event = AuditEvent.objects.filter(action="export").latest("id")
    assert event.actor == "admin"
    return event.details


def test_people_are_listed_with_what_is_kept_of_them(admin_client: Client, dana: Chat) -> None:
    shown = page(admin_client, CONTACTS)
    assert names(shown) == ["Test User", "Omar"]
    first, second = rows(shown)
    assert '<bdi dir="ltr">+1 555-010-0123</bdi>' in first
    for text in ("1 conversation<", "1 memory<", "0\xa0minutes ago"):
        assert text in first
    assert '<span class="state bad">blocked</span>' in first
    assert '<bdi class="label red">Urgent</bdi>' in first
    assert "blocked" not in second
    assert names(page(admin_client, CONTACTS, access="blocked")) == ["Test User"]
    assert names(page(admin_client, CONTACTS, q="052-1234567")) == ["Test User"], "another number"
    assert names(page(admin_client, CONTACTS, q="٠٥٢-١٢٣٤٥٦٧")) == ["Test User"], "its digits"
    assert "No matching contact" in page(admin_client, CONTACTS, q="nobody")
    Chat.objects.update(is_group=True)
    nobody = "Everybody who writes to the assistant becomes a contact."
    assert nobody in page(admin_client, CONTACTS), "groups are not people"


def test_lists_of_contacts_and_the_inbox_are_files_too(admin_client: Client, dana: Chat) -> None:
    Chat.objects.filter(pk=dana.pk).update(staff_name="דנה")
    assert len(taken(admin_client, CONTACTS)) == 2
    (row,) = taken(admin_client, CONTACTS, q="דנה")
    assert (row["id"], row["Name by staff"]) == (str(dana.pk), "דנה")
    assert row["Name on WhatsApp"] == "Test User"
    assert "1 555-010-0123" in row["Addresses"].replace("+", "")
    assert (row["Conversations"], row["Memories"], row["Labels"]) == ("1", "1", "Urgent")
    assert last_export() == {"list": "contact", "rows": 1, "filters": ["q"]}
    (row,) = taken(admin_client, INBOX, label=str(Label.objects.get().pk))
    assert (row["Name"], row["Address"]) == ("דנה", CLIENT)
    assert row["Last message"] == "answer to: =cmd"
    assert (row["Unread"], row["Reviewed"], row["Labels"]) == ("3", "no", "Urgent")
    assert last_export() == {"list": "chat", "rows": 1, "filters": ["label"]}
    for listed in (CONTACTS, INBOX):
        shown = page(admin_client, listed, q="Test", p="1")
        assert 'href="?q=Test&amp;_csv=1"' in shown, "with the page's filters"


def test_what_a_reader_may_not_see_is_in_no_list_or_file(dana: Chat) -> None:
    reader = staff_with(SEE)
    first = rows(page(reader, CONTACTS))[0]
    assert "Test User" in first
    assert "memories" not in first
    assert "conversation<" not in first
    assert not {"Conversations", "Memories"} & set(taken(reader, CONTACTS)[0])
    assert "Last message" not in taken(reader, INBOX)[0]


# One person


def test_the_page_shows_everything_that_is_kept(admin_client: Client, dana: Chat) -> None:
    shown = page(admin_client, address(dana))
    for name, (_, text) in BLOCKS.items():
        assert text in block(shown, name), name
    assert "+972 52-123-4567" in block(shown, "who")
    assert "321" in block(shown, "usage")
    assert "drinks tea" not in shown
    person = f"/admin/sessions_app/forgetrun/person/{dana.pk}/"
    for link in (f"{INBOX}{dana.pk}/conversation/", person, f"{person}export/"):
        assert f'href="{link}"' in shown
    event = AuditEvent.objects.get(action="conversation.read")
    assert (event.object_type, event.actor, event.details) == ("chat", "admin", {"page": "contact"})
    events = block(page(admin_client, address(dana)), "events")
    assert "A conversation was read" in events
    assert "admin" in events


def test_each_block_is_for_those_who_have_its_right(dana: Chat) -> None:
    shown = page(staff_with(SEE), address(dana))
    assert "+972 52-123-4567" in block(shown, "who")
    for name, (_, text) in BLOCKS.items():
        assert not block(shown, name)
        assert text not in shown
    assert "/person/" not in shown
    assert "/conversation/" not in shown
    assert not AuditEvent.objects.filter(action="conversation.read").exists()
    for name, (right, text) in BLOCKS.items():
        own = page(staff_with(SEE, right, name=name), address(dana))
        assert text in block(own, name), name


def test_long_blocks_show_the_newest_and_lead_to_all(admin_client: Client, dana: Chat) -> None:
    for number in range(30):
        Memory.objects.create(
            content=f"fact {number}", fact_key=f"f{number}", visibility="chat", chat_id=dana.pk
        )
        SourceDocument.objects.create(
            name="file", size=1, sha256=f"{number:064}", chat_id=dana.pk, visibility="chat"
        )
    shown = page(admin_client, address(dana))
    assert block(shown, "memories").count('class="held"') == 20
    assert "fact 29" in block(shown, "memories")
    assert f"/admin/memories_app/memory/?chat_id__exact={dana.pk}" in block(shown, "memories")
    documents = found_in(r'href="([^"]+)">All documents', block(shown, "documents"))
    assert admin_client.get(documents).context["cl"].result_count == 31


# The name by staff


def test_a_name_by_staff_is_everywhere(admin_client: Client, world: World, dana: Chat) -> None:
    edit = address(dana, "edit/")
    answer = save(admin_client, edit, {"staff_name": NAME}, follow=True)
    assert answer.redirect_chain == [(address(dana), 302)]
    assert "The contact was saved." in answer.content.decode()
    for place in (
        address(dana),
        f"{CONTACTS}?q=דנה",
        f"{INBOX}?q=דנה",
        f"{INBOX}{dana.pk}/conversation/",
        f"/admin/sessions_app/forgetrun/person/{dana.pk}/",
        "/admin/sessions_app/turn/?q=דנה",
    ):
        assert NAME in page(admin_client, place).replace('value="דנה"', ""), place
    # WhatsApp doesn't replace it, and saving it again is no change.
    party = Party(phone=CLIENT.partition("@")[0], name="🌸 D 🌸")
    world.receive(message_from(CLIENT, "hello", party=party))
    save(admin_client, edit, {"staff_name": NAME})
    dana.refresh_from_db()
    assert (dana.staff_name, dana.client_name) == (NAME, "🌸 D 🌸")
    shown = page(admin_client, address(dana))
    assert "🌸 D 🌸" in shown
    assert "A chat was changed" in shown
    event = AuditEvent.objects.get(action="chat.update")
    assert (event.actor, event.details) == ("admin", {"fields": ["staff_name"]}), "not the name"


def test_a_note_is_written_on_the_page(dana: Chat) -> None:
    reviewer = staff_with(SEE, "sessions_app.review_chat", "sessions_app.view_message")
    assert 'value="note"' in page(reviewer, address(dana))
    back = f"{address(dana)}#notes"
    values = {"do": "note", "text": "Call before noon", "next": back}
    answer = reviewer.post(f"{INBOX}{dana.pk}/review/", values, follow=True)
    assert answer.redirect_chain[0][0] == back
    assert "Call before noon" in answer.content.decode()


# The export


def test_the_export_holds_all_that_is_kept_in_words(admin_client: Client, dana: Chat) -> None:
    shown = page(admin_client, address(dana, "export/"))
    for text in (
        *("Test User", "+1 555-010-0123", "When do you open?", "When do you close?"),
        *("answer to: When do you open?", FACT, "I am allergic to notes", "menu.pdf"),
        *("Order of a cake", "Asked for the hours", "Prefers calls"),
    ):
        assert text in shown, text
    assert "[user]" not in shown
    assert "drinks tea" not in shown
    assert shown.rstrip().endswith("</html>")
    assert last_export() == {"messages": 6, "everything": True, "page": True}
    nobody = Chat.objects.create(whatsapp_chat="15550100999@c.us", provider="cloud")
    empty = page(admin_client, address(nobody, "export/"))
    assert empty.count('<p class="quiet">Nothing.</p>') == 5


def test_it_is_in_their_language(admin_client: Client, world: World, dana: Chat) -> None:
    reply = {"text": "We open at nine", "key": "00000000-0000-4000-8000-000000000009"}
    admin_client.post(f"/admin/sessions_app/turn/takeover/{dana.pk}/reply/", reply)
    shown = page(admin_client, address(dana, "export/"))
    assert '<html lang="en" dir="ltr">' in shown
    article = shown.partition("We open at nine")[0].rpartition("<article")[2]
    assert "somebody of the staff" in article
    assert "admin" not in article
    ChatAccess.objects.all().delete()
    ChatPause.objects.all().delete()
    world.say(CLIENT, "מתי אתם פותחים?")
    shown = page(admin_client, address(dana, "export/"))
    assert '<html lang="he" dir="rtl">' in shown
    assert '<p class="text" dir="auto">מתי אתם פותחים?</p>' in shown
    assert "<bdi>העוזר</bdi>" in shown
    assert '<bdi dir="ltr">+1 555-010-0123</bdi>' in shown


def test_the_export_is_redacted_on_request(admin_client: Client, dana: Chat) -> None:
    said = "Call +44 7700 900123"
    message = Message.objects.filter(chat=dana, role="user").earliest("order_num")
    Message.objects.filter(pk=message.pk).update(content=said)
    Memory.objects.filter(chat_id=dana.pk).update(content=f"{said} and 2 nights")
    Note.objects.filter(chat=dana).update(text=said)
    # At the page's beginning, what is known in short.
    wife = "My wife has +44 7700 900123"
    Memory.objects.create(content=wife, fact_key=fact_key(wife), visibility="chat", chat_id=dana.pk)
    assert 'name="redact"' in page(admin_client, address(dana))
    shown = page(admin_client, address(dana, "export/"), redact="true")
    for text in ("Personal data is left out", "Call [phone]</p>", "Call [phone] and 2 nights"):
        assert text in shown
    for text in ("7700", "555-010", CLIENT):
        assert text not in shown
    assert last_export()["redacted"] is True
    whole = page(admin_client, address(dana, "export/"))
    assert said in whole
    assert "Personal data is left out" not in whole


def test_a_long_conversation_is_exported_whole(admin_client: Client, dana: Chat) -> None:
    session, now, count = dana.sessions.get(), timezone.now(), ROWS_AT_ONCE + 50
    Message.objects.bulk_create(
        Message(
            session=session,
            chat=dana,
            order_num=session.message_counter + 1 + number,
            role="user",
            content=f"line {number:04}",
            timestamp=now,
            tokens=1,
        )
        for number in range(count)
    )
    shown = page(admin_client, address(dana, "export/"))
    assert re.findall(r"line (\d{4})", shown) == [f"{number:04}" for number in range(count)]
    assert shown.count("<h3>") == 1
    assert shown.count("<h2>What was said</h2>") == 1
