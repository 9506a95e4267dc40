"""Asks the questions of conversations through the product's own turn, and lets a judge grade.

Import it after ``own_database``.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from answer_measures import (
    FIRST,
    VERDICT,
    exact_match,
    judge_prompt,
    read_verdict,
    recalled_at,
    token_f1,
)
from conversations import Conversation, Question
from django.db import DatabaseError, connections, transaction
from past_chats import clock_at, conversation_store

from memoryproject.foundation.integrations.context_limit import SharedContextLimit
from memoryproject.foundation.integrations.llm.base import (
    AnswerSchema,
    ChatMessage,
    ChatModelError,
    ChatRequest,
)
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
from memoryproject.foundation.integrations.retry import AttemptFailed
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.synchronous_chat import NoAnswerError, talk
from sessions_app.models import Chat, TurnReplay
from sessions_app.models.turns import Outcome
from sessions_app.recall.facade import MESSAGES, Viewer, recall
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.turn_dependencies import Dependencies

MAX_WAIT = 600.0
T = TypeVar("T")


class Stopped(Exception):
    """The run is to end: nothing is lost."""


class NotAnswered(Exception):
    """The model gave no answer."""


class Failures:
    """A guard that keeps what went wrong in this thread, with the waits that were asked for."""

    def __init__(self) -> None:
        self._own = threading.local()

    @property
    def noted(self) -> list[dict[str, Any]]:
        if not hasattr(self._own, "noted"):
            self._own.noted = []
        return self._own.noted

    def call(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except AttemptFailed as failure:
            self.noted.append({"error": str(failure), "retry_after": failure.retry_after})
            raise

    def take(self) -> list[dict[str, Any]]:
        """What was noted since the last time."""
        taken, self._own.noted = self.noted, []
        return taken


class SamplingModel(OpenAIChatModel):
    """The product's model, which also sends ``sampling`` (a seed, a temperature)."""

    def __init__(self, *given: Any, sampling: dict[str, Any], **named: Any) -> None:
        super().__init__(*given, **named)
        self._sampling = sampling

    def _body(self, *given: Any) -> dict[str, Any]:
        return {**super()._body(*given), **self._sampling}


@dataclass(frozen=True)
class Server:
    """A model on a server of OpenAI's kind."""

    base_url: str
    model: str
    key: str = ""


class ResultFiles:
    """A folder with a file for each question. A file is replaced as a whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "questions").mkdir(parents=True, exist_ok=True)

    def check_run(self, settings: dict[str, Any]) -> None:
        """Record the settings. Raises ValueError where an earlier run had others."""
        path = self.folder / "run.json"
        if not path.exists():
            self.write(path, settings)
            return
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = [
            f"{name} was {before.get(name)!r} and is {settings.get(name)!r}"
            for name in sorted({*before, *settings})
            if before.get(name) != settings.get(name)
        ]
        if changed:
            raise ValueError(f"{self.folder} holds another run: {'; '.join(changed)}")

    def read(self, key: str) -> dict[str, Any] | None:
        """The question's record; None if there is none, or none that can be read."""
        try:
            found = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and found.get("id") == key else None

    def keep(self, record: dict[str, Any]) -> None:
        self.write(self._path(record["id"]), record)

    def write(self, path: Path, content: Any) -> None:
        part = path.with_suffix(".part")
        part.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
        part.replace(path)

    def _path(self, key: str) -> Path:
        name = re.sub(r"[^\w-]", "_", key)
        if name != key:
            name += "-" + hashlib.sha256(key.encode()).hexdigest()[:8]
        return self.folder / "questions" / f"{name}.json"


