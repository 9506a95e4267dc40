"""Several clients, a group and the owner, with secrets of every kind that are all alike."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memories_app.documents.document_store import IncomingFile, document_receive
from memories_app.documents.read_document import document_store
from memories_app.facts.validation import NewMemory
from memories_app.models import Memory, SourceDocument
from memories_app.store.change import memory_supersede
from memories_app.store.remember import memory_remember
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.conversations.chat_addresses import chat_for_group, chat_for_party
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.session_lifecycle import session_end, session_open
from sessions_app.embedding.message_vectors import messages_embed
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.history.strategies import SummarizationStrategy
from sessions_app.inbound.take_message import IntakeRules
from sessions_app.models import Chat, ChatSession
from sessions_app.turns.turn_dependencies import Dependencies
from tests.doubles.direct_extractor import DirectExtractor
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.doubles.recording_provider import RecordingProvider
from tests.privacy.models import echo, learn, turns_put_on_record
from tests.privacy.oracle import Secret, Viewer, mark
from tests.remembering import memory_expire_at
from tests.world import CLIENT, GODFATHER, NUMBER_ID, OTHER_CLIENT, World

THIRD_CLIENT = "15550100789@c.us"
SECOND_CHAT = "15550199998@c.us"
GROUP_ID = "120363000000000001"
GROUP = f"{GROUP_ID}@g.us"
OWNER_IDS = frozenset({GODFATHER, SECOND_CHAT})
CHATS = (CLIENT, OTHER_CLIENT, THIRD_CLIENT, GROUP, GODFATHER, SECOND_CHAT)

VIEWERS = (
    Viewer("a client", CLIENT, CLIENT),
    Viewer("another client", OTHER_CLIENT, OTHER_CLIENT),
    Viewer("a third client", THIRD_CLIENT, THIRD_CLIENT),
    Viewer("a client in the group", GROUP, CLIENT, is_group=True),
    Viewer("the godfather in the group", GROUP, GODFATHER, is_group=True, owner=True),
    Viewer("the godfather", GODFATHER, GODFATHER, owner=True),
    Viewer("the godfather's second id", SECOND_CHAT, SECOND_CHAT, owner=True),
)

# All scopes hold the same matters, so that nothing but the scope keeps them apart.
MATTERS = (
    "{mark} from TestCorp pays the invoice in cash",
    "the guard {mark} hides the spare key under the flowerpot",
    "call {mark} before TestCorp delivers the pallets",
    "{mark} מהחברה משלמת את החשבונית במזומן",
    "TestCorp quietly promised {mark} a discount on every order",
)
STATES = (
    *("active", "active", "active", "pinned", "superseded", "proposed", "expired", "document"),
    "learned",
)


@dataclass(frozen=True)
class MemoryPlan:
    """``place`` is the chat's in CHATS; one past the end: it came from no chat."""

    visibility: str
    place: int
    state: str
    matter: int


@dataclass(frozen=True)
class SaidPlan:
    """Messages in one chat, in ``sessions`` sessions."""

    place: int
    matters: Sequence[int]
    sessions: int


@dataclass
class Town:
    """The world with its secrets."""

    world: World
    secrets: list[Secret] = field(default_factory=list)

    def chat(self, whatsapp_chat: str) -> Chat:
        return self.world.chat(whatsapp_chat)

    def say(self, viewer: Viewer, text: str) -> list[str]:
        """What is answered to the viewer."""
        where = {"group_id": GROUP_ID, "mentions_us": True} if viewer.is_group else {}
        return self.world.say(viewer.writer, text, **where)

    def text_of(self, matter: int) -> tuple[str, str]:
        """A new text about the matter, and its mark."""
        word = mark(len(self.secrets) + 1)
        return MATTERS[matter % len(MATTERS)].format(mark=word), word

    def tell(self, plan: MemoryPlan) -> Secret:
        """Store a memory as it is planned."""
        place = CHATS[plan.place] if plan.place < len(CHATS) else None
        if place is None and (plan.visibility == "chat" or plan.state == "learned"):
            place = CHATS[0]
        if plan.state == "learned":
            assert place
            return self._learn(plan, place)
        text, word = self.text_of(plan.matter)
        chat_id = self.chat(place).pk if place else None
        make = _document if plan.state == "document" else _memory
        key = make(self.world, text, plan, chat_id)
        state = "active" if plan.state == "document" else plan.state
        secret = Secret(word, text, key, place, plan.visibility, state)
        self.secrets.append(secret)
        return secret

    def _learn(self, plan: MemoryPlan, place: str) -> Secret:
        """Somebody says it and it is learned from that, for the chat alone or for the owner."""
        writers = [each for each in VIEWERS if each.chat == place]
        writer = writers[plan.matter % len(writers)]
        text, word = self.text_of(plan.matter)
        before = set(Memory.objects.values_list("pk", flat=True))
        dependencies = self.world.dependencies
        quiet = ScriptedChatModel(lambda _: "Good to know")
        self.world.dependencies = replace(dependencies, chat_model=quiet)
        turns_put_on_record(self.world)
        self.say(writer, text)
        self.world.dependencies = dependencies
        learn(self.world, self.chat(place))
        (memory,) = Memory.objects.filter(source="extraction").exclude(pk__in=before)
        visibility = "owner" if writer.is_godfather else "chat"
        secret = Secret(word, text, memory.pk, place, visibility, plan.state)
        self.secrets.append(secret)
        return secret

    def say_all(self, plan: SaidPlan) -> None:
        """Messages of a chat, in one or several sessions, the last of which stays open."""
        chat = self.chat(CHATS[plan.place])
        service = self.world.rules.chat_memory
        for number in range(plan.sessions):
            now = timezone.now()
            with transaction.atomic():
                session = session_open(chat=chat, now=now, timeout=timedelta(hours=24))
            for place, matter in enumerate(plan.matters):
                text, word = self.text_of(matter)
                role = "assistant" if place % 2 else "user"
                new = NewMessage(role=role, content=text, timestamp=now)
                (stored,) = service.add_messages(conversation_id=session.pk, messages=[new])
                assert stored.message_id
                self.secrets.append(Secret(word, text, stored.message_id, CHATS[plan.place]))
            service.strategy.post_add_messages_hook(session=ChatSession.objects.get(pk=session.pk))
            service.manage(conversation_id=session.pk)
            messages_embed(session_id=session.pk, embedder=self.world.dependencies.embedder)
            if number + 1 < plan.sessions:
                with transaction.atomic():
                    session_end(session=ChatSession.objects.get(pk=session.pk), at=now)


