"""Splitting addresses off a contact, and undoing a merge."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.test import Client
from django.utils import timezone

from cards_app.models import MemoryCard
from memories_app.documents.document_store import IncomingFile, document_receive
from memories_app.models import Memory, MemoryEmbedding, SourceDocument
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.rest_kit.models import ApiToken
from sessions_app.cards.make_cards import card_make
from sessions_app.models import (
    Assignment,
    Bookmark,
    Chat,
    ChatAccess,
    ChatActivity,
    ChatAddress,
    ChatLabel,
    ChatPause,
    ChatSession,
    ContactMerge,
    ForgetReceipt,
    InboundDelivery,
    Label,
    Note,
    ReadMark,
    ReviewedMark,
    Rule,
    RuleRun,
    Snooze,
    SummarizationMetadata,
    TranscriptBatch,
    UsageDay,
)
from tests.dashboard.test_contact_merge import both, dana, merge, shown, work
from tests.documents.conftest import read
from tests.forms import opened
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db
# The same two people: fixtures that stand elsewhere.
__all__ = ["both", "dana", "work"]
# What is not of the contact itself, or follows from the rest.
PASSING = {ChatActivity, ContactMerge, InboundDelivery, ReadMark, TranscriptBatch}
STRANGER = "15550100789@c.us"


def undo(client: Client) -> str:
    return f"/admin/contacts/merges/{ContactMerge.objects.latest('merged_at').pk}/undo/"


def split(chat: Chat, *addresses: str) -> str:
    links = ChatAddress.objects.filter(chat=chat, address__in=addresses)
    chosen = "&".join(f"address={link.pk}" for link in links)
    return f"/admin/contacts/{chat.pk}/split/?{chosen}"


def confirm(client: Client, address: str, **values: Any) -> Chat:
    """Post the form of the preview; return the contact that was split off."""
    answer = client.post(address, {**opened(client, address), **values})
    assert answer.status_code == 302, answer.content.decode()
    return Chat.objects.get(pk=answer["Location"].strip("/").split("/")[-1])


def everything(chat_id: Any) -> dict[str, Any]:
    """All that is kept of a chat, as plain values, without the times of last changes."""
    of_chat: set[Any] = {each.related_model for each in Chat._meta.related_objects} - PASSING
    found = {}
    for model in (Chat, *of_chat, Memory, SourceDocument, MemoryCard, ForgetReceipt):
        key = {"pk" if model is Chat else "chat_id": chat_id}
        rows = model._default_manager.filter(**key).order_by("pk")
        for row in json.loads(serializers.serialize("json", rows)):
            fields = row["fields"]
            # These are made anew.
            is_new = model in (ChatLabel, Bookmark, UsageDay)
            for name in ("updated_at", "created_at" if is_new else ""):
                fields.pop(name, None)
            of_row = str(sorted(fields.items())) if is_new else str(row["pk"])
            found[f"{row['model']} {of_row}"] = fields
    return found


def furnished(chat: Chat, user: User, **access: Any) -> None:
    """Everything that staff can decide or write about a contact."""
    now = timezone.now()
    label = Label.objects.create(name=chat.pk.hex)
    ChatLabel.objects.create(chat=chat, label=label)
    Assignment.objects.create(chat=chat, assignee=user, assigned_at=now)
    ChatAccess.objects.create(chat=chat, **access)
    Note.objects.create(chat=chat, author_name="noa", text="x", created_at=now)
    Bookmark.objects.create(chat=chat, user=user)
    UsageDay.objects.filter(chat=chat).delete()
    UsageDay.objects.create(chat=chat, day=timezone.localdate(), model_calls=3, cost="1.5")
    SourceDocument.objects.create(
        name="menu.pdf", size=1, sha256=chat.pk.hex, chat_id=chat.pk, visibility="chat"
    )


def ended(chat: Chat, world: World) -> None:
    """The contact's conversation is over, and has its card."""
    now = timezone.now()
    session = ChatSession.objects.get(chat=chat)
    ChatSession.objects.filter(chat=chat).update(status="expired", expired_at=now)
    card_make(session_id=session.pk)


