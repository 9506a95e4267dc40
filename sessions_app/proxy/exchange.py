"""One proxied call: its chat and memory before it, its messages and answer after it."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.integrations.llm import base as llm, reading
from memoryproject.foundation.integrations.retry import AttemptFailed
from memoryproject.foundation.integrations.whatsapp import whatsapp_chats
from memoryproject.foundation.rest_kit.authentication import Caller
from memoryproject.foundation.text.characters import storable
from sessions_app.conversations import epochs, message_store
from sessions_app.extraction.dependencies import enqueue_learning, is_learning_enabled
from sessions_app.inbound import facade as inbound
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.limits.answer_limits import MeteredChatModel, access_check
from sessions_app.models import CLIENT, GODFATHER, Chat, ChatSession, Role, Turn
from sessions_app.presentation.access import check_chat, speaker_of
from sessions_app.presentation.message_forms import MAX_CONTENT, ROLES
from sessions_app.proxy import responses
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.facade import memory_beside

logger = logging.getLogger(__name__)

Given = Sequence[Mapping[str, Any]]


@dataclass
class Exchange:
    """A call of a program in a chat. ``session`` None: memory is off there, and nothing is stored.

    ``given``: the messages as the program gave them. ``sent``: those with ``block``, what is
    remembered. ``as_completion`` makes a chat completion of what the server answers.
    """

    caller: Caller
    given: Given
    model: str
    session: ChatSession | None = None
    turn: Turn = field(default_factory=Turn)
    recalled: list[dict[str, Any]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    block: str = ""
    as_completion: Callable[[bytes], bytes] = bytes
    epoch: epochs.EpochSnapshot | None = None
    meter: MeteredChatModel | None = None
    day: date | None = None
    begun: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, caller: Caller, name: str, given: Given, model: str) -> "Exchange":
        """Open the chat of this name and recall what its last question needs.

        Raises NotFound for a chat out of reach, LimitReachedError, and database errors.
        """
        whatsapp_chat = whatsapp_chats.outside_chat(name)
        check_chat(caller, whatsapp_chat)
        exchange = cls(caller, given, model, sent=[dict(each) for each in given])
        now = timezone.now()
        rules = build_intake_rules()
        try:
            session, _ = inbound.session_open_in(
                whatsapp_chat=whatsapp_chat, rules=rules, now=now, actor=caller.actor
            )
        except inbound.MemoryDisabledError:
            return exchange
        chat = session.chat
        _name(chat, name)
        role = rules.chat_memory.role_in(chat)
        if role != GODFATHER:
            access_check(chat, rules.limits)
        exchange.session = session
        exchange.turn = Turn(
            turn_id=uuid4(),
            chat=chat,
            session=session,
            # A bound token sees no memories of other chats.
            user_role=CLIENT if caller.is_bound else role,
            asked_at=now,
        )
        exchange.meter = MeteredChatModel(
            llm.OfflineChatModel(), chat.pk, role == GODFATHER, rules.limits
        )
        exchange.day = exchange.meter.count_call(now)
        exchange.epoch = epochs.epoch_read(epochs.Reader(chat.pk, sees_all=role == GODFATHER))
        exchange._recall()
        return exchange

    def _recall(self) -> None:
        questions = [each for each in self.given if role_of(each) == Role.USER]
        query = content_text(questions[-1]) if questions else ""
        if not query.strip():
            return
        texts = [content_text(each) for each in self.given]
        dependencies = build_turn_dependencies()
        self.block, self.recalled = memory_beside(self.turn, query, texts, dependencies)
        if self.block:
            self.sent = with_memory(self.sent, self.block)

    @property
    def news(self) -> Given:
        """The messages that were not answered yet: those after the last one of the assistant."""
        roles = [role_of(each) for each in self.given]
        last = max(
            (place for place, role in enumerate(roles) if role == Role.ASSISTANT), default=-1
        )
        return [each for each in self.given[last + 1 :] if role_of(each) != Role.SYSTEM]

    def finish(self, body: bytes) -> None:
        """Store what was said and answered, and count it. ``body``: the server's answer.

        What fails is logged: the program has its answer.
        """
        if self.session is None:
            return
        try:
            answer = self._read(body)
            if answer is not None and self.meter and self.day:
                lines = [llm.ChatMessage(role_of(each), content_text(each)) for each in self.sent]
                self.meter.count_tokens(self.day, llm.ChatRequest(lines), answer)
            try:
                self._store(answer, timezone.now())
            except epochs.ForgottenMeanwhileError:
                # The answer, and what the model was told, may hold what was erased meanwhile.
                self._store(None, timezone.now())
        except Exception:
            logger.exception("A proxied exchange could not be stored.")

    def _read(self, body: bytes) -> llm.Completion | None:
        """Return the model's answer; None where there is none that could be read."""
        try:
            return reading.read_answer(self.as_completion(body), model=self.model)
        except reading.EndedBeforeTextError as ended:
            return ended.answer
        except AttemptFailed as failure:
            logger.info("A proxied answer is not stored: %s", failure)
            return None

    @transaction.atomic
    def _store(self, answer: llm.Completion | None, now: datetime) -> None:
        new = [_new(each, now) for each in self.news]
        if answer is not None:
            form = message_store.ChatForm(tool_calls=[each.as_dict() for each in answer.tool_calls])
            new.append(
                message_store.NewMessage("assistant", answer.text, now, metadata=form.stored_in({}))
            )
        if not new or self.session is None:
            return
        if answer is not None and self.epoch is not None:
            epochs.epoch_check(self.epoch)
        rules = build_intake_rules()
        add, key = rules.chat_memory.add_messages, self.session.pk
        portions = [
            new[first:][: message_store.MAX_MESSAGES]
            for first in range(0, len(new), message_store.MAX_MESSAGES)
        ]
        chat_ids, stored = self.caller.chat_ids, []
        for messages in portions:
            stored += add(conversation_id=key, messages=messages, now=now, chat_ids=chat_ids)
        if answer is None:
            return
        questions = [each for each in stored if each.role == Role.USER]
        about: dict[str, Any] = {
            "chat": stored[-1].session.chat,
            "role": rules.chat_memory.role_in(self.turn.chat),
            "context": speaker_of(self.caller).as_context(),
            "learn": enqueue_learning if is_learning_enabled() else None,
            "now": now,
        }
        inbound.messages_learn(rows=questions[:-1], **about)
        took = round((time.monotonic() - self.begun) * 1000)
        inbound.exchange_record(
            question=questions[-1] if questions else None,
            reply=stored[-1],
            turn_id=self.turn.turn_id,
            replay={
                "prompt": [_recorded(each) for each in self.sent],
                "recalled": self.recalled,
                "model": answer.model,
                "prompt_tokens": answer.prompt_tokens,
                "completion_tokens": answer.completion_tokens,
                "timings": {"model_ms": took},
            },
            **about,
        )


