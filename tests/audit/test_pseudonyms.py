"""People in the audit log: by pseudonyms that erasure cuts loose."""

from __future__ import annotations

import uuid
from uuid import UUID

import pytest

from memoryproject.foundation.audit.audit_events import (
    SYSTEM,
    Actor,
    audit_record,
    person_detach,
    person_merge,
    pseudonyms_for,
    pseudonyms_of,
)
from memoryproject.foundation.audit.models import AuditEvent, AuditPerson
from sessions_app.models import Chat
from tests.audit.log import AuditLog
from tests.threads import in_threads
from tests.world import CLIENT, World

ONE = UUID("11111111-1111-4111-8111-111111111111")
OTHER = UUID("22222222-2222-4222-8222-222222222222")


def said_by(chat_id: UUID) -> str:
    audit_record("memory.remember", Actor("person", chat_id=chat_id))
    return AuditEvent.objects.latest("id").actor


def done_to(chat_id: UUID) -> AuditEvent:
    audit_record("chat.erase", SYSTEM, "chat", chat_id)
    return AuditEvent.objects.latest("id")


def test_a_person_has_one_pseudonym_wherever_they_are_named(log: AuditLog) -> None:
    event = done_to(ONE)
    assert event.object_id == event.chat == said_by(ONE) == said_by(ONE)
    assert event.chat.startswith("p-")
    assert said_by(OTHER) != event.chat
    assert str(ONE) not in str(AuditEvent.objects.values_list())
    assert pseudonyms_of(key=log.key, chat_id=ONE) == [event.chat]


@pytest.mark.django_db
@pytest.mark.parametrize("object_id", [CLIENT, "15550100123", "Test User"])
def test_a_whatsapp_id_is_refused_where_a_chat_is_named(object_id: str) -> None:
    with pytest.raises(ValueError, match="UUID"):
        audit_record("chat.erase", SYSTEM, "chat", object_id)
    assert AuditEvent.objects.count() == 0


def test_erasure_leaves_a_log_that_verifies_and_links_to_nobody(log: AuditLog) -> None:
    name = said_by(ONE)
    kept = said_by(OTHER)
    log.seal()
    before = log.path.read_bytes()
    assert person_detach(chat_id=ONE) == 1
    assert log.verify().verified
    assert log.path.read_bytes() == before
    assert AuditEvent.objects.filter(actor=name).count() == 1
    assert pseudonyms_of(key=log.key, chat_id=ONE) == []
    assert pseudonyms_of(key=log.key, chat_id=OTHER) == [kept]
    # Whoever comes back is somebody new.
    assert said_by(ONE) != name
    assert person_detach(chat_id=uuid.uuid4()) == 0


class TestAMerge:
    def test_both_old_pseudonyms_stay_findable_and_go_together(self, log: AuditLog) -> None:
        older, younger = said_by(ONE), said_by(OTHER)
        person_merge(kept=ONE, gone=OTHER)
        assert said_by(ONE) == older
        assert pseudonyms_of(key=log.key, chat_id=ONE) == [older, younger]
        assert pseudonyms_of(key=log.key, chat_id=OTHER) == []
        assert log.verify().verified
        assert person_detach(chat_id=ONE) == 2
        assert AuditPerson.objects.count() == 0

    def test_of_one_that_has_no_pseudonym_yet(self, log: AuditLog) -> None:
        younger = said_by(OTHER)
        person_merge(kept=ONE, gone=OTHER)
        assert said_by(ONE) == younger
        assert pseudonyms_of(key=log.key, chat_id=ONE) == [younger]

    def test_of_three(self, log: AuditLog) -> None:
        third = uuid.uuid4()
        names = [said_by(chat_id) for chat_id in (ONE, OTHER, third)]
        person_merge(kept=OTHER, gone=third)
        person_merge(kept=ONE, gone=OTHER)
        assert sorted(pseudonyms_of(key=log.key, chat_id=ONE)) == sorted(names)
        assert said_by(ONE) == names[0]

    def test_of_two_that_were_never_recorded(self, log: AuditLog) -> None:
        person_merge(kept=ONE, gone=OTHER)
        assert AuditPerson.objects.count() == 0


def test_two_at_once_make_one_pseudonym(log: AuditLog) -> None:
    found = in_threads(lambda: pseudonyms_for(key=log.key, chat_ids=[ONE, OTHER])[ONE], 6)
    assert len(set(found)) == 1
    assert AuditPerson.objects.count() == 2


def test_no_row_says_who_it_was_or_what_they_said(world: World) -> None:
    """A whole conversation leaves neither number nor name nor text in the audit log."""
    world.say(CLIENT, "My daughter Noa is allergic to peanuts")
    world.remember(CLIENT, "Invoices go to TestCorp")
    world.say(CLIENT, "/reset")
    chat: Chat = world.chat(CLIENT)
    assert chat.client_name
    rows = "\n".join(str(row) for row in AuditEvent.objects.values_list())
    assert "session.create" in rows
    for text in (CLIENT, "15550100123", chat.client_name, str(chat.pk), "peanuts", "TestCorp"):
        assert text not in rows, text