def test_undoing_a_merge_at_once_restores_both_exactly(
    admin_client: Client, world: World, dana: Chat, work: Chat, tmp_path: Path
) -> None:
    world.remember(OTHER_CLIENT, "I like tea")
    Memory.objects.filter(chat_id=work.pk, content="I like tea").update(pinned=True)
    user, now = User.objects.create_user("noa", is_staff=True), timezone.now()
    furnished(dana, user, standing="allowed")
    furnished(work, user, standing="blocked", opted_out_at=now)
    ChatPause.objects.create(chat=work)
    Snooze.objects.create(chat=work, since=now, until=now + timedelta(days=2))
    for chat in (dana, work):
        store_file(chat, world, tmp_path)
        ended(chat, world)
    last = Memory.objects.filter(chat_id=work.pk, document__isnull=False).latest("position")
    Memory.objects.filter(pk=last.pk).update(pinned=True)
    token = ApiToken.objects.create(
        name="shop", prefix="x", digest="x", scopes=["read"], chat_ids=[work.pk]
    )
    before = {chat.pk: everything(chat.pk) for chat in (dana, work)}
    vectors, files = MemoryEmbedding.objects.count(), SourceDocument.objects.count()
    merge(admin_client, dana, work)
    token.refresh_from_db()
    assert token.chat_ids == [dana.pk]
    assert SourceDocument.objects.count() == files - 1
    assert Memory.objects.get(chat_id=dana.pk, content="I like tea", status="active").pinned
    assert not Snooze.objects.exists()
    back = confirm(admin_client, undo(admin_client))
    assert back.pk == work.pk, "with the id that integrators know"
    for chat in (dana, work):
        assert everything(chat.pk) == before[chat.pk]
    token.refresh_from_db()
    assert token.chat_ids == [work.pk]
    assert not ContactMerge.objects.exists()
    assert MemoryEmbedding.objects.count() == vectors


def test_what_was_erased_or_reviewed_since_the_merge_does_not_come_back(
    admin_client: Client, world: World, dana: Chat, work: Chat, tmp_path: Path
) -> None:
    store_file(dana, world, tmp_path)
    store_file(work, world, tmp_path, name="plan of the town.txt")
    now = timezone.now()
    Snooze.objects.create(chat=work, since=now, until=now + timedelta(days=2))
    merge(admin_client, dana, work)
    world.forget("document", SourceDocument.objects.get().pk)
    record = ContactMerge.objects.get()
    # The name of the removed copy is erased with the file.
    assert "plan of the town" not in json.dumps([record.rows, record.gone, record.kept])
    reviewed = f"/admin/sessions_app/chat/{dana.pk}/review/"
    assert admin_client.post(reviewed, {"do": "reviewed"}).status_code == 302
    confirm(admin_client, undo(admin_client))
    assert not Snooze.objects.exists()
    assert not SourceDocument.objects.exists()
    assert not Memory.objects.filter(document__isnull=False).exists()


@pytest.mark.parametrize("what", ["staff uploaded", "its sender gave", "its message was erased"])
def test_a_file_of_both_comes_back_under_its_name_if_it_may(
    admin_client: Client, world: World, dana: Chat, work: Chat, tmp_path: Path, what: str
) -> None:
    store_file(dana, world, tmp_path)
    store_file(work, world, tmp_path, name="plan of the town.txt")
    message = work.messages.get(content="hello from work")
    of_work = SourceDocument.objects.filter(chat_id=work.pk)
    if what != "staff uploaded":
        message.media = {"filename": "folder/plan\u202e of  the town.txt"}
        message.save(update_fields=["media"])
        of_work.update(source_message_id=message.pk)
    merge(admin_client, dana, work)
    assert SourceDocument.objects.get().name == "guide.txt"
    if what == "its message was erased":
        world.forget("message", message.pk)
    confirm(admin_client, undo(admin_client))
    kept = SourceDocument.objects.get(chat_id=dana.pk)
    assert (kept.name, kept.copy_names) == ("guide.txt", {})
    names = [] if what == "its message was erased" else ["plan of the town.txt"]
    assert list(of_work.values_list("name", flat=True)) == names