def _memory(world: World, text: str, plan: MemoryPlan, chat_id: UUID | None) -> UUID:
    told = memory_remember(
        NewMemory(
            content=text,
            visibility=plan.visibility,
            chat_id=chat_id,
            pinned=plan.state == "pinned",
            proposed=plan.state == "proposed",
            source="extraction" if plan.state == "proposed" else "command",
        ),
        embedder=world.dependencies.embedder,
    )
    memory = told.memory
    assert told.status == "created", text
    if plan.state == "expired":
        past = timezone.now() - timedelta(days=1)
        memory_expire_at(memory_id=memory.pk, at=past, actor=SYSTEM)
    if plan.state == "superseded":
        _supersede(world, memory)
    return memory.pk


def _supersede(world: World, memory: Memory) -> None:
    """By one that says nothing and is gone again, so that the older one alone is left."""
    with transaction.atomic():
        memory.refresh_from_db()
        memory_supersede(older=memory, newer=memory, actor=SYSTEM)
        Memory.objects.filter(pk=memory.pk).update(superseded_by=None)


def _document(world: World, text: str, plan: MemoryPlan, chat_id: UUID | None) -> UUID:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "documents"
        with IncomingFile(folder, max_bytes=1_000_000) as file:
            file.write(text.encode())
            received = document_receive(
                file=file,
                name="terms.txt",
                folder=folder,
                visibility=plan.visibility,
                chat_id=chat_id,
            )
        document_store(
            document_id=received.document.document_id,
            folder=folder,
            extractor=DirectExtractor(),
            embedder=world.dependencies.embedder,
        )
    return SourceDocument.objects.get(pk=received.document.pk).memories.get().pk


def build_town(memories: Sequence[MemoryPlan], said: Sequence[SaidPlan]) -> Town:
    """The town with these secrets. Its model echoes its whole prompt."""
    strategy = SummarizationStrategy(summarize_every_n_messages=3)
    service = ChatMemoryService(godfather=OWNER_IDS, strategy=strategy)
    dependencies = Dependencies(
        chat_model=ScriptedChatModel(echo),
        embedder=HashingEmbedder(),
        providers={"cloud": RecordingProvider(name="cloud", text_limit=1_000_000)},
        chat_memory=service,
        sleep=lambda _seconds: None,
    )
    # A low bar: what is kept back must not be so for want of relevance.
    dependencies = replace(
        dependencies, rules=replace(dependencies.rules, min_similarity=0.2, top_k=20)
    )
    world = World(
        rules=IntakeRules(memory_enabled=True, chat_memory=service), dependencies=dependencies
    )
    for address in CHATS:
        _chat(address)
    town = Town(world)
    for plan in memories:
        town.tell(plan)
    for each in said:
        town.say_all(each)
    return town


def _chat(address: str) -> Chat:
    with transaction.atomic():
        if address == GROUP:
            return chat_for_group(provider="cloud", number_id=NUMBER_ID, group_id=GROUP_ID)
        chat = chat_for_party(
            provider="cloud",
            number_id=NUMBER_ID,
            party=Party(phone=address.split("@")[0], name="Test User"),
            at=timezone.now(),
        )
    assert chat is not None
    return chat


@contextmanager
def undone() -> Iterator[None]:
    """What happens inside leaves nothing behind, so that one probe doesn't feed the next."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
