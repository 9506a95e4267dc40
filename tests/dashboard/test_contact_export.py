"""The export that a person can read: what is in it, in which language, and who may make it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from cards_app.models import MemoryCard
from memories_app.models import Memory, MemoryRevision, SourceDocument
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.contacts.readable_export import ROWS_AT_ONCE
from sessions_app.models import Chat, Message, Note
from tests.dashboard.staff import staff_with
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db
RIGHTS = (
    "sessions_app.view_chat",
    "sessions_app.view_message",
    "memories_app.view_memory",
    "memories_app.export_memory",
)
HEBREW = "מתי אתם פותחים?"


def address(chat: Chat) -> str:
    return f"/admin/contacts/{chat.pk}/export/"


def page(client: Client, chat: Chat) -> str:
    answer: Any = client.get(address(chat))
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    return str(b"".join(answer).decode())


@pytest.fixture(scope="module")
def two(module_rows: None) -> None:
    world = new_world()
    world.say(CLIENT, "When do you open?")
    world.remember(CLIENT, "I am allergic to nuts")
    world.say(OTHER_CLIENT, "This was said by somebody else")


@pytest.fixture
def dana(two: None, world: World) -> Chat:
    return world.chat(CLIENT)


def test_a_reply_by_staff_is_theirs_without_their_name(
    admin_client: Client, admin_user: User, dana: Chat
) -> None:
    reply = {"text": "We open at nine", "key": "00000000-0000-4000-8000-000000000009"}
    admin_client.post(f"/admin/sessions_app/turn/takeover/{dana.pk}/reply/", reply)
    said = page(admin_client, dana).partition("We open at nine")[0].rpartition("<article")[2]
    assert "somebody of the staff" in said
    assert admin_user.username not in said


def test_it_holds_everything_that_is_kept_in_words(admin_client: Client, dana: Chat) -> None:
    memory = Memory.objects.get()
    MemoryRevision.objects.create(
        memory=memory,
        number=1,
        content="I am allergic to notes",
        visibility="chat",
        type="fact",
        changed_by_kind="staff",
        reason="edited",
    )
    SourceDocument.objects.create(
        name="menu.pdf", size=1, sha256="a" * 64, chat_id=dana.pk, visibility="chat", state="ready"
    )
    MemoryCard.objects.create(
        session_id=dana.sessions.get().pk,
        chat_id=dana.pk,
        session_started_at=timezone.now(),
        title="Opening hours",
        summary_bullets=["[user] Asked for the hours"],
        extracted_at=timezone.now(),
        last_order=1,
    )
    Note.objects.create(
        chat=dana, author_name="noa", text="Prefers calls", created_at=timezone.now()
    )
    edited = dana.messages.get(content="When do you open?")
    edited.history = [{"content": "When do you close?", "until": "2026-01-01T00:00:00Z"}]
    edited.save()
    shown = page(admin_client, dana)
    for text in (
        "Test User",
        "+1 555-010-0123",
        "When do you open?",
        "When do you close?",
        "answer to: When do you open?",
        "I am allergic to nuts",
        "I am allergic to notes",
        "menu.pdf",
        "Opening hours",
        "Asked for the hours",
        "Prefers calls",
    ):
        assert text in shown, text
    assert "[user]" not in shown
    assert "somebody else" not in shown
    assert shown.rstrip().endswith("</html>")


def test_it_is_in_the_persons_language(admin_client: Client, world: World, dana: Chat) -> None:
    assert '<html lang="en" dir="ltr">' in page(admin_client, dana)
    world.say(CLIENT, HEBREW)
    shown = page(admin_client, dana)
    assert '<html lang="he" dir="rtl">' in shown
    assert f'<p class="text" dir="auto">{HEBREW}</p>' in shown
    assert "<bdi>העוזר</bdi>" in shown
    assert '<bdi dir="ltr">+1 555-010-0123</bdi>' in shown


def test_what_people_wrote_is_text(admin_client: Client, world: World, dana: Chat) -> None:
    world.say(CLIENT, "<script>alert(1)</script>")
    assert "<script" not in page(admin_client, dana)


def test_a_long_conversation_is_in_order_and_whole(admin_client: Client, dana: Chat) -> None:
    session = dana.sessions.get()
    now = timezone.now()
    first = session.message_counter + 1
    Message.objects.bulk_create(
        Message(
            session=session,
            chat=dana,
            order_num=first + number,
            role="user",
            content=f"line {number:04}",
            timestamp=now,
            tokens=1,
        )
        for number in range(ROWS_AT_ONCE + 50)
    )
    shown = page(admin_client, dana)
    lines = re.findall(r"line (\d{4})", shown)
    assert lines == [f"{number:04}" for number in range(ROWS_AT_ONCE + 50)]
    assert shown.count("<h3>") == 1
    assert shown.count("<h2>What was said</h2>") == 1


def test_it_says_where_nothing_is_kept(admin_client: Client) -> None:
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud")
    assert page(admin_client, chat).count('<p class="quiet">Nothing.</p>') == 5


def test_it_is_audited_as_an_export(admin_client: Client, dana: Chat) -> None:
    page(admin_client, dana)
    event = AuditEvent.objects.get(action="export")
    assert (event.object_type, event.actor) == ("chat", "admin")
    assert event.details == {"messages": 4, "everything": True, "page": True}


def test_each_of_the_rights_is_needed(dana: Chat) -> None:
    for number, missing in enumerate(RIGHTS):
        others = [right for right in RIGHTS if right != missing]
        client = staff_with(*others, name=f"staff {number}")
        assert client.get(address(dana)).status_code == 403, missing
    assert not AuditEvent.objects.filter(action="export").exists()
    assert "allergic" in page(staff_with(*RIGHTS), dana)


def test_the_contact_and_the_erasure_lead_to_both_exports(admin_client: Client, dana: Chat) -> None:
    data = f"/admin/sessions_app/forgetrun/person/{dana.pk}/export/"
    for there in (
        f"/admin/contacts/{dana.pk}/",
        f"/admin/sessions_app/forgetrun/person/{dana.pk}/",
    ):
        shown = admin_client.get(there).content.decode()
        assert f'href="{address(dana)}"' in shown
        assert f'href="{data}"' in shown