def store_file(chat: Chat, world: World, folder: Path, name: str = "guide.txt") -> None:
    """A file of some passages that the contact sent."""
    chapters = (f"Chapter {n}. " + "A long walk through the town. " * 60 for n in range(3))
    with IncomingFile(folder, max_bytes=1_000_000) as file:
        file.write("\n\n".join(["The Eiffel Tower is in Paris.", *chapters]).encode())
        received = document_receive(
            file=file, name=name, folder=folder, visibility="chat", chat_id=chat.pk
        )
    read(received.document, folder, embedder=world.dependencies.embedder)


def test_what_was_said_since(admin_client: Client, world: World, dana: Chat, work: Chat) -> None:
    merge(admin_client, dana, work)
    world.say(CLIENT, "from home again")
    world.remember(OTHER_CLIENT, "I work on Mondays")
    world.say(CLIENT, "home once more")
    page = shown(admin_client, undo(admin_client))
    assert "I work on Mondays" in page
    assert "I like cake" in page
    assert "I like tea" not in page
    confirm(admin_client, undo(admin_client))
    texts = {
        chat.pk: [m.content for m in chat.messages.filter(role="user")] for chat in (dana, work)
    }
    of_dana = {"/remember I like tea", "hello", "from home again", "home once more"}
    assert set(texts[dana.pk]) == of_dana
    of_work = {"/remember I like cake", "hello from work", "/remember I work on Mondays"}
    assert set(texts[work.pk]) == of_work
    for chat in (dana, work):
        assert set(chat.messages.values_list("session__chat", flat=True)) == {chat.pk}
        assert chat.messages.filter(role="assistant").count() == len(texts[chat.pk])
        assert set(chat.turns.values_list("message__chat", flat=True)) == {chat.pk}
        for session in chat.sessions.all():
            assert session.total_tokens == sum(session.messages.values_list("tokens", flat=True))
    memories = Memory.objects.filter(chat_id=work.pk).values_list("content", flat=True)
    assert set(memories) == {"I like cake", "I work on Mondays"}


def test_any_address_can_be_split_off(admin_client: Client, world: World, dana: Chat) -> None:
    """Also one that no merge by staff has brought, such as a number that changed hands."""
    ChatAddress.objects.create(chat=dana, provider="cloud", address=STRANGER)
    ReviewedMark.objects.create(
        chat=dana,
        reviewed_at=timezone.now(),
        began_at=world.session(CLIENT).created_at,
        session_key=world.session(CLIENT).pk,
        order_num=1,
    )
    ChatAccess.objects.create(chat=dana, standing="allowed")
    world.summarizing(every=2)
    world.remember(STRANGER, "My cat is called Tom")
    world.say(STRANGER, "a stranger")
    session = ChatSession.objects.get(chat=dana)
    world.sum_up(STRANGER)
    assert SummarizationMetadata.objects.exists()
    page = shown(admin_client, split(dana, STRANGER))
    assert "Memories that go" in page
    assert "My cat is called Tom" in page
    gone = confirm(admin_client, split(dana, STRANGER), name="Stranger")
    assert gone.staff_name == "Stranger"
    assert gone.messages.filter(role="user").count() == 2
    assert gone.messages.count() == 4
    assert dana.messages.exclude(role="summary").count() == 4
    late = SummarizationMetadata.objects.filter(session=session, first_order__lte=8)
    assert not late.exclude(last_order__lt=5).exists(), "no summary of both is left"
    assert Memory.objects.get(chat_id=gone.pk).content == "My cat is called Tom"
    assert ReviewedMark.objects.filter(chat=gone).exists()
    assert not gone.access.standing, "nobody has allowed this one"
    assert ChatAccess.objects.get(chat=dana).standing == "allowed"
    world.say(STRANGER, "again")
    assert gone.sessions.filter(status="active").count() == 1


