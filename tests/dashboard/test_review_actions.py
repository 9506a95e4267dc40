"""What staff do with conversations by the forms of the inbox and of a conversation's page."""

from __future__ import annotations

import html
import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
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
    ForgetReceipt,
    Label,
    Note,
    ReadMark,
    ReviewedMark,
    Turn,
)
from tests.forms import opened, save
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db
INBOX = "/admin/sessions_app/chat/"
MANY = f"{INBOX}review/"
CHANGED = (Assignment, Bookmark, ChatLabel, Note, ReviewedMark)


def one(chat: Chat) -> str:
    return f"{INBOX}{chat.pk}/review/"


@pytest.fixture
def reviewer(client: Client) -> Client:
    user = User.objects.create_user("reviewer", is_staff=True)
    codenames = ["view_chat", "view_message", "review_chat"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return client


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
    return client.get("/admin/sessions_app/label/").content.decode()


def chosen(chats: list[Chat]) -> dict[str, Any]:
    return {"_selected_action": [str(chat.pk) for chat in chats]}


def test_each_action_on_one_conversation(reviewer: Client, world: World, chats: list[Chat]) -> None:
    chat, label = chats[0], Label.objects.create(name="Urgent")
    message = world.messages(CLIENT)[0]
    assert "1 conversation is marked as reviewed" in told(reviewer, one(chat), do="reviewed")
    assert ReviewedMark.objects.get().chat == chat
    assert "to be reviewed again" in told(reviewer, one(chat), do="unreviewed")
    assert not ReviewedMark.objects.exists()
    assert "marked as read" in told(reviewer, one(chat), do="read")
    assert "marked as unread" in told(reviewer, one(chat), do="unread")
    assert ReadMark.objects.get().order_num == 0
    assert "bookmark is set" in told(reviewer, one(chat), do="bookmark")
    assert "bookmark is set" in told(reviewer, one(chat), do=f"bookmark:{message.pk}")
    assert Bookmark.objects.count() == 2
    assert "taken away" in told(reviewer, one(chat), do=f"unbookmark:{message.pk}")
    assert Bookmark.objects.get().message is None
    assert "got the label" in told(reviewer, one(chat), do="label", label=label.pk)
    assert "lost the label" in told(reviewer, one(chat), do=f"unlabel:{label.pk}")
    assert "changed hands" in told(reviewer, one(chat), do="assign", assignee="me")
    assert Assignment.objects.get().assignee.username == "reviewer"
    assert "changed hands" in told(reviewer, one(chat), do="assign:nobody")
    assert "Only staff see it" in told(reviewer, one(chat), do="note", text="call back")
    note = Note.objects.get()
    form = {**opened(reviewer, f"{INBOX}{chat.pk}/conversation/"), "text": "called", "do": "edit"}
    assert "is changed" in told(reviewer, f"{INBOX}notes/{note.pk}/", **form)
    assert Note.objects.get().text == "called"
    assert "is deleted" in told(reviewer, f"{INBOX}notes/{note.pk}/", do="delete")
    assert not Note.objects.exists()


def test_who_assigns_what_somebody_took_meanwhile_is_told(
    reviewer: Client, world: World, chats: list[Chat]
) -> None:
    """The form holds who looked after it when it was opened."""
    chat, dana = chats[0], User.objects.create_user("dana", is_staff=True)
    page = reviewer.get(f"{INBOX}{chat.pk}/conversation/").content.decode()
    (was,) = re.findall(rf'name="was-{chat.pk}" value="(\d*)"', page)
    assert was == ""
    labels.chats_assign(chat_ids=[chat.pk], assignee=dana, actor=SYSTEM)
    taken = {"do": "assign", "assignee": "me", f"was-{chat.pk}": was}
    assert "meanwhile with dana" in told(reviewer, one(chat), **taken)
    assert Assignment.objects.get().assignee == dana
    page = reviewer.get(f"{INBOX}{chat.pk}/conversation/").content.decode()
    (was,) = re.findall(rf'name="was-{chat.pk}" value="(\d*)"', page)
    assert was == str(dana.pk)
    assert "changed hands" in told(reviewer, one(chat), **{**taken, f"was-{chat.pk}": was})
    assert Assignment.objects.get().assignee.username == "reviewer"
    # What two want alike isn't a quarrel.
    assert "meanwhile" not in told(reviewer, one(chat), **{**taken, f"was-{chat.pk}": ""})


def test_of_several_assigned_at_once_those_taken_meanwhile_stay(
    reviewer: Client, chats: list[Chat]
) -> None:
    """The inbox holds who looked after each; the rest change hands."""
    taken, free = chats
    dana = User.objects.create_user("dana", is_staff=True)
    page = reviewer.get(INBOX).content.decode()
    was = dict(re.findall(r'name="(was-[^"]+)" value="(\d*)"', page))
    assert was == {f"was-{taken.pk}": "", f"was-{free.pk}": ""}
    labels.chats_assign(chat_ids=[taken.pk], assignee=dana, actor=SYSTEM)

    page = told(reviewer, MANY, **was, **chosen([taken, free]), do="assign:me")

    assert "1 conversation stays where it is, meanwhile with dana" in page
    assert "1 conversation changed hands" in page
    assert Assignment.objects.get(chat=taken).assignee == dana
    assert Assignment.objects.get(chat=free).assignee.username == "reviewer"
    page = told(reviewer, MANY, **was, **chosen([taken]), do="assign:nobody")
    assert "meanwhile with dana" in page
    assert "changed hands" not in page
    assert Assignment.objects.count() == 2


@pytest.mark.parametrize("lost", ["is_active", "is_staff"])
def test_who_is_switched_off_is_still_shown_as_who_looks_after_it(
    reviewer: Client, chats: list[Chat], lost: str
) -> None:
    """In the conversation and in the filter, but not offered anywhere else."""
    here, other = chats
    dana = User.objects.create_user("dana", is_staff=True)
    labels.chats_assign(chat_ids=[here.pk], assignee=dana, actor=SYSTEM)
    User.objects.filter(pk=dana.pk).update(**{lost: False})

    chosen_here = f'<option value="{dana.pk}" selected>dana (switched off)</option>'
    assert chosen_here in reviewer.get(f"{INBOX}{here.pk}/conversation/").content.decode()
    assert "switched off" not in reviewer.get(f"{INBOX}{other.pk}/conversation/").content.decode()
    filtered = reviewer.get(INBOX, {"assigned": dana.pk}).content.decode()
    assert chosen_here in filtered
    assert f'value="assign:{dana.pk}"' not in filtered
    assert "switched off" not in reviewer.get(INBOX).content.decode()


def test_a_message_is_bookmarked_and_noted_on_and_one_comes_back_to_it(
    reviewer: Client, world: World, chats: list[Chat]
) -> None:
    message = world.messages(CLIENT)[0]
    answer = reviewer.post(one(chats[0]), {"do": f"bookmark:{message.pk}"})
    there = f"{INBOX}{chats[0].pk}/conversation/?at={message.pk}#m-{message.pk}"
    assert answer["Location"] == there
    answer = reviewer.post(one(chats[0]), {"do": "note", "message": message.pk, "text": "hm"})
    assert answer["Location"] == there
    assert Note.objects.get().message == message


@pytest.mark.parametrize(
    ("do", "said"),
    [
        ("reviewed", "2 conversations are marked as reviewed"),
        ("unreviewed", "2 conversations are to be reviewed again"),
        ("read", "2 conversations are marked as read"),
        ("unread", "2 conversations are marked as unread"),
        ("assign:me", "2 conversations changed hands"),
        ("label:{label}", "2 conversations got the label"),
        ("unlabel:{label}", "0 conversations lost the label"),
    ],
)
def test_many_at_once(reviewer: Client, chats: list[Chat], do: str, said: str) -> None:
    label = Label.objects.create(name="Urgent")
    asked = do.format(label=label.pk)
    assert said in told(reviewer, MANY, do=asked, **chosen(chats))


def test_many_are_reviewed_up_to_what_the_list_showed(
    reviewer: Client, world: World, chats: list[Chat]
) -> None:
    seen = world.messages(CLIENT)[-1]
    world.say(CLIENT, "meanwhile")
    told(reviewer, MANY, do="reviewed", **chosen(chats), **{f"seen-{chats[0].pk}": seen.pk})
    assert ReviewedMark.objects.get(chat=chats[0]).order_num == seen.order_num


def made_on(shown: str) -> str:
    (made,) = set(re.findall(r'name="made"[^>]* value="([^"]*)"', shown))
    return str(made)


def fail_answers(chat: Chat) -> None:
    Turn.objects.filter(chat=chat).update(state="failed", finished_at=timezone.now())


def is_failed(client: Client, chat: Chat) -> bool:
    return str(chat.pk) in client.get(INBOX, {"failed": "1"}).content.decode()


@pytest.mark.parametrize("page", [INBOX, "{one}conversation/"])
def test_an_answer_that_failed_while_the_page_was_open_is_not_reviewed(
    reviewer: Client, chats: list[Chat], page: str
) -> None:
    """Neither in the inbox nor on the conversation's page: it adds no message."""
    chat = chats[0]
    address = page.format(one=f"{INBOX}{chat.pk}/")
    made = made_on(reviewer.get(address).content.decode())
    fail_answers(chat)
    assert "is marked as reviewed" in told(
        reviewer, MANY, do="reviewed", made=made, **chosen([chat])
    )
    assert is_failed(reviewer, chat)
    made = made_on(reviewer.get(address).content.decode())
    told(reviewer, MANY, do="reviewed", made=made, **chosen([chat]))
    assert not is_failed(reviewer, chat)


def test_a_conversation_that_refreshed_itself_is_reviewed_up_to_then(
    reviewer: Client, chats: list[Chat]
) -> None:
    chat = chats[0]
    address = f"{INBOX}{chat.pk}/conversation/"
    reviewer.get(address)
    fail_answers(chat)
    answer = reviewer.get(address, headers={"X-Live": "yes"})
    assert "the answer failed" in answer.content.decode()
    told(reviewer, one(chat), do="reviewed", made=answer["X-Made"])
    assert not is_failed(reviewer, chat)


@pytest.mark.parametrize("made", ["", "x", "2001-01-01T00:00:00+00:00", "\x00é:x:y"])
def test_a_page_that_does_not_say_when_it_was_made_was_made_now(
    reviewer: Client, chats: list[Chat], made: str
) -> None:
    fail_answers(chats[0])
    told(reviewer, one(chats[0]), do="reviewed", made=made)
    assert not is_failed(reviewer, chats[0])


def test_nothing_chosen_is_told(reviewer: Client, chats: list[Chat]) -> None:
    assert "Tick the conversations first" in told(reviewer, MANY, do="reviewed")
    assert "Tick the conversations first" in told(reviewer, INBOX, action="forget_selected")


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
def test_what_makes_no_sense_is_told(
    reviewer: Client, chats: list[Chat], data: dict[str, str], said: str
) -> None:
    assert said in told(reviewer, one(chats[0]), **data)
    assert not any(model._default_manager.exists() for model in CHANGED)


@pytest.mark.parametrize("do", ["", "x", "forget", "__class__", "note:x" * 50])
def test_what_nobody_knows_is_refused(reviewer: Client, chats: list[Chat], do: str) -> None:
    assert reviewer.post(MANY, {"do": do, **chosen(chats)}).status_code == 400
    if not do.startswith("note"):
        assert reviewer.post(one(chats[0]), {"do": do}).status_code == 400


def test_chats_and_notes_that_are_gone(reviewer: Client) -> None:
    gone = f"{INBOX}{uuid4()}/review/"
    assert "there any more" in told(reviewer, gone, do="reviewed")
    assert "there any more" in told(reviewer, f"{INBOX}notes/{uuid4()}/", do="delete")
    assert "0 conversations are marked" in told(
        reviewer, MANY, do="reviewed", _selected_action=[str(uuid4())]
    )


def given_back(client: Client, path: str, **data: Any) -> tuple[str, str]:
    """What the page says after a note couldn't be kept, and the text in its field."""
    answer = client.post(path, data)
    assert answer.status_code == 200
    shown = answer.content.decode()
    (text,) = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", shown, re.S)
    return shown, html.unescape(text)


def test_a_note_on_a_message_that_is_gone_is_given_back_and_can_still_be_kept(
    reviewer: Client, world: World, chats: list[Chat]
) -> None:
    message = world.messages(CLIENT)[0]
    key = message.pk
    message.delete()
    long = "A long note.\n<b>Call back</b> " + "x" * 5_000
    shown, text = given_back(reviewer, one(chats[0]), do="note", message=key, text=long)
    assert "The message isn&#x27;t there any more." in shown
    assert text == long
    assert str(key) not in shown
    assert not Note.objects.exists()
    assert f'action="{one(chats[0])}"' in shown
    assert 'name="message" value=""' in shown
    assert "Only staff see it" in told(reviewer, one(chats[0]), do="note", message="", text=text)
    assert (Note.objects.get().text, Note.objects.get().message) == (long, None)


def test_a_note_that_is_too_long_is_given_back_with_its_message(
    reviewer: Client, world: World, chats: list[Chat]
) -> None:
    key = world.messages(CLIENT)[0].pk
    shown, text = given_back(reviewer, one(chats[0]), do="note", message=key, text="x" * 10_001)
    assert "at most 10000 characters" in shown
    assert text == "x" * 10_001
    assert f'name="message" value="{key}"' in shown
    assert f'<a href="{INBOX}">Inbox</a></nav>' in shown
    assert not Note.objects.exists()


@pytest.mark.parametrize(
    ("of", "do"), [(f"{INBOX}{{}}/review/", "note"), (f"{INBOX}notes/{{}}/", "edit")]
)
def test_a_note_whose_place_is_gone_is_given_back_to_be_copied(
    reviewer: Client, of: str, do: str
) -> None:
    """The chat was forgotten, or became part of another one; or the note went with its message."""
    shown, text = given_back(reviewer, of.format(uuid4()), do=do, text="A long note")
    assert "isn&#x27;t there any more." in shown
    assert text == "A long note"
    assert 'value="note"' not in shown
    assert "there any more" in told(reviewer, of.format(uuid4()), do=do, text="  ")


def test_nobody_changes_anothers_note(reviewer: Client, world: World, chats: list[Chat]) -> None:
    reviewer.post(one(chats[0]), {"do": "note", "text": "mine"})
    note = Note.objects.get()
    Note.objects.update(author=User.objects.create_user("other"))
    for data in ({"do": "edit", "text": "yours"}, {"do": "delete"}):
        assert "Only who wrote a note" in told(reviewer, f"{INBOX}notes/{note.pk}/", **data)
    assert Note.objects.get().text == "mine"


def test_one_is_sent_back_only_to_pages_of_ours(reviewer: Client, chats: list[Chat]) -> None:
    def after(where: str) -> str:
        return str(reviewer.post(one(chats[0]), {"do": "read", "next": where})["Location"])

    here = f"{INBOX}{chats[0].pk}/conversation/"
    assert after(f"{INBOX}?unread=1") == f"{INBOX}?unread=1"
    for elsewhere in (
        "https://example.org/admin/",
        "//example.org/admin/",
        "/api/",
        "javascript:1",
    ):
        assert after(elsewhere) == here


@pytest.mark.parametrize("missing", ["review_chat", "view_chat"])
def test_each_action_is_refused_to_who_has_no_right_to_it(
    client: Client, chats: list[Chat], missing: str
) -> None:
    user = User.objects.create_user("reader", is_staff=True)
    wanted = {"view_chat", "view_message", "review_chat"} - {missing}
    user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    note = Note.objects.create(
        chat=chats[0], author=user, author_name="r", text="x", created_at=chats[0].created_at
    )
    client.force_login(user)
    dos = ["reviewed", "unreviewed", "read", "unread", "bookmark", "unbookmark", "note"]
    for do in [*dos, "assign:me", "label:1", "unlabel:1", "", "x"]:
        assert client.post(one(chats[0]), {"do": do, "text": "y"}).status_code == 403, do
        assert client.post(MANY, {"do": do, **chosen(chats)}).status_code == 403, do
    assert client.post(MANY, {"do": "read"}).status_code == 403
    assert client.post(f"{INBOX}{uuid4()}/review/", {"do": "read"}).status_code == 403
    for do in ("edit", "delete"):
        assert client.post(f"{INBOX}notes/{note.pk}/", {"do": do, "text": "y"}).status_code == 403
    assert Note.objects.get().text == "x"
    assert not ReviewedMark.objects.exists()
    assert not ReadMark.objects.exists()


def test_visitors_are_asked_to_log_in_and_looking_does_nothing(
    client: Client, reviewer: Client, chats: list[Chat]
) -> None:
    for path in (one(chats[0]), MANY):
        assert reviewer.get(path, {"do": "reviewed"}, follow=True).status_code == 200
    assert not ReviewedMark.objects.exists()
    reviewer.logout()
    for path in (one(chats[0]), MANY, f"{INBOX}notes/{uuid4()}/"):
        assert "/admin/login/" in reviewer.post(path, {"do": "reviewed"})["Location"]
    assert not ReviewedMark.objects.exists()


def test_each_action_is_told_to_the_audit_log_without_its_text(
    reviewer: Client, chats: list[Chat]
) -> None:
    label = Label.objects.create(name="Very private")
    for data in (
        {"do": "reviewed"},
        {"do": "bookmark"},
        {"do": f"label:{label.pk}"},
        {"do": "assign:me"},
        {"do": "note", "text": "owes us money"},
    ):
        reviewer.post(one(chats[0]), data)
    events = AuditEvent.objects.filter(actor="reviewer").exclude(action="login.success")
    events = events.order_by("id")
    assert [event.action for event in events] == [
        "chat.review",
        "chat.bookmark",
        "chat.label",
        "chat.assign",
        "note.write",
    ]
    assert "private" not in str([event.details for event in events])
    assert "owes" not in str([event.details for event in events])
    assert len({event.chat for event in events}) == 1


def test_chosen_chats_are_forgotten_the_admins_own_way(
    admin_client: Client, chats: list[Chat]
) -> None:
    data = {"action": "forget_selected", **chosen(chats[:1])}
    assert admin_client.post(INBOX, data).status_code in (200, 302)
    assert Chat.objects.count() == 2
    assert not ForgetReceipt.objects.exists()


# Labels


def test_labels_are_managed_by_reviewers(reviewer: Client) -> None:
    add = "/admin/sessions_app/label/add/"
    assert reviewer.post(add, {"name": "Urgent", "colour": "red"}).status_code == 302
    label = Label.objects.get()
    again = reviewer.post(add, {"name": "urgent", "colour": "red"})
    assert "There is a label of this name already." in again.content.decode()
    page = f"/admin/sessions_app/label/{label.pk}/"
    save(reviewer, f"{page}change/", {"name": "<b>Now</b>", "colour": "blue"})
    shown = reviewer.get("/admin/sessions_app/label/").content.decode()
    assert '<bdi class="label blue">&lt;b&gt;Now&lt;/b&gt;</bdi>' in shown
    assert reviewer.post(f"{page}delete/", {"post": "yes"}).status_code == 302
    assert not Label.objects.exists()
    actions = AuditEvent.objects.filter(object_type="label").order_by("id")
    assert list(actions.values_list("action", flat=True)) == [
        "label.create",
        "label.update",
        "label.delete",
    ]


def test_a_label_that_is_in_use_can_be_deleted(reviewer: Client, chats: list[Chat]) -> None:
    label = Label.objects.create(name="Urgent")
    for chat in chats:
        reviewer.post(one(chat), {"do": f"label:{label.pk}"})
    address = f"/admin/sessions_app/label/{label.pk}/delete/"
    asked = reviewer.get(address)
    # How many chats have it, and not each of them.
    (shown,) = asked.context["deleted_objects"]
    assert "Urgent" in shown
    assert dict(asked.context["model_count"])["chat labels"] == len(chats)
    reviewer.post(address, {"post": "yes"})
    assert not ChatLabel.objects.exists()


def test_who_only_reads_makes_no_labels(client: Client) -> None:
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_chat"))
    client.force_login(user)
    label = Label.objects.create(name="Urgent")
    assert client.get("/admin/sessions_app/label/").status_code == 200
    for path in ("add", f"{label.pk}/change", f"{label.pk}/delete"):
        data = {"name": "x", "colour": "red", "post": "yes"}
        assert client.post(f"/admin/sessions_app/label/{path}/", data).status_code == 403
    assert Label.objects.get().name == "Urgent"
