"""A world that learns: turns go through the real services, the model says what a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import (
    Event,
    MessageEdited,
    MessageRevoked,
)
from sessions_app.extraction.extract import Extractor, chat_learn
from sessions_app.models import ExtractionWork, Message
from tests.world import CLIENT, World, message_from


def fact(content: str, quote: str | None = None, **changes: Any) -> dict[str, Any]:
    """One fact of a model's answer; by default its quote is the fact itself."""
    quote = content if quote is None else quote
    return {"fact": content, "quote": quote, "type": "fact", "confidence": 0.9, **changes}


Lesson = Sequence[dict[str, Any]] | str | Exception


@dataclass
class Learning:
    """``lessons``: what the model finds in the next requests, one each, facts or a raw text or
    a failure; then nothing. ``during`` is called while the model reads."""

    world: World
    extractor: Extractor = field(init=False)
    lessons: list[Lesson] = field(default_factory=list)
    requests: list[ChatRequest] = field(default_factory=list)
    handed: list[UUID] = field(default_factory=list)
    during: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        dependencies = self.world.dependencies
        self.world.dependencies = replace(dependencies, learn=self.handed.append)
        self.extractor = Extractor(
            chat_model=ScriptedChatModel(self._answer),
            embedder=dependencies.embedder,
            godfather=self.world.rules.chat_memory.godfather,
        )

    def _answer(self, request: ChatRequest) -> str:
        self.requests.append(request)
        during, self.during = self.during, None
        if during is not None:
            during()
        lesson: Lesson = self.lessons.pop(0) if self.lessons else []
        if isinstance(lesson, Exception):
            raise lesson
        return lesson if isinstance(lesson, str) else json.dumps({"facts": list(lesson)})

    def teach(self, *facts: dict[str, Any]) -> None:
        """The model finds these in the next request."""
        self.lessons.append(facts)

    def learn(self, whatsapp_chat: str = CLIENT) -> int:
        """What the worker does; returns how many facts were stored."""
        chat = self.world.chat(whatsapp_chat)
        return chat_learn(chat_id=chat.pk, extractor=self.extractor)

    def say(self, text: str, *facts: dict[str, Any], chat: str = CLIENT, **changes: Any) -> Message:
        """Somebody says this, it is answered, and the model finds these facts in it."""
        event = message_from(chat, text, **changes)
        self.world.receive(event)
        self.world.work()
        self.teach(*facts)
        self.learn(chat)
        return Message.objects.get(provider_message_id=event.provider_message_id)

    def with_extractor(self, **changes: Any) -> None:
        self.extractor = replace(self.extractor, **changes)

    def revoke(self, message: Message) -> None:
        self.world.receive(_about(message, MessageRevoked))

    def edit(self, message: Message, text: str) -> None:
        self.world.receive(_about(message, MessageEdited, text=text))

    def try_again(self) -> None:
        """As if the wait after a failure were over."""
        ExtractionWork.objects.update(not_before=None)

    def seen(self, place: int = -1) -> str:
        """All that the model read in a request."""
        return "\n".join(message.content for message in self.requests[place].messages)


def _about(message: Message, kind: type[Any], **more: Any) -> Event:
    made: Event = kind(
        provider=message.provider,
        number_id=message.number_id,
        delivery_key=f"{kind.__name__} {message.pk} {timezone.now()}",
        original_id=message.provider_message_id,
        timestamp=timezone.now(),
        party=message_from(message.chat.whatsapp_chat, "").party,
        raw={},
        **more,
    )
    return made


def memories(**which: Any) -> list[Memory]:
    """What is stored, oldest first."""
    return list(Memory.objects.filter(**which).order_by("created_at", "memory_id"))


def contents(**which: Any) -> list[str]:
    return [memory.content for memory in memories(**which)]


def work() -> ExtractionWork:
    """The last turn's."""
    return ExtractionWork.objects.order_by("-turn_id")[0]


DOWN = ChatModelError("The model server could not be reached.")
