"""The demo's month: told through the services, whole, and never among real chats."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from django.utils.timezone import localdate

from memories_app.models import Memory, MemoryRevision, MemoryStatus, MergeProposal
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.staff_site.demo.business import create_setup, create_staff_actions
from memoryproject.staff_site.demo.story import Story
from memoryproject.staff_site.demo.story_texts import PEOPLE, recorded_chats
from sessions_app.inbox.chat_list import Row, Wanted, chats_wanted, inbox_rows
from sessions_app.models import (
    Chat,
    ChatAddress,
    ForgetReceipt,
    MediaFile,
    Message,
    Note,
    SummarizationMetadata,
    Turn,
)

NAMES = ("dana", "emma", "iris", "lior", "omar", "owner", "sara", "shifts", "yossi")
DANA, EMMA, ERASED, LIOR, OMAR, OWNER, SARA, SHIFTS, YOSSI = (PEOPLE[name] for name in NAMES)
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def story(module_rows: None) -> Story:
    """A short month: with the passers-by of one day. Its reader is the admin_user of the tests."""
    User.objects.create_superuser("admin", password="password")
    told = Story(now=timezone.now(), embedder=WordLlamaEmbedder(), days=2)
    create_setup(told)
    told.tell(lambda done, total: None)
    create_staff_actions(told)
    return told


def test_the_month_has_all_that_staff_meet(story: Story, admin_client: Client) -> None:
    states = set(Turn.objects.values_list("state", flat=True))
    assert states >= {"sent", "failed", "unconfirmed", "missed", "pending"}
    assert SummarizationMetadata.objects.filter(session__chat__client_name=EMMA.name).exists()
    assert Memory.objects.filter(status=MemoryStatus.PROPOSED).count() == 3
    assert MemoryRevision.objects.exists()
    assert MergeProposal.objects.filter(state="open").exists()
    assert set(ForgetReceipt.objects.values_list("kind", flat=True)) >= {"memory", "chat"}
    assert not Chat.objects.filter(whatsapp_chat=ERASED.whatsapp_chat).exists()
    edited = Message.objects.filter(chat__whatsapp_chat=DANA.whatsapp_chat, edited_at__isnull=False)
    assert edited.count() == 1
    owners = Memory.objects.filter(content__contains="alarm code")
    assert not owners.exists(), "the owner forgot it"
    for path in ("/admin/", "/admin/operations/turns/", "/admin/sessions_app/chat/"):
        assert admin_client.get(path).status_code == 200


def test_pictures_and_a_voice_message_are_seen_and_heard(
    story: Story, admin_client: Client
) -> None:
    for person, tag, starts in ((EMMA, "<img", b"\x89PNG"), (YOSSI, "<audio", b"RIFF")):
        row = MediaFile.objects.get(message__chat__whatsapp_chat=person.whatsapp_chat)
        address = f"/admin/sessions_app/message/{row.message_id}/media/"
        assert row.message is not None
        chat = f"/admin/sessions_app/chat/{row.message.chat_id}/conversation/"
        page = admin_client.get(f"{chat}?at={row.message_id}").content.decode()
        assert re.search(rf'{tag}[^>]* src="{address}"', page)
        assert b"".join(admin_client.get(address)).startswith(starts)
    assert set(MediaFile.objects.values_list("state", flat=True)) == {"stored"}
    assert MediaFile.objects.count() == 4


def test_everything_lies_before_the_day_on_which_it_is_told(story: Story) -> None:
    assert not Message.objects.filter(timestamp__gt=story.now).exists()
    assert not AuditEvent.objects.filter(at__gt=timezone.now()).exists()
    oldest = Message.objects.earliest("timestamp").timestamp
    assert story.now - oldest > timedelta(days=15)
    assert abs(timezone.now() - story.now) < timedelta(minutes=30), "the clock is put back"
    asked = Turn.objects.filter(state="sent", chat__whatsapp_chat=EMMA.whatsapp_chat).first()
    assert asked is not None
    assert asked.finished_at - asked.created_at > timedelta(seconds=1)


def test_answers_are_those_of_the_story(story: Story) -> None:
    said = Message.objects.filter(role="assistant").values_list("content", flat=True)
    assert "With pleasure. How can we help?" not in said
    recalled = Turn.objects.filter(
        chat__whatsapp_chat=OWNER.whatsapp_chat, message__content__startswith="When does the flour"
    ).get()
    assert recalled.replay.recalled, "the replay shows what was recalled"


def rows_of(user: User) -> dict[str, Row]:
    """The inbox as somebody sees it, by address."""
    chats = chats_wanted(Wanted(), user, memory_default=True, today=localdate())
    return {row.chat.whatsapp_chat: row for row in inbox_rows(list(chats), user)}


def test_staff_have_sorted_and_reviewed_it(story: Story, admin_user: User) -> None:
    rows = rows_of(admin_user)
    emma, omar, yossi = (rows[who.whatsapp_chat] for who in (EMMA, OMAR, YOSSI))
    assert {label.name for label in emma.labels} == {"Wedding", "Allergy"}
    assert (str(emma.assignee), str(omar.assignee)) == ("noa", "amir")
    assert {label.name for label in omar.labels} == {"Catering", "Call back"}
    assert emma.bookmarked, "who came before the story finds it as colleagues do"
    assert (yossi.reviewed, emma.reviewed) == (True, False), "she wrote since the review"
    assert 0 < emma.unread < Message.objects.filter(chat=emma.chat, role="user").count()


def test_staff_note_on_chats_and_on_messages(story: Story, admin_client: Client) -> None:
    notes = Note.objects.filter(chat__whatsapp_chat=EMMA.whatsapp_chat)
    assert set(notes.values_list("author_name", flat=True)) == {"noa", "amir"}
    about = notes.exclude(message=None).values_list("message__content", flat=True)
    assert any("nut allergy" in said for said in about)
    for note in Note.objects.select_related("message"):
        after_it = note.message.timestamp if note.message else story.now - timedelta(days=30)
        assert after_it < note.created_at <= story.now
    chat = notes[0].chat_id
    page = admin_client.get(f"/admin/sessions_app/chat/{chat}/conversation/").content.decode()
    for shown in ("The deposit is 621 shekels", "Wedding", "noa", "new since the review"):
        assert shown in page


def test_a_group_talks_and_is_answered_when_it_asks(story: Story, admin_client: Client) -> None:
    chat = Chat.objects.get(whatsapp_chat=SHIFTS.whatsapp_chat)
    assert (chat.is_group, chat.client_name) == (True, SHIFTS.name)
    said = Message.objects.filter(chat=chat)
    senders = {message.metadata["sender_name"] for message in said.filter(role="user")}
    assert senders == {LIOR.name, SARA.name, OWNER.name}
    asked = Turn.objects.filter(chat=chat).values_list("message__content", flat=True)
    assert all("@Shaked" in text for text in asked)
    assert said.filter(role="assistant").count() == len(asked) == 2
    assert set(Turn.objects.filter(chat=chat).values_list("user_role", flat=True)) == {"client"}
    page = admin_client.get(f"/admin/sessions_app/chat/{chat.pk}/conversation/").content.decode()
    assert "A group" in page
    assert "🙏" in page


def test_it_never_stands_among_real_chats() -> None:
    assert "15550100999@c.us" not in recorded_chats()
    Chat.objects.create(whatsapp_chat="15550100999@c.us", provider="cloud")
    with pytest.raises(CommandError, match="holds chats"):
        call_command("demo_data")
    assert Chat.objects.count() == 1


def test_it_stands_beside_the_replayed_conversations() -> None:
    recorded = recorded_chats()
    assert len(recorded) >= 5
    for address in recorded:
        chat = Chat.objects.create(whatsapp_chat=address, provider="cloud")
        ChatAddress.objects.create(chat=chat, provider="cloud", address=address)
    call_command("demo_data", "--days=2")
    assert Chat.objects.filter(whatsapp_chat=EMMA.whatsapp_chat).exists()
    with pytest.raises(CommandError, match="holds chats"):
        call_command("demo_data")
