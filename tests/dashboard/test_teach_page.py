"""Teaching the assistant on the page that explains an answer: remember, and correct in place."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from memories_app.models import Memory, MemoryStatus
from memoryproject.foundation.audit.audit_events import audit_key, pseudonyms_of
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Turn
from tests.dashboard.staff import staff_with
from tests.shown import words
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, asked

pytestmark = pytest.mark.django_db
QUESTION = "Are you open on Fridays?"
FACT = "We are open on Fridays until 14:00"
READS = ("sessions_app.view_turn", "memories_app.view_memory")


def why(turn: Turn) -> str:
    return f"/admin/sessions_app/turn/{turn.pk}/change/"


def teach(client: Client, turn: Turn, text: str = FACT, audience: str = "client") -> Any:
    address = f"/admin/sessions_app/turn/{turn.pk}/teach/"
    return client.post(address, {"content": text, "for": audience}, follow=True)


def correct(client: Client, turn: Turn, memory: Memory, text: str, seen: str | None = None) -> Any:
    address = f"/admin/sessions_app/turn/{turn.pk}/memory/{memory.pk}/"
    data = {"content": text, "seen": memory.content_hash if seen is None else seen}
    return client.post(address, data, follow=True)


def field(answer: Any, name: str) -> str:
    found = re.search(
        rf'<textarea id="{name}"[^>]*>\n(.*?)</textarea>', answer.content.decode(), re.S
    )
    assert found is not None
    return html.unescape(found[1])


@pytest.fixture
def recalled(world: World) -> World:
    world.with_answer_rules(min_similarity=0.0)
    world.remember(CLIENT, "TestCorp pays its invoices within 30 days")
    world.say(CLIENT, "/reset")
    world.say(CLIENT, "When does TestCorp pay its invoices?")
    return world


class TestRemember:
    def test_the_form_begins_with_what_the_client_wrote(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, QUESTION)
        page = admin_client.get(why(turn))
        assert field(page, "teach-text") == "Are you open on Fridays?"
        assert 'data-text="answer to: Are you open on Fridays?"' in page.content.decode()

    def test_for_this_client_only_the_client_is_answered_with_it(
        self, admin_client: Client, world: World
    ) -> None:
        world.with_answer_rules(min_similarity=0.0)
        turn = asked(world, QUESTION)
        answer = teach(admin_client, turn)
        assert answer.redirect_chain == [(why(turn), 302)]
        assert "It is remembered for this client from now on." in words(answer)
        memory = Memory.objects.get()
        assert (memory.content, memory.visibility, memory.source) == (FACT, "chat", "staff")
        assert memory.chat_id == turn.chat_id
        assert FACT in world.seen_by_model(CLIENT, "Until when on Fridays?")
        assert FACT not in world.seen_by_model(OTHER_CLIENT, "Until when on Fridays?")

    def test_for_everyone_others_are_answered_with_it_and_it_is_no_clients(
        self, admin_client: Client, world: World
    ) -> None:
        world.with_answer_rules(min_similarity=0.0)
        answer = teach(admin_client, asked(world, QUESTION), audience="everyone")
        assert "It is remembered for everyone from now on." in words(answer)
        memory = Memory.objects.get()
        assert (memory.visibility, memory.chat_id) == ("public", None)
        assert FACT in world.seen_by_model(OTHER_CLIENT, "Until when on Fridays?")

    def test_for_the_owner_it_stays_the_owners(
        self, admin_client: Client, world: World, settings: Any
    ) -> None:
        turn = asked(world, QUESTION, GODFATHER)
        # By the settings: what the turn recorded doesn't count.
        assert "Remember for this client" in words(admin_client.get(why(turn)))
        settings.GODFATHER_PHONE = frozenset({GODFATHER})
        assert "Remember for the owner" in words(admin_client.get(why(turn)))
        answer = teach(admin_client, turn)
        assert "It is remembered for the owner from now on." in words(answer)
        assert Memory.objects.get().visibility == "owner"

    @pytest.mark.parametrize("audience", ["client", "everyone"])
    def test_the_audit_log_names_the_answer_and_the_person(
        self, admin_client: Client, world: World, audience: str
    ) -> None:
        turn = asked(world, QUESTION)
        teach(admin_client, turn, audience=audience)
        event = AuditEvent.objects.get(action="memory.teach")
        assert (event.actor_kind, event.actor) == ("staff", "admin")
        assert (event.object_type, event.object_id) == ("turn", str(turn.turn_id))
        assert event.chat in pseudonyms_of(key=audit_key(), chat_id=turn.chat_id)
        assert event.content_hash == Memory.objects.get().content_hash
        assert AuditEvent.objects.get(action="memory.remember").content_hash == event.content_hash

    def test_the_question_itself_is_refused_and_kept(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, QUESTION)
        answer = teach(admin_client, turn, " Are you open  on Fridays? ")
        assert "Write what the assistant should know." in words(answer)
        assert '<details class="teach" open>' in answer.content.decode()
        assert not Memory.objects.exists()
        assert not AuditEvent.objects.filter(action="memory.teach").exists()

    def test_what_was_typed_stays_where_it_is_too_long(
        self, admin_client: Client, world: World
    ) -> None:
        long = "word " * 4_000 + "end"
        answer = teach(admin_client, asked(world, QUESTION), long)
        assert field(answer, "teach-text") == long
        assert 'role="alert"' in answer.content.decode()
        assert not Memory.objects.exists()

    def test_what_is_known_already_is_counted_and_told(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, QUESTION)
        teach(admin_client, turn)
        assert "This was known already" in words(teach(admin_client, turn))
        assert Memory.objects.get().told_count == 2

    def test_an_audience_that_there_is_not_is_refused(
        self, admin_client: Client, world: World
    ) -> None:
        assert teach(admin_client, asked(world, QUESTION), audience="nobody").status_code == 400
        assert not Memory.objects.exists()

    def test_an_answer_of_an_erased_question_can_be_taught(
        self, admin_client: Client, world: World
    ) -> None:
        turn = asked(world, QUESTION)
        Turn.objects.filter(pk=turn.pk).update(message=None)
        assert field(admin_client.get(why(turn)), "teach-text").startswith("answer to:")
        teach(admin_client, turn)
        assert Memory.objects.get().content == FACT

    def test_who_may_add_no_memories_is_offered_nothing_and_refused(self, world: World) -> None:
        turn = asked(world, QUESTION)
        reader = staff_with(*READS, "memories_app.change_memory")
        assert "Remember…" not in words(reader.get(why(turn)))
        assert teach(reader, turn).status_code == 403
        assert not Memory.objects.exists()

    def test_who_may_not_see_the_answer_is_refused(self, world: World) -> None:
        turn = asked(world, QUESTION)
        assert teach(staff_with("memories_app.add_memory"), turn).status_code == 403
        assert not Memory.objects.exists()


class TestCorrect:
    def test_a_recalled_memory_is_corrected_in_place_and_keeps_its_history(
        self, admin_client: Client, recalled: World
    ) -> None:
        turn, memory = Turn.objects.latest("id"), Memory.objects.get()
        page = admin_client.get(why(turn))
        assert field(page, f"correct-{memory.pk}") == memory.content
        answer = correct(admin_client, turn, memory, "TestCorp pays within 60 days")
        assert answer.redirect_chain == [(why(turn), 302)]
        assert "The memory is corrected." in words(answer)
        assert "says something else today" in words(answer)
        memory.refresh_from_db()
        assert memory.content == "TestCorp pays within 60 days"
        assert [each.content for each in memory.revisions.all()] == [
            "TestCorp pays its invoices within 30 days"
        ]
        event = AuditEvent.objects.get(action="memory.update")
        assert (event.actor, event.object_id) == ("admin", str(memory.pk))

    def test_a_change_by_a_colleague_meanwhile_is_not_overwritten(
        self, admin_client: Client, recalled: World
    ) -> None:
        turn, memory = Turn.objects.latest("id"), Memory.objects.get()
        seen = memory.content_hash
        correct(admin_client, turn, memory, "TestCorp pays within 45 days")
        answer = correct(admin_client, turn, memory, "TestCorp pays within 60 days", seen)
        assert "Somebody else changed this memory meanwhile." in words(answer)
        assert "What is stored: TestCorp pays within 45 days" in words(answer)
        assert field(answer, f"correct-{memory.pk}") == "TestCorp pays within 60 days"
        memory.refresh_from_db()
        assert memory.content == "TestCorp pays within 45 days"
        # Having seen it, staff may insist.
        correct(admin_client, turn, memory, "TestCorp pays within 60 days")
        memory.refresh_from_db()
        assert memory.content == "TestCorp pays within 60 days"

    def test_a_text_about_a_memory_that_is_not_on_the_page_is_not_lost(
        self, admin_client: Client, recalled: World
    ) -> None:
        turn, memory = Turn.objects.latest("id"), Memory.objects.get()
        Memory.objects.filter(pk=memory.pk).update(status=MemoryStatus.SUPERSEDED)
        answer = correct(admin_client, turn, memory, "TestCorp pays within 60 days")
        assert "superseded: change the newer one." in words(answer)
        assert "Your text, to copy" in words(answer)
        assert "TestCorp pays within 60 days" in words(answer)
        assert f'id="correct-{memory.pk}"' not in answer.content.decode()

    def test_an_erased_memory_is_not_found(self, admin_client: Client, recalled: World) -> None:
        turn, memory = Turn.objects.latest("id"), Memory.objects.get()
        Memory.objects.all().delete()
        assert correct(admin_client, turn, memory, "Anything").status_code == 404

    def test_who_may_change_no_memories_is_offered_nothing_and_refused(
        self, recalled: World
    ) -> None:
        turn, memory = Turn.objects.latest("id"), Memory.objects.get()
        reader = staff_with(*READS, "memories_app.add_memory")
        assert "Edit…" not in words(reader.get(why(turn)))
        assert correct(reader, turn, memory, "Anything").status_code == 403
        memory.refresh_from_db()
        assert memory.content == "TestCorp pays its invoices within 30 days"
