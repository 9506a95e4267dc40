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
from memories_app.documents.read_document import document_store
from memories_app.models import Memory, MemoryEmbedding, SourceDocument
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.documents.sandbox import SandboxExtractor
from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.rest_kit.models import ApiToken
from sessions_app.cards.make_cards import card_make
from sessions_app.conversations.facade import Reader, epoch_read
from sessions_app.forgetting.execute import ForgetDependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import (
    Assignment,
    Bookmark,
    Chat,
    ChatAccess,
    ChatAddress,
    ChatLabel,
    ChatPause,
    ChatSession,
    ContactMerge,
    ForgetReceipt,
    Label,
    Message,
    Note,
    ReviewedMark,
    Snooze,
    SummarizationMetadata,
    Turn,
    UsageDay,
)
from tests.dashboard.staff import staff_with
from tests.dashboard.test_contact_merge import RIGHTS, merge, shown
from tests.forms import opened, stamped_form
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db
STRANGER = "15550100789@c.us"


@pytest.fixture(scope="module")
def both(module_rows: None) -> None:
    world = new_world()
    world.remember(CLIENT, "I like tea")
    world.say(CLIENT, "hello")
    party = Party(phone=OTHER_CLIENT.partition("@")[0], name="Noa")
    world.remember(OTHER_CLIENT, "I like cake")
    world.say(OTHER_CLIENT, "hello from work", party=party)


@pytest.fixture
def dana(both: None, world: World) -> Chat:
    return world.chat(CLIENT)


@pytest.fixture
def work(both: None, world: World) -> Chat:
    return world.chat(OTHER_CLIENT)


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
    by_chat = (
        ChatSession,
        Message,
        Turn,
        Note,
        ChatLabel,
        Assignment,
        ChatAccess,
        ChatPause,
        ReviewedMark,
        Snooze,
        UsageDay,
        Bookmark,
        ChatAddress,
    )
    by_key = (Memory, SourceDocument, MemoryCard, ForgetReceipt)
    rows = [list(Chat.objects.filter(pk=chat_id))]
    rows += [list(model._default_manager.filter(chat=chat_id).order_by("pk")) for model in by_chat]
    rows += [
        list(model._default_manager.filter(chat_id=chat_id).order_by("pk")) for model in by_key
    ]
    found = {}
    for each in rows:
        for row in json.loads(serializers.serialize("json", each)):
            fields = row["fields"]
            is_new = row["model"].partition(".")[2] in ("chatlabel", "bookmark", "usageday")
            for name in ("updated_at", "created_at" if is_new else ""):
                fields.pop(name, None)
            key = str(sorted(fields.items())) if is_new else str(row["pk"])
            found[f"{row['model']} {key}"] = fields
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
    admin_client: Client, world: World, dana: Chat, work: Chat
) -> None:
    world.remember(OTHER_CLIENT, "I like tea")
    user = User.objects.create_user("noa", is_staff=True)
    furnished(dana, user, standing="allowed")
    furnished(work, user, standing="blocked", opted_out_at=timezone.now())
    ChatPause.objects.create(chat=work)
    for chat in (dana, work):
        ended(chat, world)
    token = ApiToken.objects.create(
        name="shop", prefix="x", digest="x", scopes=["read"], chat_ids=[work.pk]
    )
    before = {chat.pk: everything(chat.pk) for chat in (dana, work)}
    merge(admin_client, dana, work)
    token.refresh_from_db()
    assert token.chat_ids == [dana.pk]
    back = confirm(admin_client, undo(admin_client))
    assert back.pk == work.pk, "with the id that integrators know"
    for chat in (dana, work):
        assert everything(chat.pk) == before[chat.pk]
    token.refresh_from_db()
    assert token.chat_ids == [work.pk]
    assert not ContactMerge.objects.exists()


