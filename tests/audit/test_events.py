"""What is recorded, and what recording costs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor, pseudonyms_of
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.conversations.session_lifecycle import session_start
from sessions_app.history.clear_session import sessions_expire
from sessions_app.models import Chat, ChatSession
from tests.audit.log import AuditLog
from tests.staff.people import told
from tests.world import CLIENT, World, message_from

DAY = timedelta(hours=24)


def test_nfr_sec_005_creation_and_expiry_of_sessions(world: World, log: AuditLog) -> None:
    """NFR-SEC-005: logged with session_id and, by its pseudonym, the chat."""
    world.say(CLIENT, "Hello")
    session = world.session(CLIENT)
    (name,) = pseudonyms_of(key=log.key, chat_id=session.chat_id)
    ChatSession.objects.update(last_active=timezone.now() - DAY)
    sessions_expire(now=timezone.now(), timeout=DAY)
    for action in ("session.create", "session.expire"):
        (event,) = told(action)
        assert (event.object_type, event.object_id) == ("session", str(session.pk))
        assert (event.actor_kind, event.chat) == ("system", name)


def test_a_reset_is_the_persons_own_doing(world: World) -> None:
    world.say(CLIENT, "Hello")
    old = world.session(CLIENT)
    world.say(CLIENT, "/reset")
    (ended,) = told("session.expire")
    assert (ended.object_id, ended.actor_kind) == (str(old.pk), "person")
    assert ended.actor == ended.chat
    assert told("session.create")[-1].object_id == str(world.session(CLIENT).pk)


def test_emptying_a_session(world: World) -> None:
    world.say(CLIENT, "Hello")
    session = world.session(CLIENT)
    staff = Actor("staff", "dana")
    world.rules.chat_memory.clear_messages(conversation_id=session.pk, actor=staff)
    (event,) = told("session.clear")
    assert (event.actor_kind, event.actor) == ("staff", "dana")
    assert event.details == {"messages": 2, "summaries": 0}


@pytest.mark.django_db
def test_a_new_session_of_a_known_person_costs_one_look_and_one_insert() -> None:
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud")
    first = session_start(chat=chat, now=timezone.now())
    first.delete()
    with CaptureQueriesContext(connection) as queries:
        session_start(chat=chat, now=timezone.now())
    audit = [query["sql"].split()[0] for query in queries if "audit_" in query["sql"]]
    assert audit == ["SELECT", "INSERT"]


def test_chats_that_are_merged_stay_findable(world: World, log: AuditLog) -> None:
    world.receive(message_from(CLIENT, "by phone"))
    world.receive(message_from(CLIENT, "by user id", party=Party(bsuid="US.1234567890")))
    assert Chat.objects.count() == 2
    both = Party(phone="15550100123", bsuid="US.1234567890")
    world.receive(message_from(CLIENT, "by both", party=both))
    (chat,) = Chat.objects.all()
    names = pseudonyms_of(key=log.key, chat_id=chat.pk)
    assert len(names) == 2
    assert set(AuditEvent.objects.values_list("chat", flat=True)) == set(names)


@pytest.mark.django_db(transaction=True)
def test_backups_are_told(tmp_path: Path) -> None:
    call_command("backup", str(tmp_path / "all.zip"), verbosity=0)
    (event,) = told("backup.write")
    assert event.actor_kind == "command"
    assert set(event.details) == {"rows", "tables"}
