"""The page of one person: everything that is kept of them, each block for those who may see it."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cards_app.models import MemoryCard
from memories_app.models import Memory, SourceDocument
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat, ChatAddress, Note, UsageDay
from tests.dashboard.staff import staff_with
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db
SEE = "sessions_app.view_chat"
FACT = "I am allergic to nuts"


def address(chat: Chat) -> str:
    return f"/admin/contacts/{chat.pk}/"


def page(client: Client, chat: Chat) -> str:
    answer = client.get(address(chat))
    assert answer.status_code == 200
    return answer.content.decode()


def block(shown: str, name: str) -> str:
    found = re.search(
        rf'<section class="card[^"]*" aria-labelledby="{name}">.*?</section>', shown, re.S
    )
    return found[0] if found else ""


@pytest.fixture(scope="module")
def everything(module_rows: None) -> None:
    """A client of whom there is a row of each kind; another one's memory is not theirs."""
    world = new_world()
    world.say(CLIENT, "hello")
    world.remember(CLIENT, FACT)
    world.remember(OTHER_CLIENT, "The other one drinks tea")
    chat = world.chat(CLIENT)
    ChatAddress.objects.create(chat=chat, provider="green", address="972521234567@c.us")
    SourceDocument.objects.create(
        name="menu.pdf", size=1, sha256="a" * 64, chat_id=chat.pk, visibility="chat", state="ready"
    )
    MemoryCard.objects.create(
        session_id=world.session(CLIENT).pk,
        chat_id=chat.pk,
        session_started_at=timezone.now(),
        title="Order of a cake",
        extracted_at=timezone.now(),
        last_order=1,
    )
    Note.objects.create(
        chat=chat, author_name="noa", text="Prefers calls", created_at=timezone.now()
    )
    today = timezone.localdate()
    UsageDay.objects.filter(chat=chat).delete()
    UsageDay.objects.create(chat=chat, day=today, model_calls=321, cost="1.5")


@pytest.fixture
def dana(everything: None, world: World) -> Chat:
    return world.chat(CLIENT)


def test_it_shows_everything_that_is_kept(admin_client: Client, dana: Chat) -> None:
    shown = page(admin_client, dana)
    assert "+972 52-123-4567" in block(shown, "who")
    assert FACT in block(shown, "memories")
    assert "drinks tea" not in shown
    assert "4 messages" in block(shown, "sessions")
    assert "menu.pdf" in block(shown, "documents")
    assert "Order of a cake" in block(shown, "cards")
    assert "Prefers calls" in block(shown, "notes")
    assert "321" in block(shown, "usage")
    assert "Nothing of this contact was erased." in block(shown, "receipts")
    assert f'href="/admin/sessions_app/chat/{dana.pk}/conversation/"' in shown
    assert f'href="/admin/sessions_app/forgetrun/person/{dana.pk}/"' in shown
    assert f'href="/admin/sessions_app/forgetrun/person/{dana.pk}/export/"' in shown


def test_a_block_is_hidden_without_its_right(dana: Chat) -> None:
    shown = page(staff_with(SEE), dana)
    assert "+972 52-123-4567" in block(shown, "who")
    for name in ("sessions", "memories", "documents", "cards", "notes", "receipts", "events"):
        assert not block(shown, name)
    for text in (
        FACT,
        "menu.pdf",
        "Order of a cake",
        "Prefers calls",
        "/person/",
        "/conversation/",
    ):
        assert text not in shown
    assert not AuditEvent.objects.filter(action="conversation.read").exists()


@pytest.mark.parametrize(
    ("right", "name", "text"),
    [
        ("sessions_app.view_chatsession", "sessions", "4 messages"),
        ("memories_app.view_memory", "memories", FACT),
        ("memories_app.view_sourcedocument", "documents", "menu.pdf"),
        ("cards_app.view_memorycard", "cards", "Order of a cake"),
        ("sessions_app.view_message", "notes", "Prefers calls"),
        ("sessions_app.view_forgetreceipt", "receipts", "Nothing of this contact was erased."),
        ("audit.view_auditevent", "events", "None yet."),
    ],
)
def test_a_right_shows_its_block(dana: Chat, right: str, name: str, text: str) -> None:
    assert text in block(page(staff_with(SEE, right), dana), name)


