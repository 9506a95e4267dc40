"""People who write to the assistant, through the services that webhooks and workers call."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.utils import timezone

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.store.remember import memory_remember
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.integrations.llm.base import ChatModel, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import Event, InboundMessage, Party
from sessions_app.forgetting.facade import ForgetDependencies, object_forget
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.history.strategies import SummarizationStrategy
from sessions_app.inbound.receive import events_receive
from sessions_app.inbound.synchronous_chat import Talk, talk
from sessions_app.inbound.take_message import IntakeRules
from sessions_app.models import Chat, ChatSession, ForgetReceipt, Message, Turn
from sessions_app.summaries.summarizer import SKILLS, Summarizer
from sessions_app.turns.queue import chat_answer
from sessions_app.turns.turn_dependencies import Dependencies
from tests.doubles.recording_provider import RecordingProvider

NUMBER_ID = "100000000000001"
GODFATHER = "15550199999@c.us"
CLIENT = "15550100123@c.us"
OTHER_CLIENT = "15550100456@c.us"


def message_from(whatsapp_chat: str, text: str, **changes: Any) -> InboundMessage:
    """A text as the Cloud API delivers it, written now by the person of that chat."""
    message_id = f"wamid.{uuid.uuid4().hex}"
    event = InboundMessage(
        provider="cloud",
        number_id=NUMBER_ID,
        delivery_key=f"{NUMBER_ID}:message:{message_id}",
        raw={"text": text},
        provider_message_id=message_id,
        party=Party(phone=whatsapp_chat.split("@")[0], name="Test User"),
        timestamp=timezone.now(),
        kind="text",
        text=text,
        business_address="15550100001",
    )
    return replace(event, **changes)


@dataclass
class World:
    """``enqueued`` holds the chats that were handed to workers and not worked off yet."""

    rules: IntakeRules
    dependencies: Dependencies
    enqueued: list[UUID] = field(default_factory=list)

    @property
    def provider(self) -> RecordingProvider:
        provider = self.dependencies.providers["cloud"]
        assert isinstance(provider, RecordingProvider)
        return provider

    def receive(self, *events: Event) -> None:
        """What a webhook does. ``on_commit`` hooks run only in tests with transaction=True,
        so the work is taken from the turns instead."""
        events_receive(received=events, rules=self.rules, enqueue=self.enqueued.append)

    def work(self) -> None:
        """What the workers do: answer a turn of every chat in which one waits, until none does."""
        waiting = Turn.objects.filter(state__in=["pending", "running", "replied"]).order_by()
        chats = waiting.values_list("chat_id", flat=True).distinct()
        while sum(self._answer(chat_id) for chat_id in list(chats.all())):
            pass
        self.enqueued.clear()

    def _answer(self, chat_id: UUID) -> int:
        return chat_answer(chat_id=chat_id, dependencies=self.dependencies, most=1)

    def say(self, whatsapp_chat: str, text: str, **changes: Any) -> list[str]:
        """One message and the answers to it."""
        sent = len(self.provider.sent)
        self.receive(message_from(whatsapp_chat, text, **changes))
        self.work()
        return [part.text for part in self.provider.sent[sent:]]

    def talk(self, text: str, whatsapp_chat: str = CLIENT) -> Talk:
        """What a caller of the API is answered."""
        return talk(
            whatsapp_chat=whatsapp_chat,
            content=text,
            dependencies=self.dependencies,
            rules=self.rules,
            now=timezone.now(),
        )

    def remember(self, whatsapp_chat: str, fact: str) -> None:
        """Tell the assistant a fact; it must confirm."""
        (reply,) = self.say(whatsapp_chat, f"/remember {fact}")
        assert reply.startswith("✅"), reply

    def seen_by_model(self, whatsapp_chat: str, text: str, **changes: Any) -> str:
        """All that the model reads and answers when this is said."""
        replies = self.say(whatsapp_chat, text, **changes)
        return "\n".join([*(message.content for message in self.prompt()), *replies])

    def turn_of(self, message_id: str) -> Turn:
        """The turn of the message with this provider's id."""
        return Turn.objects.get(provider_message_id=message_id)

    def chat(self, whatsapp_chat: str) -> Chat:
        return Chat.objects.get(whatsapp_chat=whatsapp_chat)

    def messages(self, whatsapp_chat: str) -> list[Message]:
        """All messages of a chat, by session and order."""
        said = Message.objects.filter(chat__whatsapp_chat=whatsapp_chat)
        return list(said.order_by("session__created_at", "order_num"))

    def prompt(self, place: int = -1) -> Sequence[Any]:
        """The messages of a prompt that went to the model; the last one by default."""
        model = self.dependencies.chat_model
        return model.requests[place].messages  # type: ignore[attr-defined]

    def with_rules(self, **changes: Any) -> None:
        """Change intake rules from here on."""
        self.rules = replace(self.rules, **changes)

    def use(self, **changes: Any) -> None:
        """Answer with another model, embedder, provider or limit from here on."""
        self.dependencies = replace(self.dependencies, **changes)

    def forget(self, kind: str, object_id: Any) -> ForgetReceipt:
        """Forget a thing of this kind, as staff do."""
        dependencies = ForgetDependencies(self.rules.chat_memory)
        return object_forget(kind=kind, object_id=object_id, dependencies=dependencies)

    def with_chat_memory(self, **changes: Any) -> None:
        """Change limits, godfather or strategy from here on, for intake and answers."""
        chat_memory = replace(self.rules.chat_memory, **changes)
        self.rules = replace(self.rules, chat_memory=chat_memory)
        self.dependencies = replace(self.dependencies, chat_memory=chat_memory)

    def summarizing(self, every: int = 4, **changes: Any) -> SummarizationStrategy:
        """Sum up every so many messages from here on, by the scripted model unless told
        otherwise; sum_up() does what the workers do."""
        changes.setdefault("summarizer", Summarizer(chat_model=self.dependencies.chat_model))
        strategy = SummarizationStrategy(
            summarize_every_n_messages=every, enqueue=self.enqueued.append, **changes
        )
        self.with_chat_memory(strategy=strategy)
        return strategy

    def sum_up(self, whatsapp_chat: str) -> int:
        """Call the strategy's hook for the chat's active session, as a commit does, and do
        what it found to do; returns how many summaries were stored."""
        session = self.session(whatsapp_chat)
        self.rules.chat_memory.strategy.post_add_messages_hook(session=session)
        return self.rules.chat_memory.manage(conversation_id=session.pk)

    def session(self, whatsapp_chat: str) -> ChatSession:
        """The chat's active session."""
        return ChatSession.objects.get(chat__whatsapp_chat=whatsapp_chat, status="active")

    def with_answer_rules(self, **changes: Any) -> None:
        """Change answer rules from here on."""
        self.use(rules=replace(self.dependencies.rules, **changes))


