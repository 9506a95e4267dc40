"""What a memory would change is shown before it is saved, and nothing is stored by looking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from memories_app.models import Memory
from memories_app.models.memories import MemoryRevision
from memories_app.store.change import memory_patch
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.embedding.facade import embedder
from sessions_app.models import Turn
from sessions_app.turns.answer_review import answer_rate
from sessions_app.turns.change_trial import MAX_QUESTIONS, change_try, turns_to_try
from sessions_app.turns.dependencies import build_turn_dependencies
from tests.remembering import remember
from tests.shown import words_of
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db
TRY = "/admin/sessions_app/turn/change-trial/"
OPENS = "We open at 9 on weekdays"


@pytest.fixture(scope="module")
def asked(module_rows: None) -> None:
    world = new_world()
    remember(OPENS, visibility="public")
    world.say(CLIENT, "When do you open on weekdays?")
    world.say(OTHER_CLIENT, "Do you repair bicycles?")


def tried(client: Client, text: str, query: str = "", **more: str) -> str:
    answer = client.post(f"{TRY}{query}", {"content": text, **more}, headers={"X-Live": "yes"})
    assert answer.status_code == 200
    return words_of(answer.content.decode())


def test_a_correction_is_tried_and_taken_back(admin_client: Client, asked: None) -> None:
    memory = Memory.objects.get()
    before = AuditEvent.objects.exclude(action="conversation.read").count()
    shown = tried(admin_client, "We open at 7 on weekdays", f"?memory={memory.pk}")
    assert "For 1 of them something else would be recalled" in shown
    assert f"removed: {OPENS}" in shown
    assert "added: We open at 7 on weekdays" in shown
    memory.refresh_from_db()
    assert memory.content == OPENS
    assert not MemoryRevision.objects.filter(memory=memory).exists()
    assert AuditEvent.objects.exclude(action="conversation.read").count() == before
    # What was read of conversations is on record.
    assert AuditEvent.objects.filter(action="conversation.read").exists()


def test_a_new_memory_is_tried_for_everyone_and_for_a_client(
    admin_client: Client, asked: None
) -> None:
    text = "We repair bicycles of every kind"
    shown = tried(admin_client, text)
    assert "Do you repair bicycles?" in shown
    assert f"added: {text}" in shown
    turn = Turn.objects.get(chat__whatsapp_chat=CLIENT)
    shown = tried(admin_client, text, f"?turn={turn.pk}", **{"for": "client"})
    assert "Nothing would be recalled differently." in shown, "another client asked for it"
    assert Memory.objects.count() == 1


def test_what_can_not_be_stored_says_so(admin_client: Client, asked: None) -> None:
    assert "content" in tried(admin_client, "").lower()
    memory = Memory.objects.get()
    assert admin_client.post(f"{TRY}?turn=x", {"content": "a", "for": "client"}).status_code == 400
    assert admin_client.get(TRY).status_code == 302
    gone = f"{TRY}?memory=00000000-0000-0000-0000-000000000000"
    assert admin_client.post(gone, {"content": "a"}).status_code == 404
    assert "Nothing would be recalled differently." in tried(
        admin_client, OPENS, f"?memory={memory.pk}"
    )


def test_no_vector_is_made_within_the_transaction(asked: None) -> None:
    """A provider may make them, and a transaction waits for none."""
    made: list[str] = []

    class Counting:
        def __init__(self) -> None:
            self.embedder = embedder()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.embedder, name)

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            made.extend(texts)
            return self.embedder.embed(texts)

    memory, text = Memory.objects.get(), "We open at 7 on weekdays"
    after: list[int] = []

    def change(kept: Any) -> None:
        before = len(made)
        memory_patch(memory_id=memory.pk, changes={"content": text}, actor=SYSTEM, embedder=kept)
        after.append(len(made) - before)

    dependencies = replace(build_turn_dependencies(), embedder=Counting())
    trial = change_try(change, content=text, turns=turns_to_try(None), dependencies=dependencies)
    assert len(trial.differences) == 1
    assert text in made
    assert after == [0]


def test_it_takes_the_rights_to_read_and_to_change(client: Client, asked: None) -> None:
    user = User.objects.create_user("teacher", is_staff=True)
    client.force_login(user)
    memory = Memory.objects.get()

    def status(*rights: str) -> int:
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        return int(client.post(f"{TRY}?memory={memory.pk}", {"content": "x"}).status_code)

    reads = ("view_chat", "view_message", "view_turn")
    assert status(*reads) == 403
    assert status("change_memory", *reads[1:]) == 403
    assert status("change_memory", *reads) == 200


def test_questions_are_different_ones_and_good_answers_come_first(world: World) -> None:
    for number in range(3):
        world.say(CLIENT, f"Question {number % 2}?")
    world.say(CLIENT, "/help")
    world.say(OTHER_CLIENT, "Something else?")
    first = Turn.objects.order_by("id").first()
    assert first is not None
    found = [turn.message.content for turn in turns_to_try(None) if turn.message]
    assert found == ["Something else?", "Question 0?", "Question 1?"]
    user = User.objects.create_user("rater")
    turn = Turn.objects.filter(message__content="Question 1?").get()
    answer_rate(turn_id=turn.pk, user=user, actor=SYSTEM, is_good=True, reason="")
    assert turns_to_try(None)[0] == turn
    other: Any = world.chat(OTHER_CLIENT)
    assert turns_to_try(other.pk)[0].chat_id == other.pk
    assert len(turns_to_try(None)) <= MAX_QUESTIONS


def test_the_button_is_where_memories_are_written(admin_client: Client, asked: None) -> None:
    memory, turn = Memory.objects.get(), Turn.objects.order_by("id").first()
    assert turn is not None
    shown = admin_client.get(f"/admin/memories_app/memory/{memory.pk}/change/").content.decode()
    assert 'form="memory_form"' in shown
    assert 'id="memory_form"' in shown
    for address, query in (
        (f"/admin/memories_app/memory/{memory.pk}/change/", f"?memory={memory.pk}"),
        (f"/admin/sessions_app/turn/{turn.pk}/change/", f"?turn={turn.pk}"),
    ):
        assert f'formaction="{TRY}{query}"' in admin_client.get(address).content.decode()
