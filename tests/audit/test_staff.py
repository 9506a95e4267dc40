"""What staff read and edit in the admin, and who logs in, is told to the audit log."""

from __future__ import annotations

import hashlib

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memoryproject.foundation.audit.audit_events import (
    SYSTEM,
    Event,
    audit_key,
    audit_record_many,
    pseudonyms_of,
)
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import (
    AssistantProfile,
    InboundDelivery,
    Message,
    OutboundPart,
    SummarizationMetadata,
    Turn,
)
from tests.forms import save
from tests.staff.people import told
from tests.world import CLIENT, GODFATHER, World, new_world

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def conversation(module_rows: None) -> None:
    world = new_world()
    world.summarizing(4)
    for text in ("one", "two", "three"):
        world.say(CLIENT, text)
    world.sum_up(CLIENT)
    world.remember(GODFATHER, "TestCorp pays in 30 days")


@pytest.fixture
def talked(conversation: None, world: World) -> World:
    return world


@pytest.mark.parametrize(
    ("model", "read_as"),
    [
        ("chatsession", "session"),
        ("chat", "chat"),
        ("turn", "turn"),
        ("message", "message"),
        ("summarizationmetadata", "summary"),
        ("inbounddelivery", "delivery"),
        ("outboundpart", "part of an answer"),
    ],
)
def test_reading_a_conversation_is_one_event_a_page_view(
    talked: World, admin_client: Client, model: str, read_as: str
) -> None:
    chat = talked.chat(CLIENT)
    rows = {
        "chatsession": talked.session(CLIENT),
        "chat": chat,
        "turn": Turn.objects.filter(chat=chat).latest("id"),
        "message": Message.objects.filter(chat=chat).latest("received_at"),
        "summarizationmetadata": SummarizationMetadata.objects.latest("created_at"),
        "inbounddelivery": InboundDelivery.objects.filter(chat=chat).latest("id"),
        "outboundpart": OutboundPart.objects.filter(turn__chat=chat).latest("id"),
    }
    address = reverse(f"admin:sessions_app_{model}_change", args=[rows[model].pk])
    assert admin_client.get(address).status_code == 200
    (event,) = told("conversation.read")
    (name,) = pseudonyms_of(key=audit_key(), chat_id=chat.pk)
    assert (event.actor_kind, event.actor) == ("staff", "admin")
    assert (event.object_type, event.chat) == (read_as, name)
    assert event.object_id == (name if model == "chat" else str(rows[model].pk))
    admin_client.get(address)
    assert len(told("conversation.read")) == 2


@pytest.mark.parametrize("model", ["message", "turn", "summarizationmetadata"])
def test_lists_of_texts_are_reading_too(talked: World, admin_client: Client, model: str) -> None:
    session = talked.session(CLIENT)
    address = reverse(f"admin:sessions_app_{model}_changelist")
    admin_client.get(address, {"session__session_id__exact": str(session.pk)})
    admin_client.get(address, {"q": "15550100123"})
    admin_client.get(address, {"q": "nothing such", "session__session_id__exact": "junk"})
    one, searched, *_ = told("conversation.read")
    assert (one.object_type, one.object_id) == ("session", str(session.pk))
    assert one.chat == pseudonyms_of(key=audit_key(), chat_id=session.chat_id)[0]
    assert (searched.object_id, searched.details["searched"]) == ("", True)
    assert "15550100123" not in str(AuditEvent.objects.values_list())


def test_lists_of_one_chat_name_it(talked: World, admin_client: Client) -> None:
    chat = talked.chat(CLIENT)
    admin_client.get(
        reverse("admin:sessions_app_message_changelist"), {"chat__id__exact": str(chat.pk)}
    )
    (event,) = told("conversation.read")
    assert event.chat == pseudonyms_of(key=audit_key(), chat_id=chat.pk)[0]


def test_a_page_that_is_refused_is_no_reading(talked: World, client: Client) -> None:
    session = talked.session(CLIENT)
    address = reverse("admin:sessions_app_chatsession_change", args=[session.pk])
    assert client.get(address).status_code == 302
    client.force_login(User.objects.create_user("intern", is_staff=True))
    assert client.get(address).status_code == 403
    assert told("conversation.read") == []


def test_edits_of_a_chat_and_of_the_profile(talked: World, admin_client: Client) -> None:
    chat = talked.chat(CLIENT)
    inline = {
        f"addresses-{name}": value
        for name, value in (("TOTAL_FORMS", 0), ("INITIAL_FORMS", 0), ("MIN_NUM_FORMS", 0))
    }
    save(
        admin_client,
        reverse("admin:sessions_app_chat_change", args=[chat.pk]),
        {"memory_enabled": "false", **inline},
    )
    (event,) = told("chat.update")
    assert event.object_id == pseudonyms_of(key=audit_key(), chat_id=chat.pk)[0]
    assert event.details == {"fields": ["memory_enabled"]}
    profile, _ = AssistantProfile.objects.get_or_create(pk=1)
    values = {
        name: getattr(profile, name)
        for name in ("name", "persona", "business_facts", "opening_hours", "languages")
    }
    save(
        admin_client,
        reverse("admin:sessions_app_assistantprofile_change", args=[1]),
        {**values, "name": "Dina", "opening_hours": "Sunday to Thursday"},
    )
    (event,) = told("profile.update")
    assert event.details == {"fields": ["name", "opening_hours"]}


def test_logins_that_fail_leave_no_password(client: Client) -> None:
    for name, password in (("my-passw0rd", "dana"), ("my-passw0rd", "x"), ("dana", "my-passw0rd")):
        client.post("/admin/login/", {"username": name, "password": password})
    first, again, other = told("login.failed")
    rows = str(AuditEvent.objects.values_list())
    assert "my-passw0rd" not in rows
    assert "dana" not in rows
    assert hashlib.sha256(b"my-passw0rd").hexdigest() not in rows
    assert first.object_id == again.object_id != other.object_id


def test_a_login_that_succeeds(client: Client) -> None:
    User.objects.create_superuser("dana", password="a-password-of-tests")
    client.post("/admin/login/", {"username": "dana", "password": "a-password-of-tests"})
    (event,) = told("login.success")
    assert (event.actor_kind, event.actor) == ("staff", "dana")
    assert told("login.failed") == []


LIST = "/admin/audit/auditevent/"


class TestTheList:
    def test_it_is_read_only(self, admin_client: Client) -> None:
        audit_record_many(events=[Event("a.b", SYSTEM)])
        event = AuditEvent.objects.latest("id")
        assert admin_client.get(LIST).status_code == 200
        page = admin_client.get(f"{LIST}{event.pk}/change/")
        assert page.status_code == 200
        assert b'name="_save"' not in page.content
        assert admin_client.get(f"{LIST}add/").status_code == 403
        assert admin_client.post(f"{LIST}{event.pk}/delete/").status_code == 403

    def test_it_is_found_by_ids_and_by_chats(self, talked: World, admin_client: Client) -> None:
        session = talked.session(CLIENT)
        for term in (str(session.pk), str(session.chat_id), f" {session.pk} "):
            found = admin_client.get(LIST, {"q": term}).context["cl"].queryset
            assert str(session.pk) in {event.object_id for event in found}
        assert not admin_client.get(LIST, {"q": str(session.pk)[:8]}).context["cl"].queryset
