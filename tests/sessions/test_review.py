"""What staff do with conversations among themselves: bookmarks, labels, assignments, notes."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.inbox.labels import (
    bookmark_set,
    chats_assign,
    chats_label,
    chats_unlabel,
)
from sessions_app.inbox.move_markers import ReviewError
from sessions_app.inbox.notes import note_delete, note_edit, note_write
from sessions_app.models import Bookmark, Label, Note
from tests.sessions.reviewing import STAFF, actions, names, row_of
from tests.world import CLIENT, OTHER_CLIENT, World

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