def with_memory(sent: list[dict[str, Any]], block: str) -> list[dict[str, Any]]:
    """Return the messages with the block after the program's own first system text."""
    if not sent or role_of(sent[0]) != Role.SYSTEM:
        return [{"role": "system", "content": block}, *sent]
    return [responses.with_block(sent[0], block, "text"), *sent[1:]]


def role_of(message: Mapping[str, Any]) -> str:
    """Return the role of a message of a chat API, in our name."""
    role = str(message["role"])
    return str({**ROLES, "function": Role.TOOL}.get(role, role))


def content_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message of a chat API."""
    content = message.get("content")
    if isinstance(content, list):
        content = message_store.text_of_parts(_parts(content))
    return storable(content) if isinstance(content, str) else ""


def _parts(content: Sequence[object]) -> list[dict[str, Any]]:
    """Return the parts of a content; LangChain lets texts be parts, too."""
    parts = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    return [
        each for each in parts if isinstance(each, dict) and isinstance(each.get("type", ""), str)
    ]


def _name(chat: Chat, name: str) -> None:
    """Let staff see who a chat of a program is, whose id may be a hash."""
    if not chat.client_name and chat.whatsapp_chat.endswith(f"@{whatsapp_chats.EXTERNAL_DOMAIN}"):
        chat.client_name = storable(name).strip()[:255]
        chat.save(update_fields=["client_name"])


def _new(message: Mapping[str, Any], now: datetime) -> message_store.NewMessage:
    role = role_of(message)
    content = message.get("content")
    is_small = isinstance(content, list) and message_store.form_size(content) <= MAX_CONTENT
    parts = _parts(content) if is_small and content else None
    form = message_store.ChatForm(
        tool_call_id=str(message.get("tool_call_id") or "") if role == Role.TOOL else "",
        name=storable(str(message.get("name") or "")),
        parts=parts,
    )
    text = content_text(message)
    return message_store.NewMessage(role, text, now, metadata=form.stored_in({}))


def _recorded(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of the prompt as replays hold it: its texts, without pictures."""
    kept = {name: message[name] for name in ("tool_call_id", "name") if message.get(name)}
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        kept["tool_calls"] = [each for each in calls if isinstance(each, dict)]
    return {"role": str(message["role"]), "content": content_text(message), **kept}