def test_the_page_is_for_those_who_may_see_chats(client: Client, dana: Chat) -> None:
    assert client.get(address(dana)).status_code == 302
    assert staff_with("memories_app.view_memory").get(address(dana)).status_code == 403


def test_there_is_no_page_of_nobody(admin_client: Client) -> None:
    assert (
        admin_client.get(f"/admin/contacts/{'0' * 8}-0000-4000-8000-{'0' * 12}/").status_code == 404
    )


def test_reading_it_is_told_to_the_audit_log_and_shown(admin_client: Client, dana: Chat) -> None:
    page(admin_client, dana)
    event = AuditEvent.objects.get(action="conversation.read")
    assert (event.object_type, event.actor, event.details) == ("chat", "admin", {"page": "contact"})
    events = block(page(admin_client, dana), "events")
    assert "A conversation was read" in events
    assert "admin" in events


def test_a_memory_that_staff_corrected_is_in_the_trail_of_its_person(
    admin_client: Client, dana: Chat
) -> None:
    memory = Memory.objects.get(content=FACT)
    edit = f"/admin/memories_app/memory/{memory.pk}/change/"
    assert f'href="{edit}"' in block(page(admin_client, dana), "memories")
    form = admin_client.get(edit).context["adminform"].form
    values = {name: form[name].value() or "" for name in form.fields}
    values["content"] = "I am allergic to peanuts"
    answer = admin_client.post(edit, {**values, "_save": "1"})
    assert answer.status_code == 302
    assert "A memory was corrected" in block(page(admin_client, dana), "events")


def test_a_memory_is_erased_from_here_by_way_of_the_preview(
    admin_client: Client, dana: Chat
) -> None:
    memory = Memory.objects.get(content=FACT)
    shown = block(page(admin_client, dana), "memories")
    form = re.search(r'<form method="post" action="([^"]+)">(.*?)</form>', shown, re.S)
    assert form is not None
    values = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', form[2]))
    del values["csrfmiddlewaretoken"]
    answer = admin_client.post(form[1], values, follow=True)
    assert answer.redirect_chain[0][0].startswith("/admin/sessions_app/forgetrun/")
    assert FACT in b"".join(answer).decode()
    assert values["_selected_action"] == str(memory.pk)


def test_who_may_only_read_is_offered_no_changes(dana: Chat) -> None:
    shown = page(staff_with(SEE, "memories_app.view_memory", "sessions_app.view_message"), dana)
    assert ">Open<" in block(shown, "memories")
    assert "Erase" not in shown
    assert "Export" not in shown


def test_long_blocks_show_the_newest_and_lead_to_all(admin_client: Client, dana: Chat) -> None:
    with CaptureQueriesContext(connection) as few:
        page(admin_client, dana)
    for number in range(30):
        Memory.objects.create(
            content=f"fact {number}", fact_key=f"f{number}", visibility="chat", chat_id=dana.pk
        )
        SourceDocument.objects.create(
            name=f"file {number}",
            size=1,
            sha256=f"{number:064}",
            chat_id=dana.pk,
            visibility="chat",
        )
        ChatAddress.objects.create(chat=dana, provider="cloud", address=f"15550199{number:03}@c.us")
    with CaptureQueriesContext(connection) as many:
        shown = page(admin_client, dana)
    assert len(many) == len(few)
    assert block(shown, "memories").count('class="held"') == 20
    assert "fact 29" in block(shown, "memories")
    assert f"/admin/memories_app/memory/?chat_id__exact={dana.pk}" in block(shown, "memories")
    documents = re.search(r'href="([^"]+)">All documents', block(shown, "documents"))
    assert documents is not None
    assert admin_client.get(documents[1]).context["cl"].result_count == 31


def test_the_conversation_and_a_memory_lead_here(admin_client: Client, dana: Chat) -> None:
    memory = Memory.objects.get(content=FACT)
    for there in (
        f"/admin/sessions_app/chat/{dana.pk}/conversation/",
        f"/admin/memories_app/memory/{memory.pk}/change/",
        "/admin/contacts/",
    ):
        assert f'href="{address(dana)}"' in admin_client.get(there).content.decode()