def test_undoing_restores_a_file_of_both_a_snooze_and_a_pin(
    admin_client: Client, world: World, dana: Chat, work: Chat, tmp_path: Path
) -> None:
    world.remember(OTHER_CLIENT, "I like tea")
    Memory.objects.filter(chat_id=work.pk, content="I like tea").update(pinned=True)
    for chat in (dana, work):
        store_file(chat, world, tmp_path)
        ended(chat, world)
    last = Memory.objects.filter(chat_id=work.pk, document__isnull=False).latest("position")
    Memory.objects.filter(pk=last.pk).update(pinned=True)
    now = timezone.now()
    Snooze.objects.create(chat=work, since=now, until=now + timedelta(days=2))
    before = {chat.pk: everything(chat.pk) for chat in (dana, work)}
    vectors = MemoryEmbedding.objects.count()
    merge(admin_client, dana, work)
    assert SourceDocument.objects.count() == 1
    assert Memory.objects.get(chat_id=dana.pk, content="I like tea", status="active").pinned
    assert not Snooze.objects.exists()
    confirm(admin_client, undo(admin_client))
    for chat in (dana, work):
        assert everything(chat.pk) == before[chat.pk]
    assert MemoryEmbedding.objects.count() == vectors
    for person in (CLIENT, OTHER_CLIENT):
        assert "Paris" in world.seen_by_model(person, "Where is the Eiffel Tower?")


def test_what_was_erased_or_reviewed_since_the_merge_does_not_come_back(
    admin_client: Client, world: World, dana: Chat, work: Chat, tmp_path: Path
) -> None:
    for chat in (dana, work):
        store_file(chat, world, tmp_path)
    now = timezone.now()
    Snooze.objects.create(chat=work, since=now, until=now + timedelta(days=2))
    merge(admin_client, dana, work)
    dependencies = ForgetDependencies(world.dependencies.embedder, world.dependencies.chat_memory)
    key = SourceDocument.objects.get().pk
    object_forget(kind="document", object_id=key, dependencies=dependencies)
    reviewed = f"/admin/sessions_app/chat/{dana.pk}/review/"
    assert admin_client.post(reviewed, {"do": "reviewed"}).status_code == 302
    confirm(admin_client, undo(admin_client))
    assert not Snooze.objects.exists()
    assert not SourceDocument.objects.exists()
    assert not Memory.objects.filter(document__isnull=False).exists()


def test_a_file_whose_message_was_erased_since_does_not_come_back(
    admin_client: Client, world: World, dana: Chat, work: Chat, tmp_path: Path
) -> None:
    for chat in (dana, work):
        store_file(chat, world, tmp_path)
    said = work.messages.get(content="hello from work").pk
    SourceDocument.objects.filter(chat_id=work.pk).update(source_message_id=said)
    merge(admin_client, dana, work)
    dependencies = ForgetDependencies(world.dependencies.embedder, world.dependencies.chat_memory)
    object_forget(kind="message", object_id=said, dependencies=dependencies)
    confirm(admin_client, undo(admin_client))
    assert not SourceDocument.objects.filter(chat_id=work.pk).exists()
    assert SourceDocument.objects.filter(chat_id=dana.pk).count() == 1


def test_a_file_of_both_comes_back_under_the_name_that_its_sender_gave_it(
    admin_client: Client, world: World, dana: Chat, work: Chat, tmp_path: Path
) -> None:
    store_file(dana, world, tmp_path)
    store_file(work, world, tmp_path, name="plan of the town.txt")
    message = work.messages.get(content="hello from work")
    message.media = {"filename": "folder/plan\u202e of  the town.txt"}
    message.save(update_fields=["media"])
    sent = SourceDocument.objects.filter(chat_id=work.pk)
    sent.update(source_message_id=message.pk)
    merge(admin_client, dana, work)
    assert SourceDocument.objects.get().name == "guide.txt"
    confirm(admin_client, undo(admin_client))
    assert sent.get().name == "plan of the town.txt"
    assert SourceDocument.objects.get(chat_id=dana.pk).name == "guide.txt"


def test_a_file_of_both_that_staff_uploaded_comes_back_under_its_name(
    admin_client: Client, world: World, dana: Chat, work: Chat, tmp_path: Path
) -> None:
    store_file(dana, world, tmp_path)
    store_file(work, world, tmp_path, name="plan of the town.txt")
    merge(admin_client, dana, work)
    confirm(admin_client, undo(admin_client))
    for chat, name in ((dana, "guide.txt"), (work, "plan of the town.txt")):
        document = SourceDocument.objects.get(chat_id=chat.pk)
        assert (document.name, document.copy_names) == (name, {})