def asked(world: World, text: str, by: str = CLIENT) -> Turn:
    """Ask something, and return the turn that answered it."""
    world.say(by, text)
    return Turn.objects.latest("id")


def write_as(world: World, address: str, name: str, text: str = "shalom") -> None:
    """A message of somebody with a name, and the answer to it."""
    world.say(address, text, party=Party(phone=address.partition("@")[0], name=name))


def remember(world: World, content: str, visibility: str = "public", chat: str = "") -> Memory:
    """Store a fact without a message: of everyone, or of one chat."""
    return memory_remember(
        NewMemory(
            content=content, visibility=visibility, chat_id=world.chat(chat).pk if chat else None
        ),
        embedder=world.dependencies.embedder,
    ).memory


def new_chat_memory() -> ChatMemoryService:
    return ChatMemoryService(godfather=frozenset({GODFATHER}))


def new_rules(chat_memory: ChatMemoryService) -> IntakeRules:
    return IntakeRules(memory_enabled=True, chat_memory=chat_memory)


def new_chat_model() -> ScriptedChatModel:
    return ScriptedChatModel(answer_or_sum_up)


def answer_or_sum_up(request: ChatRequest) -> str:
    """Repeat the question, or all that was said, without the fence around it."""
    said = request.messages[-1].content
    return "\n".join(said.splitlines()[1:-1]) if summing_up(request) else f"answer to: {said}"


def new_dependencies(
    *, provider: RecordingProvider, chat_model: ChatModel, chat_memory: ChatMemoryService
) -> Dependencies:
    green = RecordingProvider(name="green", text_limit=20_000)
    providers = {"cloud": provider, "green": green, "console": RecordingProvider(name="console")}
    return Dependencies(
        chat_model=chat_model,
        embedder=WordLlamaEmbedder(),
        providers=providers,
        chat_memory=chat_memory,
        sleep=lambda _seconds: None,
    )


def new_world() -> World:
    """Return a world like the fixture's, for fixtures that make rows for a whole module."""
    chat_memory = new_chat_memory()
    dependencies = new_dependencies(
        provider=RecordingProvider(name="cloud"),
        chat_model=new_chat_model(),
        chat_memory=chat_memory,
    )
    return World(rules=new_rules(chat_memory), dependencies=dependencies)


def summing_up(request: ChatRequest) -> bool:
    """Whether a request to a model is for a summary, not for an answer."""
    tasks = tuple(skill.task for skill in SKILLS.values())
    return request.messages[0].content.startswith(tasks)
