"""A voice message: its words become the message's text, where a model listens."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from memoryproject.foundation.integrations.openai_transcriber import TranscriptionError
from memoryproject.foundation.integrations.whatsapp.base import MediaError
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.models import Turn
from sessions_app.turns.open_questions import questions_resume
from sessions_app.turns.turn_dependencies import FileDependencies
from tests.documents.conftest import as_if_killed_before_the_answer
from tests.doubles.direct_extractor import DirectExtractor
from tests.doubles.scripted_transcriber import ScriptedTranscriber
from tests.world import CLIENT, World

Listen = Callable[..., ScriptedTranscriber]


@pytest.fixture
def listening(world: World, folder: Path) -> Listen:
    """Lets a transcriber with this script listen from here on."""

    def use(*script: str | TranscriptionError) -> ScriptedTranscriber:
        transcriber = ScriptedTranscriber(*script)
        dependencies = FileDependencies(
            folder=folder, extractor=DirectExtractor(), transcriber=transcriber
        )
        world.use(files=dependencies)
        return transcriber

    return use


def records(world: World, content: bytes = b"audio") -> list[str]:
    media = Media(media_id=uuid.uuid4().hex, mime_type="audio/ogg; codecs=opus")
    world.provider.files[media.media_id] = content
    return world.say(CLIENT, "", kind="voice", media=media)


def test_what_is_said_becomes_the_text(world: World, listening: Listen, folder: Path) -> None:
    transcriber = listening("Do you deliver on Mondays?")
    assert records(world) == ["answer to: [voice] Do you deliver on Mondays?"]

    message = world.messages(CLIENT)[0]
    assert (message.kind, message.content) == ("voice", "Do you deliver on Mondays?")
    assert message.metadata["transcript"] == {"model": "scripted"}
    assert message.tokens == len(message.content) // 4
    assert transcriber.heard == [b"audio"]
    assert list(folder.glob("*")) == [], "the recording is not kept"
    assert "deliver on Mondays" in world.seen_by_model(CLIENT, "What did I ask?")


def test_hebrew_that_is_said_is_answered_in_hebrew(world: World, listening: Listen) -> None:
    listening("מתי המשלוח מגיע?")
    records(world)
    assert world.chat(CLIENT).language == "he"


def test_without_a_model_it_is_stored_and_told(world: World, folder: Path) -> None:
    told = "I received your recording, but I can't listen to recordings yet."
    assert records(world)[0].startswith(told)
    files = FileDependencies(folder=folder, extractor=DirectExtractor())
    world.use(files=files)
    assert records(world)[0].startswith(told)
    assert world.provider.fetched == []
    assert [message.content for message in world.messages(CLIENT)][::2] == ["", ""]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ([TranscriptionError("down")], "couldn't listen to your recording just now"),
        (["  "], "couldn't hear any words"),
    ],
)
def test_unheard_it_is_told(script: list[str], told: str, world: World, listening: Listen) -> None:
    listening(*script)
    (reply,) = records(world)
    assert told in reply
    assert world.messages(CLIENT)[0].content == ""


def test_a_recording_that_cannot_be_fetched_is_told(world: World, listening: Listen) -> None:
    transcriber = listening()
    world.provider.fail_next_media(*[MediaError("down")] * 4)
    assert "couldn't listen" in records(world)[0]
    assert transcriber.heard == []


@pytest.mark.parametrize("away", ["transcriber", "provider"])
def test_a_recording_is_heard_later(world: World, listening: Listen, away: str) -> None:
    down = [TranscriptionError("down", is_outside=True)] if away == "transcriber" else []
    listening(*down, "Do you deliver on Mondays?")
    if away == "provider":
        world.provider.fail_next_media(*[MediaError("down")] * 4)
    assert "couldn't listen to your recording just now" in records(world)[0]
    later = timezone.now() + timedelta(minutes=1)
    questions_resume(enqueue=world.enqueued.append, max_age=timedelta(hours=24), now=later)
    Turn.objects.filter(state="pending").update(not_before=None)
    world.work()
    assert world.provider.sent[-1].text == "answer to: [voice] Do you deliver on Mondays?"
    assert len(world.provider.sent) == 2


def test_killed_after_it_was_heard_it_is_not_heard_again(world: World, listening: Listen) -> None:
    transcriber = listening("Do you deliver on Mondays?")
    records(world)
    as_if_killed_before_the_answer()

    world.work()

    answer = "answer to: [voice] Do you deliver on Mondays?"
    assert [part.text for part in world.provider.sent] == [answer, answer]
    assert len(transcriber.heard) == 1


def test_with_memory_off_it_is_answered_and_not_kept(world: World, listening: Listen) -> None:
    listening("Do you deliver on Mondays?")
    world.with_rules(memory_enabled=False)
    assert records(world) == ["answer to: Do you deliver on Mondays?"]
    turn = Turn.objects.get()
    assert (turn.unstored_text, turn.context) == ("", {"kind": "voice"})
