"""Check the configured servers of models: what works, what was learned, and what to set.

Used by manage.py model_check and by the page *Models* under *Operations*.
"""

import io
import json
import math
import time
import wave
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
from django.conf import settings

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text, translate_error
from memoryproject.foundation.integrations import openai_transcriber, retry
from memoryproject.foundation.integrations.configured import (
    ModelServer,
    model_server,
    service_target,
)
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder
from memoryproject.foundation.integrations.llm import base as llm, openai_api, openai_chat
from memoryproject.foundation.integrations.llm.server_traits import traits_text
from memoryproject.foundation.outside_services.breaker import SharedTraits
from memoryproject.foundation.outside_services.models import ServiceName

# A server that loads its model at the first call needs minutes for it.
PATIENCE_SECONDS = 300.0
# The first answer of a model that had to be loaded takes so much longer than the next one.
COLD_SECONDS, COLD_TIMES = 5.0, 3.0
# Names of a server's models that are shown where ours isn't among them.
SHOWN_MODELS = 8
# What servers call the number of tokens that a model reads at once.
WINDOW_NAMES = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "n_ctx",
    "n_ctx_train",
)
SYSTEM = llm.ChatMessage("system", "You are a test. Answer in one short sentence.")
# The function that a model is to call, and the form of the JSON that it is to write.
_PROBES = json.loads(Path(__file__).with_name("model_check.json").read_text(encoding="utf-8"))
LOOKUP, COLOURS = _PROBES["tool"], llm.AnswerSchema(**_PROBES["answer_schema"])


@dataclass(frozen=True)
class Finding:
    """What one probe found. ``line``: what to write into ``.env``, or "".

    ``ok``: None where it is neither good nor bad.
    """

    ok: bool | None
    text: ErrorText
    line: str = ""

    @property
    def words(self) -> str:
        return translate_error(self.text)


@dataclass(frozen=True)
class Report:
    """The result of a check: its findings, and when it ended, or began where it is running."""

    findings: list[Finding]
    at: datetime
    is_running: bool = False

    @property
    def ok(self) -> bool:
        return all(each.ok is not False for each in self.findings)

    @property
    def lines(self) -> list[str]:
        """What to write into ``.env``."""
        return list(dict.fromkeys(each.line for each in self.findings if each.line))

    def as_dict(self) -> dict[str, Any]:
        found = [{"ok": each.ok, "text": each.words, "line": each.line} for each in self.findings]
        return {"ok": self.ok, "at": self.at.isoformat(), "findings": found, "env": self.lines}


def model_findings() -> Iterator[Finding]:
    """Probe each server of models that the settings name; yield each finding when it is there.

    It may take minutes.
    """
    if settings.CHAT_MODEL == "openai":
        yield from _check_chat(model_server(), settings.OPENAI_MODEL, settings.MODEL_EXTRA_BODY)
        if settings.OPENAI_FALLBACK_MODEL:
            fallback = model_server("OPENAI_FALLBACK")
            yield from _check_chat(fallback, settings.OPENAI_FALLBACK_MODEL, {})
    if settings.EMBEDDER == "openai":
        yield from _check_embeddings(model_server("EMBEDDING"), settings.EMBEDDING_MODEL)
    if settings.TRANSCRIPTION_MODEL:
        yield from _check_speech(model_server("TRANSCRIPTION"), settings.TRANSCRIPTION_MODEL)
    is_openai = "openai" in (settings.CHAT_MODEL, settings.EMBEDDER)
    if not is_openai and not settings.TRANSCRIPTION_MODEL:
        yield Finding(None, ErrorText("check_nothing"))


# The chat model.


def _check_chat(server: ModelServer, model: str, extra_body: dict[str, Any]) -> Iterator[Finding]:
    service = str(ServiceName.CHAT_MODEL)
    traits = SharedTraits(service, service_target(server.url, model))
    chat = openai_chat.OpenAIChatModel(
        server.key,
        server.url,
        model,
        timeout=PATIENCE_SECONDS,
        delays=(),
        traits=traits,
        **server.options,
        extra_body=extra_body,
    )
    try:
        yield from _check_window(server, model)
        answered = yield from _check_answers(chat, model)
        if answered:
            yield _check_turns(chat)
            yield _check_tools(chat, model)
            yield _check_json(chat, model)
    finally:
        chat.close()
    yield from _learned(traits.load(), service_target(server.url, model))


