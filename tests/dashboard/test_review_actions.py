"""What staff do with conversations by the forms of the inbox and of a conversation's page."""

from __future__ import annotations

import html
import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.inbox import labels
from sessions_app.models import (
    Assignment,
    Bookmark,
    Chat,
    ChatLabel,
    Label,
    Note,
    ReadMark,
    ReviewedMark,
    Turn,
)
from tests.dashboard.staff import page, staff_with
from tests.forms import opened, save
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db

INBOX = "/admin/sessions_app/chat/"
MANY = f"{INBOX}review/"
LABELS = "/admin/sessions_app/label/"
CHANGED = (Assignment, Bookmark, ChatLabel, Note, ReviewedMark)
RIGHTS = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.review_chat")


def one(chat: Chat) -> str:
    return f"{INBOX}{chat.pk}/review/"


def conversation(chat: Chat) -> str:
    return f"{INBOX}{chat.pk}/conversation/"


@pytest.fixture
def reviewer(db: None) -> Client:
    return staff_with(*RIGHTS, name="reviewer")


@pytest.fixture(scope="module")
def two_chats(module_rows: None) -> None:
    world = new_world()
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")


@pytest.fixture
def chats(two_chats: None, world: World) -> list[Chat]:
    return [world.chat(CLIENT), world.chat(OTHER_CLIENT)]


def told(client: Client, path: str, **data: Any) -> str:
    """What the next page says after a post."""
    answer = client.post(path, data)
    assert answer.status_code == 302, answer.content
    # Every page shows what is waiting to be told; this one reads no message.
    return page(client, LABELS)


def chosen(*chats: Chat) -> dict[str, Any]:
    return {"_selected_action": [str(chat.pk) for chat in chats]}


def test_each_action_on_one_and_on_many(reviewer: Client, world: World, chats: list[Chat]) -> None:
    chat, label = chats[0], Label.objects.create(name="Very private")
    message = world.messages(CLIENT)[0]
    for do, said in (
        ("reviewed", "1 conversation is marked as reviewed"),
        ("unreviewed", "to be reviewed again"),
        ("read", "marked as read"),
        ("unread", "marked as unread"),
        ("bookmark", "bookmark is set"),
        (f"bookmark:{message.pk}", "bookmark is set"),
        (f"unbookmark:{message.pk}", "taken away"),
        (f"label:{label.pk}", "got the label"),
        (f"unlabel:{label.pk}", "lost the label"),
        ("assign:nobody", "0 conversations changed hands"),
        ("assign:me", "changed hands"),
    ):
        assert said in told(reviewer, one(chat), do=do), do
    assert not ReviewedMark.objects.exists()
    assert ReadMark.objects.get().order_num == 0
    assert Bookmark.objects.get().message is None
    assert Assignment.objects.get().assignee.username == "reviewer"
    assert "Only staff see it" in told(reviewer, one(chat), do="note", text="owes us money")
    note = Note.objects.get()
    form = {**opened(reviewer, conversation(chat)), "text": "called", "do": "edit"}
    assert "is changed" in told(reviewer, f"{INBOX}notes/{note.pk}/", **form)
    assert Note.objects.get().text == "called"
    assert "is deleted" in told(reviewer, f"{INBOX}notes/{note.pk}/", do="delete")
    assert not Note.objects.exists()
    # All of it is told to the audit log, without texts.
    events = AuditEvent.objects.filter(actor="reviewer").exclude(object_type="user")
    assert {event.action for event in events} >= {
        *("chat.review", "chat.bookmark", "chat.label", "chat.assign", "note.write")
    }
    for secret in ("private", "owes"):
        assert secret not in str([event.details for event in events])
    assert len({event.chat for event in events if event.chat}) == 1
    for do, said in (
        ("reviewed", "2 conversations are marked as reviewed"),
        ("unreviewed", "2 conversations are to be reviewed again"),
        ("unread", "2 conversations are marked as unread"),
        ("assign:nobody", "1 conversation changed hands"),
        (f"label:{label.pk}", "2 conversations got the label"),
    ):
        assert said in told(reviewer, MANY, do=do, **chosen(*chats)), do
    assert "Tick the conversations first" in told(reviewer, MANY, do="reviewed")