def test_one_address_must_stay_and_one_must_go(admin_client: Client, dana: Chat) -> None:
    assert "split/" not in shown(admin_client, f"/admin/contacts/{dana.pk}/")
    page = shown(admin_client, split(dana, CLIENT))
    assert "One address must stay" in page
    assert Chat.objects.count() == 2


def test_what_was_decided_since_is_of_both(admin_client: Client, dana: Chat, work: Chat) -> None:
    merge(admin_client, dana, work)
    ChatAccess.objects.update_or_create(chat=dana, defaults={"standing": "blocked"})
    ChatPause.objects.create(chat=dana)
    confirm(admin_client, undo(admin_client))
    for chat in (dana, work):
        assert ChatAccess.objects.get(chat=chat).standing == "blocked"
        assert ChatPause.objects.filter(chat=chat).exists()


def test_receipts_go_back_too(admin_client: Client, world: World, dana: Chat, work: Chat) -> None:
    world.forget("memory", Memory.objects.get(chat_id=work.pk).pk)
    merge(admin_client, dana, work)
    confirm(admin_client, undo(admin_client))
    assert ForgetReceipt.objects.get().chat_id == work.pk
    for chat in (dana, work):
        page = shown(admin_client, f"/admin/contacts/{chat.pk}/")
        assert page.count("A contact was split") == 1
        assert page.count("Two contacts were merged") == 1
    events = AuditEvent.objects.filter(action="chat.split").order_by("id")
    assert [event.details["undone"] for event in events] == [True, True]


def test_erasure_takes_the_record(
    admin_client: Client, world: World, dana: Chat, work: Chat
) -> None:
    merge(admin_client, dana, work)
    receipt = world.forget("chat", dana.pk)
    assert not ContactMerge.objects.exists()
    assert receipt.swept["sessions_app_contactmerge"] == 1


def test_what_rules_did_goes_back(admin_client: Client, dana: Chat, work: Chat) -> None:
    rule = Rule.objects.create(name="Greet", when="message")
    gone = Rule.objects.create(name="Gone", when="message")
    for chat, rule_id, event in (
        (dana, rule.pk, "both"),
        (dana, None, "dana"),
        (work, rule.pk, "both"),
        (work, None, "both"),
        (work, rule.pk, "work"),
        (work, gone.pk, "work"),
    ):
        RuleRun.objects.create(chat=chat, rule_id=rule_id, event=event, did="label")

    def runs() -> dict[Any, list[tuple[int | None, str, str]]]:
        values = ("rule", "event", "did")
        return {
            chat.pk: sorted(RuleRun.objects.filter(chat=chat).values_list(*values), key=str)
            for chat in (dana, work)
        }

    before = runs()
    merge(admin_client, dana, work)
    assert len(runs()[dana.pk]) == 5
    gone.delete()
    confirm(admin_client, undo(admin_client))
    before[work.pk] = [run for run in before[work.pk] if run[0] in (rule.pk, None)]
    assert runs() == before


def test_every_table_of_a_chat_is_merged_and_split() -> None:
    """Who adds a table with a chat thinks of merging, of undoing it and of splitting."""
    assert {each.related_model.__name__ for each in Chat._meta.related_objects} == {
        *("Assignment", "Bookmark", "BroadcastRecipient", "ChatAccess", "ChatActivity"),
        *("ChatAddress", "ChatLabel", "ChatMark"),
        *("ChatPause", "ChatSession", "ContactMerge", "InboundDelivery", "Message", "Note"),
        *("ReadMark", "ReviewedMark", "Snooze", "TranscriptBatch", "Turn", "UsageDay"),
    }
