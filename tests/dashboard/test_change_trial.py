"""What a memory would change is shown before it is saved, and nothing is stored by looking."""

from __future__ import annotations

import re
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
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.embedding.facade import embedder
from sessions_app.models import (
    AnswerTrial,
    AssistantProfile,
    Message,
    StoredSetting,
    Turn,
    TurnReplay,
)
from sessions_app.trials.run_trial import trial_run
from sessions_app.turns.answer_review import answer_rate
from sessions_app.turns.change_trial import MAX_QUESTIONS, change_try, turns_to_try
from sessions_app.turns.dependencies import build_turn_dependencies
from tests.forms import opened
from tests.remembering import remember
from tests.shown import words_of
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db
LIVE = {"X-Requested-With": "live"}
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
    assert "the text is empty" in tried(admin_client, "").lower()
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


# What a model answers with the change.


@pytest.fixture
def models(settings: Any) -> None:
    settings.CHAT_MODEL, settings.OPENAI_API_KEY = "openai", "a-key"
    settings.OPENAI_MODEL, settings.COMPARISON_MODELS = "scripted", ["other"]
    settings.MODEL_PRICES, settings.MODEL_CURRENCY = {"scripted": (1_000.0, 1_000.0)}, "EUR"


def asks(page: str) -> list[str]:
    return re.findall(r'name="ask" value="([^"]+)"', page)


def answers(
    client: Client, address: str, values: Any, said: str
) -> tuple[str, list[ScriptedChatModel]]:
    """Ask for the answers as the page does, let a worker make them, and look again."""
    shown = client.post(address, values, headers=LIVE).content.decode()
    assert not AnswerTrial.objects.filter(state="waiting").exists(), "costs are shown before"
    ask = {**values, "ask": asks(shown)[0]}
    for _click in range(2):
        waiting = client.post(address, ask, headers=LIVE)
        assert waiting.status_code == 200
    assert "data-open" in waiting.content.decode()
    used = []
    for trial in AnswerTrial.objects.filter(state="waiting"):
        used.append(ScriptedChatModel(lambda _request: said, name=trial.model))
        trial_run(
            trial_id=trial.pk,
            dependencies=replace(build_turn_dependencies(), chat_model=used[-1]),
            model_named=lambda _name: used[-1],
        )
    return client.post(address, ask, headers=LIVE).content.decode(), used


def test_a_model_answers_with_the_changed_memory(
    admin_client: Client, asked: None, models: None
) -> None:
    memory, said = Memory.objects.get(), Message.objects.count()
    TurnReplay.objects.update(prompt_tokens=3_000, completion_tokens=1_000)
    address, text = f"{TRY}?memory={memory.pk}", "We open at 7 on weekdays"
    before = admin_client.post(address, {"content": text}, headers=LIVE).content.decode()
    assert "costs about EUR 4.00" in words_of(before)
    shown, (model,) = answers(admin_client, address, {"content": text}, "We open at seven.")
    assert "We open at seven." in words_of(shown)
    prompt = "\n".join(message.content for message in model.requests[0].messages)
    assert text in prompt
    assert OPENS not in prompt
    assert AnswerTrial.objects.count() == 1, "two clicks ask once"
    assert (Message.objects.count(), Memory.objects.get().content) == (said, OPENS)
    # Save posts what was typed to the memory's own page.
    save = f'formaction="/admin/memories_app/memory/{memory.pk}/change/"'
    assert save in shown
    assert f'name="content" value="{text}"' in shown


def test_a_model_answers_by_an_unsaved_profile(
    admin_client: Client, asked: None, models: None
) -> None:
    profile, _made = AssistantProfile.objects.get_or_create(pk=1)
    address = "/admin/sessions_app/assistantprofile/1/change/"
    form = {name: value[0] for name, value in opened(admin_client, address).items() if value}
    preview = "/admin/sessions_app/assistantprofile/preview/"
    assert f'formaction="{preview}" name="ask"' in admin_client.get(address).content.decode()
    values = {**form, "persona": "You speak like a sailor.", "ask": ""}
    shown, used = answers(admin_client, preview, values, "Ahoy.")
    assert words_of(shown).count("Ahoy.") == 2
    assert all("You speak like a sailor." in each.requests[0].messages[0].content for each in used)
    assert f'formaction="{address}"' in shown
    profile.refresh_from_db()
    assert "sailor" not in profile.persona
    wrong = admin_client.post(preview, {**values, "name": ""}, headers=LIVE)
    assert wrong.status_code == 422


def test_thresholds_and_the_model_are_tried_where_they_are_changed(
    admin_client: Client, asked: None, models: None
) -> None:
    address = "/admin/operations/settings/RECALL_MIN_SIMILARITY/"
    assert 'name="ask"' in admin_client.get(address).content.decode()
    tried = admin_client.post(address, {"RECALL_MIN_SIMILARITY": "1", "ask": ""}, headers=LIVE)
    assert f"removed: {OPENS}" in words_of(tried.content.decode())
    wrong = admin_client.post(address, {"RECALL_MIN_SIMILARITY": "7", "ask": ""}, headers=LIVE)
    assert "RECALL_MIN_SIMILARITY" in words_of(wrong.content.decode())
    model = "/admin/operations/settings/OPENAI_MODEL/"
    shown, _used = answers(admin_client, model, {"OPENAI_MODEL": "other", "ask": ""}, "By other.")
    assert words_of(shown).count("By other.") == 2
    assert not StoredSetting.objects.exists()
    unknown = {"OPENAI_MODEL": "gpt-secret", "ask": asks(shown)[0]}
    refused = admin_client.post(model, unknown, headers=LIVE).content.decode()
    assert "The model gpt-secret isn't among those to compare" in words_of(refused)
    port = "/admin/operations/settings/CLIENT_MESSAGES_PER_HOUR/"
    assert 'name="ask"' not in admin_client.get(port).content.decode()


def test_asking_a_model_takes_the_right_to_retry(client: Client, asked: None, models: None) -> None:
    user = User.objects.create_user("teacher", is_staff=True)
    client.force_login(user)
    rights = ("view_chat", "view_message", "view_turn", "change_memory")
    address, values = f"{TRY}?memory={Memory.objects.get().pk}", {"content": "We open at 7"}
    user.user_permissions.set(Permission.objects.filter(codename__in=rights[:-1]))
    assert client.post(address, values).status_code == 403
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    assert not asks(client.post(address, values).content.decode())
    ask = {**values, "ask": "00000000-0000-4000-8000-000000000000"}
    assert client.post(address, ask).status_code == 403
    assert not AnswerTrial.objects.exists()