def test_of_several_assigned_those_taken_stay(reviewer: Client, chats: list[Chat]) -> None:
    """The inbox holds who looked after each; the rest change hands."""
    taken, free = chats
    dana = User.objects.create_user("dana", is_staff=True)
    was = dict(re.findall(r'name="(was-[^"]+)" value="(\d*)"', page(reviewer, INBOX)))
    assert was == {f"was-{taken.pk}": "", f"was-{free.pk}": ""}
    labels.chats_assign(chat_ids=[taken.pk], assignee=dana, actor=SYSTEM)
    shown = told(reviewer, MANY, **was, **chosen(taken, free), do="assign:me")
    assert "1 conversation stays where it is, meanwhile with dana" in shown
    assert "1 conversation changed hands" in shown
    assert Assignment.objects.get(chat=taken).assignee == dana
    assert Assignment.objects.get(chat=free).assignee.username == "reviewer"
    # Who has seen it may take it.
    seen = {f"was-{taken.pk}": str(dana.pk)}
    assert "changed hands" in told(reviewer, one(taken), do="assign", assignee="me", **seen)


@pytest.mark.parametrize("lost", ["is_active", "is_staff"])
def test_who_is_switched_off_is_assignee(reviewer: Client, chats: list[Chat], lost: str) -> None:
    """In the conversation and in the filter, but not offered anywhere else."""
    here, other = chats
    dana = User.objects.create_user("dana", is_staff=True)
    labels.chats_assign(chat_ids=[here.pk], assignee=dana, actor=SYSTEM)
    User.objects.filter(pk=dana.pk).update(**{lost: False})
    chosen_here = f'<option value="{dana.pk}" selected>dana (switched off)</option>'
    filtered = page(reviewer, INBOX, assigned=dana.pk)
    for shown in (page(reviewer, conversation(here)), filtered):
        assert chosen_here in shown
    assert f'value="assign:{dana.pk}"' not in filtered
    for shown in (page(reviewer, conversation(other)), page(reviewer, INBOX)):
        assert "switched off" not in shown


@pytest.mark.parametrize("place", [INBOX, "{}conversation/"])
def test_an_answer_that_failed_while_the_page_was_open_is_not_reviewed(
    reviewer: Client, chats: list[Chat], place: str
) -> None:
    """Neither in the inbox nor on the conversation's page: it adds no message."""
    chat = chats[0]

    def review() -> bool:
        """With what the page says of when it was made; whether the failure is left."""
        told(reviewer, MANY, do="reviewed", made=made, **chosen(chat))
        return str(chat.pk) in page(reviewer, INBOX, failed="1")

    def made_on() -> str:
        shown = page(reviewer, place.format(f"{INBOX}{chat.pk}/"))
        (found,) = set(re.findall(r'name="made"[^>]* value="([^"]*)"', shown))
        return str(found)

    made = made_on()
    Turn.objects.filter(chat=chat).update(state="failed", finished_at=timezone.now())
    assert review()
    made = made_on()
    assert not review()
    # A page that doesn't say it was made now.
    Turn.objects.filter(chat=chat).update(finished_at=timezone.now())
    made = "2001-01-01T00:00:00+00:00"
    assert not review()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"do": "label", "label": "99999"}, "no such label"),
        ({"do": "label:x"}, "no such label"),
        ({"do": "label:99999999999999999999999"}, "no such label"),
        ({"do": "assign", "assignee": "99999"}, "Say who"),
        ({"do": "assign:\x00"}, "Say who"),
        ({"do": "note", "text": "  "}, "Write something first"),
        ({"do": f"bookmark:{uuid4()}"}, "there any more"),
    ],
)
def test_nonsense_is_told(
    reviewer: Client, chats: list[Chat], data: dict[str, str], said: str
) -> None:
    assert said in told(reviewer, one(chats[0]), **data)
    assert not any(model._default_manager.exists() for model in CHANGED)


def test_what_is_gone_or_unknown_is_refused(reviewer: Client, chats: list[Chat]) -> None:
    assert "there any more" in told(reviewer, f"{INBOX}{uuid4()}/review/", do="reviewed")
    assert "there any more" in told(reviewer, f"{INBOX}notes/{uuid4()}/", do="delete")
    gone = told(reviewer, MANY, do="reviewed", _selected_action=[str(uuid4())])
    assert "0 conversations are marked" in gone
    for do in ("", "x", "forget", "__class__"):
        assert reviewer.post(MANY, {"do": do, **chosen(*chats)}).status_code == 400
        assert reviewer.post(one(chats[0]), {"do": do}).status_code == 400