@dataclass
class Run:
    """One run over a file. ``retries``: how often a question is asked again after the model's own
    retries; ``wait``: the seconds before the first time, doubled each time."""

    answerer: Server
    judge: Server | None
    files: ResultFiles
    sampling: dict[str, Any]
    timeout: float = 120.0
    retries: int = 4
    wait: float = 5.0

    def __post_init__(self) -> None:
        self.stopping = threading.Event()
        self.failures = Failures()
        self.chat_model = self._model(self.answerer)
        self.judge_model = self._model(self.judge) if self.judge else None

    def _model(self, server: Server) -> SamplingModel:
        return SamplingModel(
            server.key,
            server.base_url,
            server.model,
            timeout=self.timeout,
            sleep=self.stopping.wait,
            guard=self.failures,
            sampling=self.sampling,
        )

    def dependencies(self) -> Dependencies:
        """Those of the product, with the model that is measured."""
        built = build_turn_dependencies()
        limit = SharedContextLimit(base_url=self.answerer.base_url, model=self.answerer.model)
        # Enough for all attempts; a person wouldn't wait so long.
        rules = replace(built.rules, deadline=timedelta(seconds=5 * self.timeout))
        return replace(
            built,
            chat_model=self.chat_model,
            context_limit=limit,
            rules=rules,
            learn=None,
            enqueue=None,
            sleep=self.stopping.wait,
        )

    def ask_all(
        self,
        conversation: Conversation,
        whatsapp_chat: str,
        finished: Callable[[dict[str, Any]], None],
    ) -> None:
        """Ask what hasn't been answered yet of a conversation, in this thread."""
        open_ones = [
            (question, record)
            for question in conversation.questions
            if (record := self.files.read(question.key) or {}).get("state") != "done"
        ]
        try:
            needs_chat = any("answer" not in record for _, record in open_ones)
            stored = self._stored(conversation, whatsapp_chat) if needs_chat else None
            for question, record in open_ones:
                finished(self._ask_one(question, record, whatsapp_chat, stored))
        except Stopped:
            pass
        finally:
            connections.close_all()

    def _stored(
        self, conversation: Conversation, whatsapp_chat: str
    ) -> tuple[Chat, list[UUID], Dependencies]:
        dependencies = self.dependencies()
        return *conversation_store(conversation, whatsapp_chat, dependencies.embedder), dependencies

    def _ask_one(
        self,
        question: Question,
        record: dict[str, Any],
        whatsapp_chat: str,
        stored: tuple[Chat, list[UUID], Dependencies] | None,
    ) -> dict[str, Any]:
        """Answer and judge; what is finished of it is stored at once."""
        if "answer" not in record:
            record = {**_begun(question), "errors": record.get("errors", [])}
            if stored is None:
                raise AssertionError("a question without an answer needs its chat")
            with self._noted(record):
                found = self._patiently(lambda: _asked(question, whatsapp_chat, *stored), record)
                record |= found or {}
            record["state"] = (
                "failed" if found is None else "done" if self.judge is None else "answered"
            )
            self.files.keep(record)
        if record["state"] != "failed" and self.judge is not None:
            with self._noted(record):
                verdict = self._patiently(lambda: self._judged(record), record)
            record |= verdict or {}
            record["state"] = "answered" if verdict is None else "done"
            self.files.keep(record)
        return record

    @contextmanager
    def _noted(self, record: dict[str, Any]) -> Iterator[None]:
        self.failures.take()
        try:
            yield
        finally:
            record["errors"] = [*record.get("errors", []), *self.failures.take()]

    def _patiently(self, work: Callable[[], T], record: dict[str, Any]) -> T | None:
        """What the work gives, or None after all tries. Raises Stopped."""
        for number in range(self.retries + 1):
            if self.stopping.is_set():
                raise Stopped
            before = len(self.failures.noted)
            try:
                return work()
            except (NotAnswered, NoAnswerError, ChatModelError, ValueError) as error:
                failed = self.failures.noted[before:]
                if not failed:
                    self.failures.noted.append({"error": str(error), "retry_after": None})
                asked_for = max((one["retry_after"] or 0 for one in failed), default=0)
                if isinstance(error, ChatModelError) and error.permanent and not asked_for:
                    return None
            except DatabaseError as error:
                # The turn is taken back. Nothing says that another try would do better.
                self.failures.noted.append({"error": repr(error), "retry_after": None})
                return None
            if number < self.retries:
                self.stopping.wait(min(max(self.wait * 2**number, asked_for), MAX_WAIT))
        return None

    def _judged(self, record: dict[str, Any]) -> dict[str, Any]:
        """The judge's verdict. Raises ChatModelError, ValueError."""
        system, user = judge_prompt(
            record["question"], record["gold"], record["answer"], abstains=record["abstains"]
        )
        request = ChatRequest(
            [ChatMessage("system", system), ChatMessage("user", user)],
            answer_schema=AnswerSchema("verdict", VERDICT),
        )
        if self.judge_model is None:
            raise AssertionError("there is no judge")
        started = time.perf_counter()
        completion = self.judge_model.complete(request)
        correct, reason = read_verdict(completion.text)
        return {
            "correct": correct,
            "reason": reason,
            "judge_model": completion.model,
            "judge_tokens": {"in": completion.prompt_tokens, "out": completion.completion_tokens},
            "timings": {**record["timings"], "judge_ms": _ms_since(started)},
        }