def test_the_name_of_a_removed_copy_is_erased_with_the_file(
    admin_client: Client, world: World, dana: Chat, work: Chat, tmp_path: Path
) -> None:
    store_file(dana, world, tmp_path)
    store_file(work, world, tmp_path, name="plan of the town.txt")
    merge(admin_client, dana, work)
    dependencies = ForgetDependencies(world.dependencies.embedder, world.dependencies.chat_memory)
    key = SourceDocument.objects.get().pk
    object_forget(kind="document", object_id=key, dependencies=dependencies)
    record = ContactMerge.objects.get()
    assert "plan of the town" not in json.dumps([record.rows, record.gone, record.kept])
    assert not SourceDocument.objects.exists()


def store_file(chat: Chat, world: World, folder: Path, name: str = "guide.txt") -> None:
    """A file of some passages that the contact sent."""
    chapters = (f"Chapter {n}. " + "A long walk through the town. " * 60 for n in range(3))
    with IncomingFile(folder, max_bytes=1_000_000) as file:
        file.write("\n\n".join(["The Eiffel Tower is in Paris.", *chapters]).encode())
        received = document_receive(
            file=file, name=name, folder=folder, visibility="chat", chat_id=chat.pk
        )
    document_store(
        document_id=received.document.pk,
        folder=folder,
        extractor=SandboxExtractor(),
        embedder=world.dependencies.embedder,
    )


def test_what_was_said_since_goes_by_its_address(
    admin_client: Client, world: World, dana: Chat, work: Chat
) -> None:
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
    assert set(texts[dana.pk]) == {
        "/remember I like tea",
        "hello",
        "from home again",
        "home once more",
    }
    assert set(texts[work.pk]) == {
        "/remember I like cake",
        "hello from work",
        "/remember I work on Mondays",
    }
    for chat in (dana, work):
        assert set(chat.messages.values_list("session__chat", flat=True)) == {chat.pk}
        assert chat.messages.filter(role="assistant").count() == len(texts[chat.pk])
        assert set(chat.turns.values_list("message__chat", flat=True)) == {chat.pk}
        for session in chat.sessions.all():
            assert session.total_tokens == sum(session.messages.values_list("tokens", flat=True))
    assert set(Memory.objects.filter(chat_id=work.pk).values_list("content", flat=True)) == {
        "I like cake",
        "I work on Mondays",
    }


def test_each_is_alone_again(admin_client: Client, world: World, dana: Chat, work: Chat) -> None:
    merge(admin_client, dana, work)
    world.say(OTHER_CLIENT, "the main address now")
    back = confirm(admin_client, undo(admin_client))
    dana.refresh_from_db()
    assert (dana.whatsapp_chat, dana.client_phone) == (CLIENT, "15550100123")
    assert (back.whatsapp_chat, back.client_name) == (OTHER_CLIENT, "Noa")
    seen = world.seen_by_model(OTHER_CLIENT, "Do I like tea?")
    assert "I like tea" not in seen.replace("Do I like tea?", "")
    assert "I like cake" not in world.seen_by_model(CLIENT, "What do I like?")
    assert world.provider.sent[-1].to.whatsapp_chat == CLIENT
    assert Chat.objects.count() == 2


def test_any_address_can_be_split_off_with_its_messages(
    admin_client: Client, world: World, dana: Chat
) -> None:
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
    choose = f"/admin/contacts/{dana.pk}/split/"
    assert choose in shown(admin_client, f"/admin/contacts/{dana.pk}/")
    assert 'name="address"' in shown(admin_client, choose)
    page = shown(admin_client, split(dana, STRANGER))
    assert "Memories that go" in page
    assert "My cat is called Tom" in page
    gone = confirm(admin_client, split(dana, STRANGER), name="Stranger")
    assert gone.staff_name == "Stranger"
    assert gone.messages.filter(role="user").count() == 2
    assert gone.messages.count() == 4
    assert dana.messages.exclude(role="summary").count() == 4
    assert (
        not SummarizationMetadata.objects.filter(session=session, first_order__lte=8)
        .exclude(last_order__lt=5)
        .exists()
    ), "no summary of both is left"
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


