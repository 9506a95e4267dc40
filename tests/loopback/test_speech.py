"""The OpenAI transcriber, through HTTP, against a server that misbehaves on demand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing

import pytest

from memoryproject.foundation.integrations.openai_transcriber import (
    OpenAITranscriber,
    TranscriptionError,
)
from tests.loopback.conftest import KEY
from tests.loopback.openai_behaviours import (
    Behaviour,
    fails,
    hangs_up,
    quota_exceeded,
    rate_limited,
    raw,
    says,
)
from tests.loopback.openai_server import OpenAIServer

AUDIO = b"OggS" + bytes(range(256))


@pytest.fixture
def transcriber(server: OpenAIServer, waits: list[float]) -> Iterator[OpenAITranscriber]:
    made = OpenAITranscriber(KEY, server.base_url, "whisper-1", timeout=10, sleep=waits.append)
    with closing(made):
        yield made


def test_a_recording_becomes_its_words(
    server: OpenAIServer, transcriber: OpenAITranscriber
) -> None:
    server.transcript = " שלום, מתי המשלוח? "
    heard = transcriber.transcribe(AUDIO, mime_type="audio/ogg; codecs=opus")
    assert (heard.text, heard.model) == ("שלום, מתי המשלוח?", "whisper-1")
    (form,) = server.transcription_bodies
    assert form["model"] == "whisper-1"
    assert form["file"] == {
        "filename": "recording.ogg",
        "type": "audio/ogg",
        "size": len(AUDIO),
        "sha256": hashlib.sha256(AUDIO).hexdigest(),
    }


@pytest.mark.parametrize(
    ("mime_type", "ending"),
    [("audio/mpeg", "mp3"), ("audio/mp4", "m4a"), ("", "ogg"), ("audio/amr", "ogg")],
)
def test_the_file_is_named_by_its_type(
    mime_type: str, ending: str, server: OpenAIServer, transcriber: OpenAITranscriber
) -> None:
    transcriber.transcribe(AUDIO, mime_type=mime_type)
    assert server.transcription_bodies[0]["file"]["filename"] == f"recording.{ending}"


def test_what_passes_is_tried_again(
    server: OpenAIServer, transcriber: OpenAITranscriber, waits: list[float]
) -> None:
    server.script_transcriptions(fails(500), hangs_up(), rate_limited("3"), says("words"))
    tries: list[int] = []
    heard = transcriber.transcribe(
        AUDIO, mime_type="audio/ogg", before_attempt=lambda: tries.append(1)
    )
    assert heard.text == "words"
    assert waits == [1.0, 2.0, 4.0]
    assert len(tries) == 4


@pytest.mark.parametrize(
    ("behaviours", "permanent", "requests"),
    [
        ([fails(503)] * 4, False, 4),
        ([fails(400, "Audio file is corrupted")], True, 1),
        ([quota_exceeded()], True, 1),
        ([raw(b"no json")] * 4, False, 4),
        ([Behaviour(change=lambda _: {"text": 7})] * 4, False, 4),
    ],
)
def test_what_does_not_pass_is_told(
    behaviours: list[Behaviour],
    permanent: bool,
    requests: int,
    server: OpenAIServer,
    transcriber: OpenAITranscriber,
) -> None:
    server.script_transcriptions(*behaviours)
    with pytest.raises(TranscriptionError) as caught:
        transcriber.transcribe(AUDIO, mime_type="audio/ogg")
    assert caught.value.permanent is permanent
    assert len(server.requests) == requests
    assert KEY not in str(caught.value)


def test_an_empty_recording_is_refused_as_openai_does(transcriber: OpenAITranscriber) -> None:
    with pytest.raises(TranscriptionError, match="too short"):
        transcriber.transcribe(b"", mime_type="audio/ogg")