def _begun(question: Question) -> dict[str, Any]:
    return {
        "id": question.key,
        "kind": question.kind,
        "question": question.text,
        "gold": question.answer,
        "abstains": question.abstains,
        "asked_at": question.asked_at.isoformat() if question.asked_at else None,
    }


def _asked(
    question: Question,
    whatsapp_chat: str,
    chat: Chat,
    ids: Sequence[UUID],
    dependencies: Dependencies,
) -> dict[str, Any]:
    """Ask through the service behind ``POST chat/``, and leave no trace of it in the chat.

    Raises NotAnswered, NoAnswerError.
    """
    moment = question.asked_at or datetime.now().astimezone()
    with clock_at(moment):
        found = recall(
            query=question.text,
            viewer=Viewer("client", chat.pk),
            embedder=dependencies.embedder,
            top_k=max(FIRST),
            min_similarity=0.0,
            sources=[MESSAGES],
        )
        # The next question must not find this one: the whole turn is taken back.
        with transaction.atomic():
            started = time.perf_counter()
            talked = talk(
                whatsapp_chat=whatsapp_chat,
                content=question.text,
                dependencies=dependencies,
                rules=build_intake_rules(),
                now=moment,
            )
            taken = _ms_since(started)
            replay = TurnReplay.of(talked.turn)
            transaction.set_rollback(True)
    if talked.turn.outcome != Outcome.ANSWERED:
        raise NotAnswered(str(talked.turn.error) or f"the turn ended as {talked.turn.outcome}")
    evidence = [str(ids[number]) for number in sorted(question.evidence)]
    recalled = [str(hit.id) for hit in found.hits]
    in_prompt = [one["id"] for one in replay.recalled if one.get("in_prompt")]
    return {
        "answer": talked.reply,
        "model": replay.model,
        "tokens": {"in": replay.prompt_tokens, "out": replay.completion_tokens},
        "recalled": replay.recalled,
        "prompt": replay.prompt,
        "evidence": evidence,
        "measures": _measures(question, talked.reply, evidence, recalled, in_prompt),
        "timings": {**replay.timings, "answer_ms": taken},
    }


def _measures(
    question: Question,
    reply: str,
    evidence: Sequence[str],
    recalled: Sequence[str],
    in_prompt: Sequence[str],
) -> dict[str, float]:
    """Return the measures of one answer: its words, and the evidence that it was given."""
    if question.abstains:
        return {}
    measures = {
        "exact": exact_match(question.answer, reply),
        "f1": token_f1(question.answer, reply),
    }
    if evidence:
        measures |= {f"evidence@{k}": recalled_at(evidence, recalled, k) for k in FIRST}
        measures["evidence_in_prompt"] = recalled_at(evidence, in_prompt, len(in_prompt))
    return measures


def _ms_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)
