"""A message that was revoked or edited takes along what was learned from it."""

from __future__ import annotations

from django.db import transaction

from memories_app.models import MemorySource
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import ExtractionWork, Message
from tests.extraction.learning import Learning, contents, fact, memories, work
from tests.world import CLIENT

BOAT = "I own a boat"


class TestBeforeItIsStored:
    def test_a_message_that_is_revoked_before_is_not_read(self, learning: Learning) -> None:
        learning.world.say(CLIENT, BOAT)
        learning.revoke(Message.objects.get(role="user"))
        learning.teach(fact(BOAT))
        assert learning.learn() == 0
        assert learning.requests == []
        assert work().outcome == "nothing to learn from"

    def test_revoked_while_the_model_reads_it(self, learning: Learning) -> None:
        learning.world.say(CLIENT, BOAT)
        message = Message.objects.get(role="user")
        learning.during = lambda: learning.revoke(message)
        learning.teach(fact(BOAT))
        assert learning.learn() == 0
        assert contents() == []
        assert not work().due

    def test_edited_while_the_model_reads_it_the_new_text_is_read(self, learning: Learning) -> None:
        learning.world.say(CLIENT, BOAT)
        message = Message.objects.get(role="user")
        learning.during = lambda: learning.edit(message, "I own a bike")
        learning.teach(fact(BOAT))
        learning.teach(fact("I own a bike"))
        assert learning.learn() == 1
        assert contents() == ["I own a bike"]
        assert "I own a bike" in learning.seen()

    def test_edited_before_only_the_new_text_counts(self, learning: Learning) -> None:
        learning.world.say(CLIENT, BOAT)
        learning.edit(Message.objects.get(role="user"), "I own a bike")
        learning.teach(fact(BOAT))
        assert learning.learn() == 0
        assert work().outcome == "1 unsaid"

    def test_a_session_deleted_meanwhile_leaves_nothing(self, learning: Learning) -> None:
        learning.world.say(CLIENT, BOAT)
        session = learning.world.session(CLIENT)
        learning.during = lambda: session.delete()  # type: ignore[assignment]
        learning.teach(fact(BOAT))
        assert learning.learn() == 0
        assert contents() == []

    def test_a_chat_that_is_switched_off_while_the_model_reads(self, learning: Learning) -> None:
        learning.world.say(CLIENT, BOAT)

        def off() -> None:
            chat = learning.world.chat(CLIENT)
            chat.memory_enabled = False
            chat.save()

        learning.during = off
        learning.teach(fact(BOAT))
        assert learning.learn() == 0
        assert contents() == []


class TestRevoked:
    def test_what_it_alone_told_is_deleted(self, learning: Learning) -> None:
        message = learning.say(BOAT, fact(BOAT))
        learning.say("I like tea", fact("I like tea"))
        learning.revoke(message)
        assert contents() == ["I like tea"]
        assert AuditEvent.objects.filter(action="memory.forget").count() == 1

    def test_what_waits_for_staff_is_deleted_too(self, learning: Learning) -> None:
        message = learning.say(BOAT, fact(BOAT, confidence=0.1))
        learning.revoke(message)
        assert contents() == []

    def test_what_another_message_told_as_well_stays(self, learning: Learning) -> None:
        first = learning.say(BOAT, fact(BOAT))
        second = learning.say("as I said: I own a boat", fact(BOAT))
        learning.revoke(first)
        (memory,) = memories()
        assert (memory.told_count, memory.source_message_id) == (1, second.pk)
        assert not MemorySource.objects.filter(source_message_id=first.pk).exists()
        learning.revoke(second)
        assert contents() == []

    def test_what_was_remembered_by_a_command_stays(self, learning: Learning) -> None:
        learning.world.remember(CLIENT, BOAT)
        learning.revoke(learning.say(BOAT, fact(BOAT)))
        (memory,) = memories()
        assert (memory.source, memory.told_count) == ("command", 1)

    def test_what_it_had_superseded_counts_again(self, learning: Learning) -> None:
        learning.world.remember(CLIENT, "The price is 35")
        message = learning.say("The price is 40", fact("The price is 40"))
        assert contents(status="active") == ["The price is 40"]
        learning.revoke(message)
        assert contents() == ["The price is 35"]
        assert memories()[0].status == "active"

    def test_in_the_middle_of_a_chain_the_newest_goes_on_to_count(self, learning: Learning) -> None:
        learning.say("The price is 35", fact("The price is 35"))
        message = learning.say("The price is 40", fact("The price is 40"))
        learning.say("The price is 45", fact("The price is 45"))
        learning.revoke(message)
        assert contents(status="active") == ["The price is 45"]
        (older,) = memories(status="superseded")
        assert older.superseded_by == memories(status="active")[0]

    def test_what_staff_merged_goes_with_its_message(self, learning: Learning) -> None:
        message = learning.say("My boat is blue", fact("My boat is blue"))
        other = learning.say("The boat of mine is blue", fact("The boat of mine is blue"))
        assert len(memories()) == 2
        kept, merged = memories(source_message_id=other.pk)[0], memories()[0]
        with transaction.atomic():
            merged.tellings.update(memory=kept)
            merged.status, merged.superseded_by = "superseded", kept
            merged.superseded_at = merged.created_at
            merged.save()
            kept.told_count = 2
            kept.save()
        learning.revoke(message)
        (memory,) = memories()
        assert (memory.pk, memory.told_count) == (kept.pk, 1)


class TestEdited:
    def test_the_turn_is_learned_from_again(self, learning: Learning) -> None:
        message = learning.say("The price is 54", fact("The price is 54"))
        learning.edit(message, "The price is 45")
        assert contents() == []
        assert work().due
        learning.teach(fact("The price is 45"))
        assert learning.learn() == 1
        assert contents(status="active") == ["The price is 45"]

    def test_after_newer_turns_it_waits_for_staff(self, learning: Learning) -> None:
        """Else the older statement would take the place of the newer one."""
        message = learning.say("The price is 53", fact("The price is 53"))
        learning.say("The price is 40", fact("The price is 40"))
        learning.edit(message, "The price is 35")
        learning.teach(fact("The price is 35"))
        learning.learn()
        assert contents(status="active") == ["The price is 40"]
        assert contents(status="proposed") == ["The price is 35"]

    def test_an_edit_of_nothing_learned_changes_nothing(self, learning: Learning) -> None:
        learning.world.remember(CLIENT, BOAT)
        learning.edit(Message.objects.get(role="user"), "/remember I own a bike")
        assert not ExtractionWork.objects.exists()
        assert contents() == [BOAT]