def _check_answers(chat: openai_chat.OpenAIChatModel, model: str) -> Generator[Finding, None, bool]:
    """Ask twice, since a server may load its model first; return whether it answers."""
    request = llm.ChatRequest(
        [SYSTEM, llm.ChatMessage("user", "Which colour has the sky?")], max_reply_tokens=200
    )
    try:
        first, first_seconds = _timed(lambda: chat.complete(request))
        second, seconds = _timed(lambda: chat.complete(request))
    except llm.ChatModelError as error:
        yield Finding(False, ErrorText("check_failed", model=model, why=error_text(error)))
        return False
    tokens = second.completion_tokens or max(len(second.text) // 4, 1)
    yield Finding(
        True,
        ErrorText(
            "check_answers",
            model=model,
            named=first.model,
            seconds=f"{seconds:.1f}",
            speed=f"{tokens / max(seconds, 0.001):.0f}",
        ),
    )
    if first_seconds > COLD_SECONDS and first_seconds > COLD_TIMES * seconds:
        yield from _cold(first_seconds, seconds)
    return True


def _cold(first: float, second: float) -> Iterator[Finding]:
    """Propose timeouts that a model which has to be loaded first keeps within."""
    needed = math.ceil(first * 1.5 / 10) * 10
    text = ErrorText("check_cold", first=f"{first:.0f}", second=f"{second:.1f}")
    timeout, deadline = min(needed, 150), min(max(needed * 2, 60), 600)
    is_enough = first < settings.MODEL_TIMEOUT_SECONDS
    yield Finding(is_enough, text, "" if is_enough else f"MODEL_TIMEOUT_SECONDS={timeout}")
    if deadline > settings.ANSWER_DEADLINE_SECONDS and not is_enough:
        longer = ErrorText("check_deadline", seconds=deadline)
        yield Finding(False, longer, f"ANSWER_DEADLINE_SECONDS={deadline}")


def _check_turns(chat: openai_chat.OpenAIChatModel) -> Finding:
    """Send what a paused chat and a group send: messages of one role together, and names."""
    turns = [
        llm.ChatMessage("user", "Good morning.", name="Dana"),
        llm.ChatMessage("assistant", "Good morning!"),
        llm.ChatMessage("user", "One moment.", name="Dana"),
        llm.ChatMessage("user", "Which day is after Monday?", name="Noa"),
    ]
    try:
        chat.complete(llm.ChatRequest([SYSTEM, *turns], max_reply_tokens=200))
    except llm.ChatModelError as error:
        return Finding(False, ErrorText("check_turns_failed", why=error_text(error)))
    return Finding(True, ErrorText("check_turns"))


def _check_tools(chat: openai_chat.OpenAIChatModel, model: str) -> Finding:
    question = llm.ChatMessage("user", "When do you open on Sunday? Use the function.")
    request = llm.ChatRequest([SYSTEM, question], max_reply_tokens=400, tools=[LOOKUP])
    try:
        completion = chat.complete(request)
    except llm.ChatModelError as error:
        return Finding(None, ErrorText("check_tools_failed", model=model, why=error_text(error)))
    if completion.tool_calls:
        return Finding(True, ErrorText("check_tools", model=model))
    return Finding(None, ErrorText("check_tools_unused", model=model))


def _check_json(chat: openai_chat.OpenAIChatModel, model: str) -> Finding:
    question = 'Name three colours as JSON: {"colours": ["…"]}. Write nothing else.'
    request = llm.ChatRequest(
        [llm.ChatMessage("user", question)], answer_schema=COLOURS, max_reply_tokens=400
    )
    try:
        completion = chat.complete(request)
        found = json.loads(completion.text.strip().removeprefix("```json").strip("`\n "))
        is_right = isinstance(found, dict) and isinstance(found.get("colours"), list)
    except llm.ChatModelError as error:
        return Finding(False, ErrorText("check_json_failed", model=model, why=error_text(error)))
    except ValueError:
        is_right = False
    if is_right:
        return Finding(True, ErrorText("check_json", model=model))
    is_needed = settings.EXTRACT_MEMORIES
    return Finding(False if is_needed else None, ErrorText("check_no_json", model=model))


def _check_window(server: ModelServer, model: str) -> Iterator[Finding]:
    """Look the model up in the server's list, which may say how much it reads at once."""
    listed = _models_of(server)
    if not listed:
        return
    names = [str(each.get("id", "")) for each in listed]
    ours = next((each for each in listed if _is_named(str(each.get("id", "")), model)), None)
    if ours is None:
        shown = ", ".join(sorted(names)[:SHOWN_MODELS])
        yield Finding(None, ErrorText("check_unlisted", model=model, names=shown))
        return
    window = _window_of(ours)
    if window is None:
        return
    limit = settings.MAX_CONTEXT_TOKENS
    is_within = limit is not None and limit <= window
    longest = max(settings.CLIENT_MAX_TOKENS, settings.GODFATHER_MAX_TOKENS)
    line = "" if is_within or longest <= window else f"MAX_CONTEXT_TOKENS={window}"
    yield Finding(True, ErrorText("check_window", model=model, tokens=window), line)


def _models_of(server: ModelServer) -> list[dict[str, Any]]:
    connection = openai_api.OpenAIConnection(server.key, server.url, timeout=30.0, **server.options)
    try:
        found = connection.call(lambda client: client.get("/models", cast_to=httpx2.Response))
        data = json.loads(found.content)
    except (retry.AttemptFailed, ValueError):
        # Not each server has it.
        return []
    finally:
        connection.close()
    listed = data.get("data") if isinstance(data, dict) else data
    return [each for each in listed or [] if isinstance(each, dict) and each.get("id")]


def _is_named(name: str, model: str) -> bool:
    """Return whether a server means our model. Gemini lists them as models/…, Ollama by a tag."""
    return name == model or name.removeprefix("models/") == model or name == f"{model}:latest"


def _window_of(listed: dict[str, Any]) -> int | None:
    inner = listed.get("meta")
    for fields in (listed, inner if isinstance(inner, dict) else {}):
        for name in WINDOW_NAMES:
            value = fields.get(name)
            if isinstance(value, int) and value > 0:
                return value
    return None


# Embeddings and transcription.


def _check_embeddings(server: ModelServer, model: str) -> Iterator[Finding]:
    service = str(ServiceName.EMBEDDER)
    traits = SharedTraits(service, service_target(server.url, model))
    embedder = OpenAIEmbedder(
        server.key,
        server.url,
        model,
        timeout=PATIENCE_SECONDS,
        traits=traits,
        **server.options,
        batch=settings.EMBEDDING_BATCH,
        max_tokens=settings.EMBEDDING_MAX_TOKENS,
    )
    # As many as one call takes, and one as long as a message may be.
    texts = [f"text {number}" for number in range(64)]
    texts.append("a long text of many words " * 300)
    try:
        vectors, seconds = _timed(lambda: embedder.embed(texts))
    except EmbedderError as error:
        yield Finding(False, ErrorText("check_failed", model=model, why=error_text(error)))
    else:
        yield Finding(
            True,
            ErrorText(
                "check_vectors",
                model=model,
                numbers=len(vectors[0]),
                texts=len(texts),
                seconds=f"{seconds:.1f}",
            ),
        )
    finally:
        embedder.close()
    yield from _learned(traits.load(), service_target(server.url, model))


def _check_speech(server: ModelServer, model: str) -> Iterator[Finding]:
    speech = openai_transcriber.OpenAITranscriber(
        server.key, server.url, model, timeout=PATIENCE_SECONDS, **server.options
    )
    try:
        _heard, seconds = _timed(lambda: speech.transcribe(_silence(), mime_type="audio/wav"))
    except openai_transcriber.TranscriptionError as error:
        yield Finding(False, ErrorText("check_failed", model=model, why=error_text(error)))
    else:
        yield Finding(True, ErrorText("check_speech", model=model, seconds=f"{seconds:.1f}"))
    finally:
        speech.close()


def _silence() -> bytes:
    """Return a second of silence as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as audio:
        audio.setnchannels(1)
        audio.setsampwidth(2)
        audio.setframerate(16_000)
        audio.writeframes(bytes(2 * 16_000))
    return file.getvalue()


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.monotonic()
    return work(), time.monotonic() - started


def _learned(learned: Any, target: str) -> Iterator[Finding]:
    if learned:
        yield Finding(True, ErrorText("check_learned", target=target, traits=traits_text(learned)))
