"""What is learned and summed up of a chat, by models that tell all that they were sent."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.extraction.extract import Extractor, chat_learn
from sessions_app.extraction.facts_form import MAX_FACT_LENGTH, MAX_FACTS
from sessions_app.history.strategies import SummarizationStrategy
from sessions_app.models import Chat, ChatSession, ExtractionWork, Message, SummarizationMetadata
from sessions_app.summaries.summarizer import Summarizer
from tests.world import World

# Summaries of so few messages that every chat has some.
EVERY = 2


# A prompt's fences have marks by chance. What is stored of an answer depends on its digits, and on
# whether two prompts have the same minute.
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
MARK = re.compile(r"(?<=[</])([a-z_]+)-[0-9a-f]{12}(?=>)")


# An answer that repeats the instructions is refused, and would never be seen: they are told in
# other words.
IN_OTHER_WORDS = {"on WhatsApp": "by WhatsApp", "<memories-": "<memory-", "You are ": "I am "}


def echo(request: ChatRequest) -> str:
    """Tells whoever asks all that the model was sent, with the same mark and time each time."""
    text = "\n".join(message.content for message in request.messages)
    for own, others in IN_OTHER_WORDS.items():
        text = text.replace(own, others)
    return TIME.sub("2026-01-02 03:04", MARK.sub(r"\1-mark", text))


@dataclass
class Telltale:
    """A model that keeps what it is sent. Asked for facts it takes every line for one, word
    for word; asked for a summary it repeats all."""

    seen: list[str] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> str:
        read = "\n".join(message.content for message in request.messages)
        self.seen.append(read)
        if request.answer_schema is None:
            return echo(request)
        lines = request.messages[-1].content.splitlines()
        facts = [
            {"fact": line, "quote": line, "type": "fact", "confidence": 0.9}
            for line in lines
            if line.strip() and len(line) <= MAX_FACT_LENGTH
        ]
        return json.dumps({"facts": facts[:MAX_FACTS]})


def turns_put_on_record(world: World) -> None:
    """Turns wait to be learned from, from here on."""
    world.dependencies = replace(world.dependencies, learn=lambda _chat_id: None)


def learn(world: World, chat: Chat) -> list[str]:
    """Learn from the chat's turns that wait for it; what the model was sent, and what is stored
    now of the chat, whoever may see it."""
    model = Telltale()
    known = set(Memory.objects.values_list("pk", flat=True))
    extractor = Extractor(chat_model=ScriptedChatModel(model), embedder=world.dependencies.embedder)
    chat_learn(chat_id=chat.pk, extractor=extractor)
    assert model.seen, "nothing was learned from"
    work = ExtractionWork.objects.filter(turn__chat=chat).order_by("turn")
    assert not work.filter(due=True).exists()
    learned = Memory.objects.exclude(pk__in=known).order_by("created_at", "content")
    told = [text for pair in work.values_list("outcome", "error") for text in pair]
    return [*model.seen, *learned.values_list("content", flat=True), *told]


def sum_up(world: World, chat: Chat) -> list[str]:
    """Sum up all sessions of the chat; what the model was sent, and what is stored of it."""
    model = Telltale()
    service = world.rules.chat_memory
    summarizer = Summarizer(chat_model=ScriptedChatModel(model))
    strategy = SummarizationStrategy(
        summarizer=summarizer, summarize_every_n_messages=EVERY, delete_summarized_messages=False
    )
    service = replace(service, strategy=strategy)
    for session in ChatSession.objects.filter(chat=chat).order_by("created_at"):
        strategy.post_add_messages_hook(session=session)
        service.manage(conversation_id=session.pk)
    assert model.seen, "nothing was summed up"
    records = SummarizationMetadata.objects.filter(session__chat=chat).order_by("created_at")
    stored = [text for pair in records.values_list("digest", "chapter") for text in pair]
    summaries = Message.objects.filter(chat=chat, role="summary").order_by("received_at")
    return [*model.seen, *stored, *summaries.values_list("content", flat=True)]