def given_back(client: Client, path: str, **data: Any) -> tuple[str, str]:
    """What the page says after a note couldn't be kept, and the text in its field."""
    answer = client.post(path, data)
    assert answer.status_code == 200
    shown = answer.content.decode()
    (text,) = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", shown, re.S)
    return shown, html.unescape(text)


def test_a_note_not_kept_is_given_back(reviewer: Client, world: World, chats: list[Chat]) -> None:
    message, path = world.messages(CLIENT)[0], one(chats[0])
    key = message.pk
    shown, text = given_back(reviewer, path, do="note", message=key, text="x" * 10_001)
    assert "at most 10000 characters" in shown
    assert text == "x" * 10_001
    assert f'name="message" value="{key}"' in shown
    message.delete()
    long = "A long note.\n<b>Call back</b> " + "x" * 5_000
    shown, text = given_back(reviewer, path, do="note", message=key, text=long)
    assert "The message isn&#x27;t there any more." in shown
    assert text == long
    assert str(key) not in shown
    assert f'action="{path}"' in shown
    assert 'name="message" value=""' in shown
    assert not Note.objects.exists()
    assert "Only staff see it" in told(reviewer, path, do="note", message="", text=text)
    assert (Note.objects.get().text, Note.objects.get().message) == (long, None)
    # Where the chat or the note is gone, it can still be copied.
    for of, do in ((f"{INBOX}{uuid4()}/review/", "note"), (f"{INBOX}notes/{uuid4()}/", "edit")):
        shown, text = given_back(reviewer, of, do=do, text="A long note")
        assert "isn&#x27;t there any more." in shown
        assert text == "A long note"
        assert 'value="note"' not in shown
        assert "there any more" in told(reviewer, of, do=do, text="  ")


def test_one_comes_back_to_pages_of_ours(reviewer: Client, world: World, chats: list[Chat]) -> None:
    def after(**data: Any) -> str:
        return str(reviewer.post(one(chats[0]), data)["Location"])

    here, key = conversation(chats[0]), world.messages(CLIENT)[0].pk
    there = f"{here}?at={key}#m-{key}"
    assert after(do=f"bookmark:{key}") == there
    assert after(do="note", message=key, text="hm") == there
    assert Note.objects.get().message_id == key
    assert after(do="read", next=f"{INBOX}?unread=1") == f"{INBOX}?unread=1"
    foreign = ("https://example.org/admin/", "//example.org/admin/", "/api/", "javascript:1")
    for elsewhere in foreign:
        assert after(do="read", next=elsewhere) == here


# Labels


def test_labels_are_managed_by_reviewers(reviewer: Client, chats: list[Chat]) -> None:
    assert reviewer.post(f"{LABELS}add/", {"name": "Urgent", "colour": "red"}).status_code == 302
    label = Label.objects.get()
    again = reviewer.post(f"{LABELS}add/", {"name": "urgent", "colour": "red"})
    assert "There is a label of this name already." in again.content.decode()
    address = f"{LABELS}{label.pk}/"
    save(reviewer, f"{address}change/", {"name": "Now", "colour": "blue"})
    assert '<bdi class="label blue">Now</bdi>' in page(reviewer, LABELS)
    for chat in chats:
        reviewer.post(one(chat), {"do": f"label:{label.pk}"})
    asked = reviewer.get(f"{address}delete/")
    # How many chats have it, and not each of them.
    (shown,) = asked.context["deleted_objects"]
    assert "Now" in shown
    assert dict(asked.context["model_count"])["chat labels"] == len(chats)
    assert reviewer.post(f"{address}delete/", {"post": "yes"}).status_code == 302
    assert not Label.objects.exists()
    assert not ChatLabel.objects.exists()
    actions = AuditEvent.objects.filter(object_type="label").order_by("id")
    did = ["label.create", "label.update", "label.delete"]
    assert list(actions.values_list("action", flat=True)) == did
