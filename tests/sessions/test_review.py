"""What staff do with conversations among themselves, and that it stays right while people write,
take back, are merged and are forgotten."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.audit.events import Actor
from memoryproject.audit.models import AuditEvent
from memoryproject.integrations.whatsapp.events import MessageRevoked
from sessions_app.inbox import Row, Wanted, chats_wanted, inbox_rows
from sessions_app.models import (
    Assignment,
    Bookmark,
    Chat,
    ChatActivity,
    ChatLabel,
    Label,
    Message,
    Note,
    ReadMark,
    ReviewedMark,
    Turn,
)
from sessions_app.said_search import said_newest, snippet_of
from sessions_app.services.forget.carry_out import ForgetTools
from sessions_app.services.forget.kinds import chat_forget, memory_forget, message_forget
from sessions_app.services.merge import chat_merge
from sessions_app.services.review.errors import ReviewError
from sessions_app.services.review.marks import (
    chat_look,
    chats_mark_read,
    chats_mark_unread,
    chats_review,
    chats_unreview,
)
from sessions_app.services.review.notes import note_delete, note_edit, note_write
from sessions_app.services.review.sorting import (
    bookmark_set,
    chats_assign,
    chats_label,
    chats_unlabel,
)
from sessions_app.timeline import Place
from tests.world import CLIENT, NUMBER_ID, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
STAFF = Actor("staff", "dana")


@pytest.fixture
def dana(db: None) -> User:
    return User.objects.create_user("dana", is_staff=True)


@pytest.fixture
def ron(db: None) -> User:
    return User.objects.create_user("ron", is_staff=True)


def inbox(user: User, **wanted: Any) -> list[Row]:
    chats = chats_wanted(Wanted(**wanted), user, memory_default=True)
    return inbox_rows(list(chats), user)


def names(user: User, **wanted: Any) -> list[str]:
    return [row.chat.whatsapp_chat for row in inbox(user, **wanted)]


def row_of(user: User, whatsapp_chat: str = CLIENT) -> Row:
    (row,) = [row for row in inbox(user) if row.chat.whatsapp_chat == whatsapp_chat]
    return row


def look(user: User, world: World, whatsapp_chat: str = CLIENT) -> None:
    """See everything that there is."""
    last = world.messages(whatsapp_chat)[-1]
    place = Place(last.session.created_at, last.session_id, last.order_num)
    chat_look(user=user, chat_id=last.chat_id, place=place)


def tools(world: World) -> ForgetTools:
    return ForgetTools(embedder=world.tools.embedder, chat_memory=world.rules.chat_memory)


def actions() -> list[str]:
    events = AuditEvent.objects.filter(actor="dana").order_by("id")
    return list(events.values_list("action", flat=True))


def revoke(world: World, message: Message) -> None:
    world.receive(
        MessageRevoked(
            provider="cloud",
            number_id=NUMBER_ID,
            party=message_from(CLIENT, "").party,
            delivery_key=f"revoke {message.pk}",
            original_id=message.provider_message_id or "",
            timestamp=timezone.now(),
        )
    )


# The list


def test_the_chat_in_which_something_was_said_last_comes_first(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    assert names(dana) == [OTHER_CLIENT, CLIENT]
    world.say(CLIENT, "three")
    assert names(dana) == [CLIENT, OTHER_CLIENT]
    last = row_of(dana).last
    assert last is not None
    assert last.content == "answer to: three"


def test_a_summary_is_nothing_that_was_said(world: World, dana: User) -> None:
    world.summarizing(every=2)
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    before = ChatActivity.objects.get(chat=world.chat(CLIENT)).last_at
    assert world.sum_up(CLIENT) == 1
    assert Message.objects.filter(role="summary").exists()
    assert ChatActivity.objects.get(chat=world.chat(CLIENT)).last_at == before
    last = row_of(dana).last
    assert last is not None
    assert last.role == "assistant"


def test_unread_is_what_the_person_said_since_my_own_last_look(
    world: World, dana: User, ron: User
) -> None:
    world.say(CLIENT, "one")
    world.say(CLIENT, "two")
    assert row_of(dana).unread == 2
    look(dana, world)
    assert row_of(dana).unread == 0
    assert row_of(ron).unread == 2
    world.say(CLIENT, "/reset")
    world.say(CLIENT, "three")
    assert row_of(dana).unread == 2
    assert names(dana, unread=True) == [CLIENT]
    look(dana, world)
    assert names(dana, unread=True) == []
    assert names(ron, unread=True) == [CLIENT]


def test_a_look_at_an_old_page_takes_nothing_back(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    first = world.messages(CLIENT)[0]
    old = Place(first.session.created_at, first.session_id, first.order_num)
    world.say(CLIENT, "two")
    look(dana, world)
    chat_look(user=dana, chat_id=first.chat_id, place=old)
    assert row_of(dana).unread == 0


def test_a_chat_is_marked_unread_at_the_last_thing_its_person_said(
    world: World, dana: User
) -> None:
    world.say(CLIENT, "one")
    world.say(CLIENT, "two")
    chat = world.chat(CLIENT)
    chats_mark_read(user=dana, chat_ids=[chat.pk], actor=STAFF)
    assert row_of(dana).unread == 0
    chats_mark_unread(user=dana, chat_ids=[chat.pk], actor=STAFF)
    assert row_of(dana).unread == 1
    assert actions() == ["chat.mark_read", "chat.mark_unread"]


def test_new_messages_end_a_review(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    chat = world.chat(CLIENT)
    assert not row_of(dana).reviewed
    assert names(dana, unreviewed=True) == [CLIENT]
    chats_review(user=dana, chat_ids=[chat.pk], actor=STAFF)
    assert row_of(dana).reviewed
    assert names(dana, unreviewed=True) == []
    world.say(CLIENT, "two")
    assert not row_of(dana).reviewed
    assert names(dana, unreviewed=True) == [CLIENT]
    chats_review(user=dana, chat_ids=[chat.pk], actor=STAFF)
    chats_unreview(chat_ids=[chat.pk], actor=STAFF)
    assert not row_of(dana).reviewed
    assert actions() == ["chat.review", "chat.review", "chat.unreview"]


def test_what_came_in_while_it_was_reviewed_is_not_reviewed(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    seen = world.messages(CLIENT)[-1]
    world.say(CLIENT, "meanwhile")
    chats_review(user=dana, chat_ids=[seen.chat_id], actor=STAFF, seen={seen.chat_id: seen.pk})
    assert not row_of(dana).reviewed
    assert ReviewedMark.objects.get().order_num == seen.order_num


def test_a_review_up_to_a_message_that_is_gone_is_refused(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    seen = world.messages(CLIENT)[-1]
    key = seen.pk
    seen.delete()
    with pytest.raises(ReviewError, match="look at it again"):
        chats_review(user=dana, chat_ids=[seen.chat_id], actor=STAFF, seen={seen.chat_id: key})
    assert not ReviewedMark.objects.exists()


def test_a_message_of_another_chat_ends_no_review_here(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    here, elsewhere = world.chat(CLIENT).pk, world.messages(OTHER_CLIENT)[-1].pk
    with pytest.raises(ReviewError):
        chats_review(user=dana, chat_ids=[here], actor=STAFF, seen={here: elsewhere})


def test_wrong_turns_are_told_until_somebody_reviews_them(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    Turn.objects.filter(chat=world.chat(CLIENT)).update(state="failed", finished_at=timezone.now())
    assert row_of(dana).failed == 1
    assert names(dana, failed=True) == [CLIENT]
    chats_review(user=dana, chat_ids=[world.chat(CLIENT).pk], actor=STAFF)
    assert row_of(dana).failed == 0
    assert names(dana, failed=True) == []
    later = timezone.now() + timedelta(minutes=1)
    Turn.objects.filter(chat=world.chat(CLIENT)).update(state="unconfirmed", finished_at=later)
    assert row_of(dana).unconfirmed == 1


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"query": "0123"}, [CLIENT]),
        ({"query": "+1 555-010-0456"}, [OTHER_CLIENT]),
        ({"query": "test us"}, [OTHER_CLIENT, CLIENT]),
        ({"query": "nobody"}, []),
        ({"provider": "green"}, []),
        ({"provider": "cloud"}, [OTHER_CLIENT, CLIENT]),
        ({"kind": "group"}, []),
        ({"kind": "person"}, [OTHER_CLIENT, CLIENT]),
        ({"memory": "off"}, [OTHER_CLIENT]),
        ({"memory": "on"}, [CLIENT]),
        ({"assigned": "nobody"}, [OTHER_CLIENT]),
        ({"assigned": "somebody"}, [CLIENT]),
        ({"assigned": "me"}, [CLIENT]),
        ({"bookmarked": True}, [OTHER_CLIENT]),
        ({"unread": True, "assigned": "me"}, [CLIENT]),
    ],
)
def test_the_list_is_narrowed(
    world: World, dana: User, wanted: dict[str, Any], found: list[str]
) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    one, other = world.chat(CLIENT), world.chat(OTHER_CLIENT)
    Chat.objects.filter(pk=other.pk).update(memory_enabled=False)
    chats_assign(chat_ids=[one.pk], assignee=dana, actor=STAFF)
    bookmark_set(user=dana, chat_id=other.pk, actor=STAFF, wanted=True)
    assert names(dana, **wanted) == found


# Search


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("מה הקוד לדלת הכניסה?", "דלת"),
        ("מה הקוד לדלת הכניסה?", "הדלת"),
        ("The dishwashers are leaking", "dishwasher leaks"),
        ("Wo ist der Schlüssel?", "schlüssel"),
        ("Где ключ?", "ключ"),
        ("مفتاح الباب", "مفتاح"),
    ],
)
def test_words_are_found_in_any_language(world: World, said: str, asked: str) -> None:
    world.receive(message_from(CLIENT, said), message_from(OTHER_CLIENT, "nothing of it"))
    (found,) = said_newest(Message.objects.all(), asked, 0, 10)
    assert found.content == said
    assert snippet_of(found.content, asked).hit


def test_a_snippet_stands_around_the_word(world: World) -> None:
    content = "x " * 200 + "the dishwasher leaks" + " y" * 200
    found = snippet_of(content, "dishwasher")
    assert found.before.endswith("x the ")
    assert found.before.startswith("…")
    assert found.hit == "dishwasher"
    assert found.after.startswith(" leaks")
    assert len(found.before + found.hit + found.after) < 300


def test_revoked_messages_are_not_found(world: World) -> None:
    world.receive(message_from(CLIENT, "the dishwasher leaks"))
    revoke(world, world.messages(CLIENT)[0])
    assert said_newest(Message.objects.all(), "dishwasher", 0, 10) == []
    assert said_newest(Message.objects.all(), "?!", 0, 10) == []


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
    assert chats_assign(chat_ids=[chat.pk], assignee=dana, actor=STAFF) == 1
    assert chats_assign(chat_ids=[chat.pk], assignee=dana, actor=STAFF) == 0
    assert chats_assign(chat_ids=[chat.pk], assignee=ron, actor=STAFF) == 1
    assert row_of(dana).assignee == ron
    assert names(dana, assigned=str(ron.pk)) == [CLIENT]
    assert chats_assign(chat_ids=[chat.pk], assignee=None, actor=STAFF) == 1
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
    look(dana, world)
    receipt = chat_forget(chat_id=chat.pk, tools=tools(world))
    for model in (Note, Bookmark, ChatLabel, Assignment, ReviewedMark, ReadMark):
        assert not model._default_manager.exists(), model
        assert receipt.swept[model._meta.db_table] == (2 if model is Note else 1)
    assert not ChatActivity.objects.exists()


def test_a_forgotten_message_takes_its_notes_along_and_is_cut_out_of_others(
    world: World, dana: User
) -> None:
    world.say(CLIENT, "my door code is 4711 and the dog bites")
    world.say(CLIENT, "thank you")
    chat, message = world.chat(CLIENT), world.messages(CLIENT)[0]
    note_write(user=dana, chat_id=chat.pk, text="on it", actor=STAFF, message_id=message.pk)
    quoting = "He wrote: my door code is 4711 and the dog bites.\nCall him."
    note_write(user=dana, chat_id=chat.pk, text=quoting, actor=STAFF)
    world.say(OTHER_CLIENT, "hello")
    other = world.chat(OTHER_CLIENT)
    note_write(user=dana, chat_id=other.pk, text=quoting, actor=STAFF)
    receipt = message_forget(message_id=message.pk, tools=tools(world))
    assert sorted(Note.objects.values_list("text", flat=True)) == ["[forgotten]\nCall him."] * 2
    assert receipt.swept["sessions_app_note"] == 3


def test_a_forgotten_memory_is_cut_out_of_notes(world: World, dana: User) -> None:
    world.remember(CLIENT, "the alarm is switched off with 9962")
    chat = world.chat(CLIENT)
    note_write(user=dana, chat_id=chat.pk, text="alarm switched off with 9962!", actor=STAFF)
    memory_forget(memory_id=Memory.objects.get().pk, tools=tools(world))
    assert Note.objects.get().text == "[forgotten]"


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
    message_forget(message_id=world.messages(CLIENT)[-1].pk, tools=tools(world))
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


def test_what_was_new_in_either_chat_is_new_in_the_merged_one(
    world: World, dana: User, ron: User
) -> None:
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


# At once


def in_threads(*work: Any) -> None:
    barrier = threading.Barrier(len(work))
    errors: list[BaseException] = []

    def run(one: Any) -> None:
        barrier.wait()
        try:
            one()
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[one]) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.django_db(transaction=True)
def test_the_list_is_right_whoever_writes_at_once(world: World, dana: User) -> None:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "hello")
    events = [
        message_from(chat, f"message {number}")
        for number in range(6)
        for chat in (CLIENT, OTHER_CLIENT)
    ]
    in_threads(*[lambda event=event: world.receive(event) for event in events])
    for chat in (CLIENT, OTHER_CLIENT):
        newest = max(message.received_at for message in world.messages(chat))
        assert ChatActivity.objects.get(chat=world.chat(chat)).last_at == newest
        assert row_of(dana, chat).unread == 7


@pytest.mark.django_db(transaction=True)
def test_the_list_is_right_when_people_write_while_others_are_forgotten(
    world: World, dana: User
) -> None:
    for number in range(6):
        world.receive(message_from(CLIENT, f"the code of door {number} is {number * 1117}"))
    doomed = [message.pk for message in world.messages(CLIENT)][3:]
    fresh = [message_from(CLIENT, f"another thing {number}") for number in range(4)]

    def forget() -> None:
        for key in doomed:
            message_forget(message_id=key, tools=tools(world))

    in_threads(forget, *[lambda event=event: world.receive(event) for event in fresh])
    newest = max(message.received_at for message in world.messages(CLIENT))
    assert ChatActivity.objects.get().last_at == newest
    assert row_of(dana).unread == len(world.messages(CLIENT)) == 7


@pytest.mark.django_db(transaction=True)
def test_two_who_do_the_same_at_once_do_it_once(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    chat = world.chat(CLIENT)
    urgent = Label.objects.create(name="Urgent")
    in_threads(
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
