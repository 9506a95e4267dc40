"""Pictures that people send are shown to a model that sees, and leave no copy behind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.documents.sandbox import SandboxExtractor
from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.media_storage.storage_choice import FolderStorage
from memoryproject.foundation.integrations.whatsapp.base import MediaError
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.media.dependencies import build_media_dependencies, media_request
from sessions_app.media.fetch import media_drop, media_fetch
from sessions_app.models import AnswerTrial, Chat, MediaFile, Message, Turn, TurnReplay
from sessions_app.trials.run_trial import TrialWanted, trial_run, trial_start
from sessions_app.turns.facade import next_needs_model
from sessions_app.turns.turn_dependencies import FileDependencies
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db
PNG = b"\x89PNG\r\n\x1a\n" + bytes(300)
JPEG = b"\xff\xd8\xff" + bytes(300)


@pytest.fixture(autouse=True)
def seeing(world: World, settings: Any, tmp_path: Path) -> World:
    """The world with a model that sees; files come from the recording provider."""
    settings.DATA_DIR = tmp_path
    world.with_rules(fetch_media=media_request)
    world.with_answer_rules(sees_pictures=True)
    world.use(
        media=FolderStorage(tmp_path / "media"),
        files=FileDependencies(folder=tmp_path / "documents", extractor=SandboxExtractor()),
    )
    return world


def show(world: World, text: str = "", content: bytes = PNG, *, kept: bool = False) -> None:
    """Somebody sends a picture; ``kept``: a worker has put it among the files already."""
    name = f"picture-{len(world.provider.files)}"
    world.provider.files[name] = content
    world.receive(message_from(CLIENT, text, kind="image", media=Media(media_id=name)))
    if kept:
        dependencies = replace(build_media_dependencies(), providers={"cloud": world.provider})
        media_fetch(media_id=MediaFile.objects.latest("created_at").pk, dependencies=dependencies)


def seen(world: World, place: int = -1) -> list[bytes]:
    """The pictures of a prompt, in their order."""
    return [each.content for message in world.prompt(place) for each in message.pictures]


@pytest.mark.parametrize("kept", [True, False])
def test_the_model_sees_the_picture_that_it_answers(world: World, kept: bool) -> None:
    show(world, "Is this the vase?", kept=kept)
    fetched = len(world.provider.fetched)
    world.work()
    assert seen(world) == [PNG]
    assert world.prompt()[-1].content == "[image] Is this the vase?"
    assert len(world.provider.fetched) == fetched + (0 if kept else 1)


def test_a_picture_without_words_is_answered_by_the_model(world: World) -> None:
    show(world)
    assert next_needs_model(world.chat(CLIENT).pk)
    world.work()
    assert seen(world) == [PNG]
    assert world.provider.sent[-1].text == "answer to: [image]"


def test_a_model_that_sees_none_is_shown_none(world: World) -> None:
    world.with_answer_rules(sees_pictures=False)
    show(world, "Is this the vase?", kept=True)
    world.work()
    assert seen(world) == []
    show(world, kept=True)
    world.work()
    assert "picture" in world.provider.sent[-1].text


def test_it_sees_what_came_since_the_last_answer_and_no_more(world: World) -> None:
    for number in range(4):
        show(world, content=PNG + bytes([number]), kept=True)
    Turn.objects.update(state="cancelled")
    world.say(CLIENT, "Which of them is the best?")
    assert seen(world) == [PNG + bytes([number]) for number in (1, 2, 3)]
    world.say(CLIENT, "And why?")
    assert seen(world) == []


@pytest.mark.parametrize(
    "content", [b"<svg onload='x'/>", PNG + bytes(5 * 1024 * 1024), b"%PDF-1.7 "]
)
def test_what_is_no_picture_or_too_large_is_not_shown(world: World, content: bytes) -> None:
    show(world, "Look", content)
    world.work()
    assert seen(world) == []
    assert world.provider.sent[-1].text == "answer to: [image] Look"


def test_a_picture_that_whatsapp_no_longer_has_leaves_the_words(world: World) -> None:
    show(world, "Look")
    world.provider.fail_next_media(MediaError("gone", code="gone", permanent=True))
    world.work()
    assert seen(world) == []
    assert world.provider.sent[-1].text == "answer to: [image] Look"


def test_a_model_that_refuses_pictures_is_asked_without_them(world: World) -> None:
    def answer(request: ChatRequest) -> str:
        if any(message.pictures for message in request.messages):
            raise ChatModelError("no image input", permanent=True)
        return "I can't see it. What is it?"

    world.use(chat_model=ScriptedChatModel(answer))
    show(world, "Look")
    world.work()
    assert world.provider.sent[-1].text == "I can't see it. What is it?"


def test_where_memory_is_off_it_is_seen_and_nothing_is_kept(world: World, tmp_path: Path) -> None:
    world.say(CLIENT, "Hi")
    Chat.objects.update(memory_enabled=False)
    show(world, "Is this the vase?")
    world.work()
    assert seen(world) == [PNG]
    assert not MediaFile.objects.exists()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_replay_names_the_message_and_has_no_bytes(world: World, admin_client: Client) -> None:
    show(world, "Is this the vase?", JPEG, kept=True)
    world.work()
    message = Message.objects.get(kind="image")
    replay = TurnReplay.objects.get()
    assert replay.prompt[-1]["pictures"] == [str(message.pk)]
    assert "base64" not in json.dumps(replay.prompt)
    page = admin_client.get(f"/admin/sessions_app/turn/{replay.pk}/change/").content.decode()
    assert f'<a href="/admin/sessions_app/message/{message.pk}/media/"' in page


def test_forgetting_the_message_clears_the_reference_and_the_file(
    world: World, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    show(world, "Is this the azalea?", kept=True)
    world.work()
    message = Message.objects.get(kind="image")
    with django_capture_on_commit_callbacks(execute=True):
        receipt = world.forget("message", message.pk)
    assert receipt.swept["media files"] == 1
    assert str(message.pk) not in json.dumps(TurnReplay.objects.get().prompt)
    assert list((tmp_path / "media").glob("*")) == []


def test_a_trial_shows_another_model_the_same_picture(world: World) -> None:
    show(world, "Is this the vase?", kept=True)
    world.work()
    other = ScriptedChatModel(lambda _request: "A vase.", name="other")
    assert tried(world, Turn.objects.latest("id"), other).state == "done"
    (request,) = other.requests
    assert [each.content for line in request.messages for each in line.pictures] == [PNG]


def test_the_page_of_trials_says_that_a_picture_is_no_longer_kept(
    admin_client: Client, world: World, settings: Any
) -> None:
    settings.MODEL_SEES_PICTURES = True
    show(world, "Is this the vase?", kept=True)
    world.work()
    turn = Turn.objects.latest("id")
    page = f"/admin/sessions_app/turn/{turn.pk}/trials/"
    gone = "1 picture that the answer saw is no longer kept, so that a trial answers without it."
    assert "picture" not in admin_client.get(page).content.decode()
    settings.MODEL_SEES_PICTURES = False
    assert "Models are shown no pictures now" in admin_client.get(page).content.decode()
    settings.MODEL_SEES_PICTURES = True

    seeing = tried(world, turn)
    assert seeing.unseen_pictures == 0
    assert world.dependencies.media is not None
    media_drop(world.dependencies.media, before=timezone.now())
    assert gone in admin_client.get(page).content.decode()
    blind = tried(world, turn)
    assert blind.unseen_pictures == 1
    shown = admin_client.get(page).content.decode()
    assert shown.count("Made without 1 picture that the answer saw.") == 1


def tried(world: World, turn: Turn, model: ScriptedChatModel | None = None) -> AnswerTrial:
    """A trial of an answer by another model, made."""
    user, _ = User.objects.get_or_create(username="dana")
    trial = trial_start(
        turn_id=turn.pk,
        trial_id=uuid4(),
        wanted=TrialWanted(model="other"),
        user=user,
        actor=SYSTEM,
        models=["other"],
        enqueue=lambda _key: None,
        now=timezone.now(),
    )
    other = model or ScriptedChatModel(lambda _request: "A vase.", name="other")
    trial_run(trial_id=trial.pk, dependencies=world.dependencies, model_named=lambda _name: other)
    trial.refresh_from_db()
    return trial
