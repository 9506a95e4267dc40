"""What staff do with conversations among themselves: bookmarks, labels, assignments, notes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.inbox.labels import bookmark_set, chats_assign, chats_label, chats_unlabel
from sessions_app.inbox.move_markers import ReviewError, chats_review, chats_snooze
from sessions_app.inbox.notes import note_delete, note_edit, note_write
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import (
    Assignment,
    Bookmark,
    ChatActivity,
    ChatLabel,
    Label,
    Note,
    ReadMark,
    ReviewedMark,
    Snooze,
)
from tests.sessions.reviewing import STAFF, actions, inbox, look, names, revoke, row_of
from tests.threads import at_once
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db


# Bookmarks, labels, assignment


def test_a_bookmark_is_ones_own_and_set_once(world: World, dana: User, ron: User) -> None:
    world.say(CLIENT, "one")
    chat, message = world.chat(CLIENT), world.messages(CLIENT)[0]
    for _ in range(2):
        bookmark_set(user=dana, chat_id=chat.pk, actor=STAFF, wanted=True)
        bookmark_set(user=dana, chat_id=chat.pk, actor=STAFF, wanted=True, message_id=message.pk)
    assert Bookmark.objects.count() == 2
    assert row_of(dana).bookmarked
    assert not row_of(ron).bookmarked
    assert actions() == ["chat.bookmark", "chat.bookmark"]
    bookmark_set(user=dana, chat_id=chat.pk, actor=STAFF, wanted=False)
    assert Bookmark.objects.get().message == message
    world.say(OTHER_CLIENT, "two")
    with pytest.raises(ReviewError):
        bookmark_set(
            user=dana,
            chat_id=world.chat(OTHER_CLIENT).pk,
            actor=STAFF,
            wanted=True,
            message_id=message.pk,
        )


def test_labels_are_put_on_and_taken_off(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    urgent = Label.objects.create(name="Urgent", colour="red")
    both = [world.chat(CLIENT).pk, world.chat(OTHER_CLIENT).pk]
    assert chats_label(chat_ids=both[:1], label=urgent, actor=STAFF) == 1
    assert chats_label(chat_ids=both, label=urgent, actor=STAFF) == 1
    assert names(dana, label=urgent.pk) == [OTHER_CLIENT, CLIENT]
    assert list(row_of(dana).labels) == [urgent]
    assert chats_unlabel(chat_ids=both, label=urgent, actor=STAFF) == 2
    assert names(dana, label=urgent.pk) == []
    assert actions() == ["chat.label"] * 2 + ["chat.unlabel"] * 2


def test_one_looks_after_a_chat(world: World, dana: User, ron: User) -> None:
    world.say(CLIENT, "one")
    chat = world.chat(CLIENT)
    assert chats_assign(chat_ids=[chat.pk], assignee=dana, actor=STAFF).changed == 1
    assert chats_assign(chat_ids=[chat.pk], assignee=dana, actor=STAFF).changed == 0
    assert chats_assign(chat_ids=[chat.pk], assignee=ron, actor=STAFF).changed == 1
    assert row_of(dana).assignee == ron
    assert names(dana, assigned=str(ron.pk)) == [CLIENT]
    assert chats_assign(chat_ids=[chat.pk], assignee=None, actor=STAFF).changed == 1
    assert row_of(dana).assignee is None
    person = User.objects.create_user("visitor")
    with pytest.raises(ReviewError):
        chats_assign(chat_ids=[chat.pk], assignee=person, actor=STAFF)


# Notes


def test_a_note_is_its_authors(world: World, dana: User, ron: User) -> None:
    world.say(CLIENT, "one")
    chat = world.chat(CLIENT)
    note = note_write(user=dana, chat_id=chat.pk, text=" call back \r\n", actor=STAFF)
    assert note.text == "call back"
    with pytest.raises(ReviewError, match="Only who wrote"):
        note_edit(note_id=note.pk, user=ron, text="mine", actor=STAFF)
    with pytest.raises(ReviewError, match="Only who wrote"):
        note_delete(note_id=note.pk, user=ron, actor=STAFF)
    note_edit(note_id=note.pk, user=dana, text="called back", actor=STAFF)
    note_edit(note_id=note.pk, user=dana, text="called back", actor=STAFF)
    note.refresh_from_db()
    assert note.text == "called back"
    assert note.edited_at is not None
    assert note_delete(note_id=note.pk, user=dana, actor=STAFF) == chat.pk
    assert not Note.objects.exists()
    assert actions() == ["note.write", "note.edit", "note.delete"]
    assert "call" not in str(list(AuditEvent.objects.values_list("details", flat=True)))


@pytest.mark.parametrize("text", ["", " \n", "\x00", "x" * 10_001])
def test_a_text_that_makes_no_note_is_refused(world: World, dana: User, text: str) -> None:
    world.say(CLIENT, "one")
    with pytest.raises(ReviewError):
        note_write(user=dana, chat_id=world.chat(CLIENT).pk, text=text, actor=STAFF)


def test_a_note_outlives_its_authors_account(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    note_write(user=dana, chat_id=world.chat(CLIENT).pk, text="call back", actor=STAFF)
    dana.delete()
    assert Note.objects.get().author_name == "dana"


def test_no_note_reaches_a_model_or_whatsapp(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    chat = world.chat(CLIENT)
    note_write(user=dana, chat_id=chat.pk, text="owes us zebras", actor=STAFF)
    assert "zebras" not in world.seen_by_model(CLIENT, "what about the zebra?").replace(
        "what about the zebra?", ""
    )


# What staff did with conversations stays right while people write, take back, are merged and are


# Forgetting


def test_a_person_who_is_erased_takes_notes_and_marks_along(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    chat, message = world.chat(CLIENT), world.messages(CLIENT)[0]
    note_write(user=dana, chat_id=chat.pk, text="call back", actor=STAFF)
    note_write(user=dana, chat_id=chat.pk, text="here", actor=STAFF, message_id=message.pk)
    bookmark_set(user=dana, chat_id=chat.pk, actor=STAFF, wanted=True)
    chats_label(chat_ids=[chat.pk], label=Label.objects.create(name="Urgent"), actor=STAFF)
    chats_assign(chat_ids=[chat.pk], assignee=dana, actor=STAFF)
    chats_review(user=dana, chat_ids=[chat.pk], actor=STAFF)
    later = timezone.now() + timedelta(hours=1)
    chats_snooze(user=dana, chat_ids=[chat.pk], until=later, actor=STAFF)
    look(dana, world)
    receipt = world.forget("chat", chat.pk)
    for model in (Note, Bookmark, ChatLabel, Assignment, ReviewedMark, ReadMark, Snooze):
        assert not model._default_manager.exists(), model
        assert receipt.swept[model._meta.db_table] == (2 if model is Note else 1)
    assert not ChatActivity.objects.exists()


def test_a_forgotten_message_is_cut_out_of_notes(world: World, dana: User) -> None:
    world.say(CLIENT, "my door code is 4711 and the dog bites")
    world.say(CLIENT, "thank you")
    chat, message = world.chat(CLIENT), world.messages(CLIENT)[0]
    note_write(user=dana, chat_id=chat.pk, text="on it", actor=STAFF, message_id=message.pk)
    quoting = "He wrote: my door code is 4711 and the dog bites.\nCall him."
    note_write(user=dana, chat_id=chat.pk, text=quoting, actor=STAFF)
    world.say(OTHER_CLIENT, "hello")
    other = world.chat(OTHER_CLIENT)
    note_write(user=dana, chat_id=other.pk, text=quoting, actor=STAFF)
    receipt = world.forget("message", message.pk)
    assert Note.objects.get(chat=chat).text == "[forgotten]\nCall him."
    # In the other chat nobody was shown it.
    assert Note.objects.get(chat=other).text == quoting
    assert receipt.swept["sessions_app_note"] == 2


def test_what_a_person_takes_back_is_cut_out_of_notes(world: World, dana: User) -> None:
    world.say(CLIENT, "my door code is 4711 and the dog bites")
    chat = world.chat(CLIENT)
    text = "Note: my door code is 4711 and the dog bites\nCall him."
    note_write(user=dana, chat_id=chat.pk, text=text, actor=STAFF)
    revoke(world, world.messages(CLIENT)[0])
    assert "4711" not in Note.objects.get().text
    assert "Call him." in Note.objects.get().text


def test_what_is_forgotten_or_deleted_leaves_the_list_right(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    world.receive(message_from(CLIENT, "three"))
    assert names(dana) == [CLIENT, OTHER_CLIENT]
    world.forget("message", world.messages(CLIENT)[-1].pk)
    assert names(dana) == [OTHER_CLIENT, CLIENT]
    row = row_of(dana)
    assert row.last is not None
    assert row.last.content == "answer to: one"
    assert row.unread == 1


# Merging


def test_two_chats_that_become_one_keep_what_staff_did(world: World, dana: User, ron: User) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    old, young = world.chat(CLIENT), world.chat(OTHER_CLIENT)
    urgent, paid = Label.objects.create(name="Urgent"), Label.objects.create(name="Paid")
    for chat in (old, young):
        note_write(user=dana, chat_id=chat.pk, text=f"on {chat.pk}", actor=STAFF)
        bookmark_set(user=dana, chat_id=chat.pk, actor=STAFF, wanted=True)
        chats_label(chat_ids=[chat.pk], label=urgent, actor=STAFF)
    chats_label(chat_ids=[young.pk], label=paid, actor=STAFF)
    chats_assign(chat_ids=[old.pk], assignee=dana, actor=STAFF)
    chats_assign(chat_ids=[young.pk], assignee=ron, actor=STAFF)
    chats_review(user=dana, chat_ids=[old.pk, young.pk], actor=STAFF)
    look(dana, world)
    look(dana, world, OTHER_CLIENT)
    last_at = ChatActivity.objects.get(chat=young).last_at
    with transaction.atomic():
        chat_merge(old, young)
    (row,) = inbox(dana)
    assert Note.objects.filter(chat=old).count() == 2
    assert Bookmark.objects.count() == 1
    assert {label.name for label in row.labels} == {"Urgent", "Paid"}
    assert row.assignee == ron
    assert row.reviewed
    assert row.unread == 0
    assert ChatActivity.objects.get().last_at == last_at


def test_a_merged_conversation_is_not_snoozed(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    old, young = world.chat(CLIENT), world.chat(OTHER_CLIENT)
    later = timezone.now() + timedelta(hours=1)
    chats_snooze(user=dana, chat_ids=[old.pk, young.pk], until=later, actor=STAFF)
    assert names(dana) == []
    with transaction.atomic():
        chat_merge(old, young)
    assert len(names(dana)) == 1


def test_what_was_new_in_either_chat_stays_new(world: World, dana: User, ron: User) -> None:
    world.say(CLIENT, "one")
    world.say(CLIENT, "two")
    world.say(OTHER_CLIENT, "three")
    old, young = world.chat(CLIENT), world.chat(OTHER_CLIENT)
    chats_review(user=dana, chat_ids=[old.pk], actor=STAFF)
    look(dana, world)
    look(ron, world, OTHER_CLIENT)
    with transaction.atomic():
        chat_merge(old, young)
    assert row_of(dana).unread == 1
    assert row_of(ron).unread == 3
    assert not row_of(dana).reviewed


@pytest.mark.django_db(transaction=True)
def test_the_list_is_right_whoever_writes_at_once(world: World, dana: User) -> None:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "hello")
    events = [
        message_from(chat, f"message {number}")
        for number in range(6)
        for chat in (CLIENT, OTHER_CLIENT)
    ]
    at_once(*[lambda event=event: world.receive(event) for event in events])
    for chat in (CLIENT, OTHER_CLIENT):
        newest = max(message.received_at for message in world.messages(chat))
        assert ChatActivity.objects.get(chat=world.chat(chat)).last_at == newest
        assert row_of(dana, chat).unread == 7


@pytest.mark.django_db(transaction=True)
def test_the_list_is_right_while_messages_are_forgotten(world: World, dana: User) -> None:
    for number in range(6):
        world.receive(message_from(CLIENT, f"the code of door {number} is {number * 1117}"))
    doomed = [message.pk for message in world.messages(CLIENT)][3:]
    fresh = [message_from(CLIENT, f"another thing {number}") for number in range(4)]

    def forget() -> None:
        for key in doomed:
            world.forget("message", key)

    at_once(forget, *[lambda event=event: world.receive(event) for event in fresh])
    newest = max(message.received_at for message in world.messages(CLIENT))
    assert ChatActivity.objects.get().last_at == newest
    assert row_of(dana).unread == len(world.messages(CLIENT)) == 7


@pytest.mark.django_db(transaction=True)
def test_two_who_do_the_same_at_once_do_it_once(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    chat = world.chat(CLIENT)
    urgent = Label.objects.create(name="Urgent")
    at_once(
        *[
            work
            for _ in range(3)
            for work in (
                lambda: bookmark_set(user=dana, chat_id=chat.pk, actor=STAFF, wanted=True),
                lambda: chats_label(chat_ids=[chat.pk], label=urgent, actor=STAFF),
                lambda: chats_assign(chat_ids=[chat.pk], assignee=dana, actor=STAFF),
                lambda: chats_review(user=dana, chat_ids=[chat.pk], actor=STAFF),
                lambda: look(dana, world),
            )
        ]
    )
    for model in (Bookmark, ChatLabel, Assignment, ReviewedMark, ReadMark):
        assert model._default_manager.count() == 1, model
    assert actions().count("chat.bookmark") == 1
    assert actions().count("chat.label") == 1
    assert actions().count("chat.assign") == 1