def test_what_changed_since_the_preview_is_shown_again(
    admin_client: Client, world: World, dana: Chat, work: Chat
) -> None:
    merge(admin_client, dana, work)
    address = undo(admin_client)
    form = opened(admin_client, address)
    world.say(OTHER_CLIENT, "one more")
    answer = admin_client.post(address, form)
    assert "changed meanwhile" in answer.content.decode()
    assert Chat.objects.count() == 1
    again = stamped_form(answer.content.decode())
    assert admin_client.post(address, again).status_code == 302
    assert admin_client.get(address).status_code == 404


def test_what_staff_decided_since_holds_for_both(
    admin_client: Client, dana: Chat, work: Chat
) -> None:
    merge(admin_client, dana, work)
    ChatAccess.objects.update_or_create(chat=dana, defaults={"standing": "blocked"})
    ChatPause.objects.create(chat=dana)
    confirm(admin_client, undo(admin_client))
    for chat in (dana, work):
        assert ChatAccess.objects.get(chat=chat).standing == "blocked"
        assert ChatPause.objects.filter(chat=chat).exists()


def test_splitting_off_all_that_a_merge_brought_undoes_it(
    admin_client: Client, dana: Chat, work: Chat
) -> None:
    Note.objects.create(chat=work, author_name="noa", text="x", created_at=timezone.now())
    merge(admin_client, dana, work)
    gone = confirm(admin_client, split(dana, OTHER_CLIENT))
    assert gone.pk == work.pk
    assert gone.notes.count() == 1


def test_receipts_and_the_trail_go_back(
    admin_client: Client, world: World, dana: Chat, work: Chat
) -> None:
    dependencies = ForgetDependencies(world.dependencies.embedder, world.dependencies.chat_memory)
    key = Memory.objects.get(chat_id=work.pk).pk
    object_forget(kind="memory", object_id=key, dependencies=dependencies)
    merge(admin_client, dana, work)
    confirm(admin_client, undo(admin_client))
    assert ForgetReceipt.objects.get().chat_id == work.pk
    for chat in (dana, work):
        page = shown(admin_client, f"/admin/contacts/{chat.pk}/")
        assert page.count("A contact was split") == 1
        assert page.count("Two contacts were merged") == 1
    events = AuditEvent.objects.filter(action="chat.split").order_by("id")
    assert [event.details["undone"] for event in events] == [True, True]


def test_an_answer_from_before_the_split_is_not_stored(
    admin_client: Client, dana: Chat, work: Chat
) -> None:
    merge(admin_client, dana, work)
    before = epoch_read(Reader(dana.pk)).count
    confirm(admin_client, undo(admin_client))
    assert epoch_read(Reader(dana.pk)).count == before + 1


def test_erasing_the_merged_contact_erases_the_record(
    admin_client: Client, world: World, dana: Chat, work: Chat
) -> None:
    merge(admin_client, dana, work)
    dependencies = ForgetDependencies(world.dependencies.embedder, world.dependencies.chat_memory)
    receipt = object_forget(kind="chat", object_id=dana.pk, dependencies=dependencies)
    assert not ContactMerge.objects.exists()
    assert receipt.swept["sessions_app_contactmerge"] == 1


def test_every_table_of_a_chat_is_merged_and_split() -> None:
    """Who adds a table with a chat thinks of merging, of undoing it and of splitting."""
    assert {each.related_model.__name__ for each in Chat._meta.related_objects} == {
        *("Assignment", "Bookmark", "ChatAccess", "ChatActivity", "ChatAddress", "ChatLabel"),
        *("ChatPause", "ChatSession", "ContactMerge", "InboundDelivery", "Message", "Note"),
        *("ReadMark", "ReviewedMark", "Snooze", "TranscriptBatch", "Turn", "UsageDay"),
    }


def test_it_needs_the_right_to_merge(admin_client: Client, dana: Chat, work: Chat) -> None:
    merge(admin_client, dana, work)
    reader = staff_with(*RIGHTS[:3])
    page = shown(reader, f"/admin/contacts/{dana.pk}/")
    for address in (undo(reader), split(dana, CLIENT)):
        assert reader.get(address).status_code == 403
        assert reader.post(address, {}).status_code == 403
        assert address.partition("?")[0] not in page
