"""The inbox: its order, what is new to whom, what is reviewed, and what is found in it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from sessions_app.inbox.labels import bookmark_set, chats_assign
from sessions_app.inbox.move_markers import (
    ReviewError,
    chats_mark_read,
    chats_mark_unread,
    chats_review,
    chats_unreview,
)
from sessions_app.models import Chat, ChatActivity, Message, ReviewedMark, Turn
from sessions_app.recall.staff_search import newest_messages_found, snippet_of
from tests.sessions.reviewing import STAFF, actions, look, names, revoke, row_of
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db


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


def test_unread_is_what_was_said_since_my_last_look(world: World, dana: User, ron: User) -> None:
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


def test_a_chat_is_marked_unread_at_its_persons_last_words(world: World, dana: User) -> None:
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


def test_an_answer_that_failed_meanwhile_is_not_reviewed(world: World, dana: User) -> None:
    """It adds no message, so that a chat may be reviewed to its end without it."""
    world.say(CLIENT, "one")
    chat, failed = world.chat(CLIENT), timezone.now()
    Turn.objects.filter(chat=chat).update(state="failed", finished_at=failed)

    def review(seen_at: datetime) -> None:
        chats_review(user=dana, chat_ids=[chat.pk], actor=STAFF, seen_at=seen_at)

    review(failed - timedelta(minutes=1))
    assert row_of(dana).reviewed
    assert row_of(dana).failed == 1
    assert names(dana, failed=True) == [CLIENT]
    review(failed + timedelta(microseconds=1))
    assert row_of(dana).failed == 0
    # A page that was opened earlier brings nothing back.
    review(failed - timedelta(minutes=1))
    assert row_of(dana).failed == 0


NARROWED: list[tuple[dict[str, Any], list[str]]] = [
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
]


def test_the_list_is_narrowed(world: World, dana: User) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    one, other = world.chat(CLIENT), world.chat(OTHER_CLIENT)
    Chat.objects.filter(pk=other.pk).update(memory_enabled=False)
    chats_assign(chat_ids=[one.pk], assignee=dana, actor=STAFF)
    bookmark_set(user=dana, chat_id=other.pk, actor=STAFF, wanted=True)
    for wanted, found in NARROWED:
        assert names(dana, **wanted) == found, wanted


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
    (found,) = newest_messages_found(Message.objects.all(), asked, 0, 10)
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
    assert newest_messages_found(Message.objects.all(), "dishwasher", 0, 10) == []
    assert newest_messages_found(Message.objects.all(), "?!", 0, 10) == []
