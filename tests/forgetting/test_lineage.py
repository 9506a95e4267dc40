"""An erasure takes what derives from the erased text and quotes it, and nothing else."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from hypothesis import Phase, given, settings, strategies as st
from hypothesis.extra.django import TestCase

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import Chat, ChatSession, Message, Note, Turn, TurnReplay
from tests.forgetting.dump import left_of
from tests.fuzz.damage import FACTOR
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, new_world

BETA = "Beta1 tea is green"


def echo(request: ChatRequest) -> str:
    """An answer that repeats the message, as many models begin."""
    return f"You asked: {request.messages[-1].content}"


@pytest.fixture
def echoing(world: World) -> World:
    world.use(chat_model=ScriptedChatModel(echo))
    return world


def answers(whatsapp_chat: str) -> list[str]:
    rows = Message.objects.filter(chat__whatsapp_chat=whatsapp_chat, role="assistant")
    return list(rows.order_by("session__created_at", "order_num").values_list("content", flat=True))


@pytest.mark.django_db(transaction=True)
class TestAmongChats:
    def test_an_older_answer_about_somebody_else_stays(self, echoing: World) -> None:
        echoing.say(GODFATHER, "What's the status with Alpha?")
        echoing.say(CLIENT, "What's the status with Beta1?")
        echoing.remember(CLIENT, BETA)
        echoing.say(GODFATHER, "/search Beta1")
        receipt = echoing.forget("session", echoing.session(CLIENT).pk)
        older, listed = answers(GODFATHER)
        assert older == "You asked: What's the status with Alpha?"
        assert "green" not in listed
        assert receipt.probe == "absent"
        assert left_of([BETA]) == []

    def test_a_history_with_similar_sentences_holds_up_no_erasure(self, echoing: World) -> None:
        names = ("Alpha", "Gamma", "Delta")
        for name in names:
            echoing.say(GODFATHER, f"What's the status with {name}?")
        for number, client in enumerate((CLIENT, OTHER_CLIENT)):
            echoing.say(client, f"What's the status with Beta{number}?")
            echoing.remember(client, f"Beta{number} tea is green")
            echoing.say(GODFATHER, f"/search Beta{number}")
            echoing.say(GODFATHER, f"And what's the status with Omega{number}?")
        before = answers(GODFATHER)
        for client in (CLIENT, OTHER_CLIENT):
            assert echoing.forget("session", echoing.session(client).pk).left == []
        after = answers(GODFATHER)
        changed = [old for old, new in zip(before, after, strict=True) if old != new]
        assert all("tea is green" in old for old in changed)
        assert len(changed) == 2

    def test_what_another_client_says_alike_stays(self, echoing: World) -> None:
        said = "I would like to order two cakes for Friday"
        for client in (CLIENT, OTHER_CLIENT):
            echoing.say(client, said)
        before = list(Message.objects.filter(chat__whatsapp_chat=OTHER_CLIENT).values("content"))
        echoing.forget("chat", echoing.chat(CLIENT).pk)
        after = list(Message.objects.filter(chat__whatsapp_chat=OTHER_CLIENT).values("content"))
        assert after == before
        assert TurnReplay.objects.get().prompt[-1]["content"] == said

    def test_the_other_entries_of_a_list_stay(self, echoing: World) -> None:
        echoing.remember(GODFATHER, "My code for the Carmel door is 9017")
        echoing.remember(CLIENT, "My code for the Bravo door is 4432")
        echoing.say(GODFATHER, "/search code door")
        assert "Bravo" in answers(GODFATHER)[-1]
        echoing.forget("chat", echoing.chat(CLIENT).pk)
        listed = answers(GODFATHER)[-1]
        assert "My code for the Carmel door is 9017" in listed
        assert "Bravo" not in listed

    def test_an_answer_two_turns_after_the_recall_is_cut(self, echoing: World) -> None:
        """It read the fact in its session's history."""
        echoing.remember(CLIENT, "The vault of the shop opens with XK7741Z")
        echoing.say(GODFATHER, "/search vault")
        retold = ScriptedChatModel(lambda _: "Sure. The code? XK7741Z. Shall I write it down?")
        echoing.use(chat_model=retold)
        echoing.say(GODFATHER, "Tell me again, please")
        echoing.forget("memory", Memory.objects.get().pk)
        assert answers(GODFATHER)[-1] == "Sure. The code? [forgotten] Shall I write it down?"
        assert left_of([], ["XK7741Z"]) == []

    def test_a_number_of_ones_own_question_stays(self, echoing: World) -> None:
        echoing.remember(GODFATHER, "The vault of the shop opens with 7741")
        echoing.say(GODFATHER, "/memories")
        echoing.say(GODFATHER, "Is room 7741 free?")
        echoing.forget("memory", Memory.objects.get().pk)
        assert answers(GODFATHER)[-1] == "You asked: Is room 7741 free?"

    def test_a_note_that_shares_words_stays_and_one_that_quotes_goes(self, echoing: World) -> None:
        echoing.say(CLIENT, "What's the status with Beta1? " + BETA)
        message = Message.objects.get(role="user")
        chat, now = echoing.chat(CLIENT), message.received_at
        texts = ("What's the status with the rent?", f"They say: {BETA}")
        for text in texts:
            Note.objects.create(chat=chat, author_name="dana", created_at=now, text=text)
        echoing.forget("message", message.pk)
        notes = set(Note.objects.values_list("text", flat=True))
        assert notes == {texts[0], "[forgotten]"}


TOPICS = ("Alpha", "Bravo", "Carmel")
SENTENCES = (
    "The status with {topic} is {secret} until the end of the week",
    "{topic} tea is {secret}",
    "My code for the {topic} door is {secret}",
    "{topic} שותה תה {secret} בבוקר",
)
QUESTIONS = (
    "What's the status with {topic}?",
    "My code for the {topic} door, please",
    "And what else is there until the end of the week?",
)
SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru")
PEOPLE = (GODFATHER, CLIENT, OTHER_CLIENT)
MODELS = ("echo", "quote", "paraphrase", "silent")
WHOSE, WHICH = st.integers(0, 2), st.integers(0, 11)
STEPS = st.one_of(
    st.tuples(st.sampled_from(("tell", "remember")), WHOSE, WHICH, st.sampled_from(MODELS)),
    st.tuples(st.just("ask"), WHOSE, WHICH, st.sampled_from(MODELS)),
    st.tuples(st.just("search"), WHOSE, WHICH, st.just("silent")),
    st.tuples(st.sampled_from(("list", "reset", "sum_up")), WHOSE, WHICH, st.just("silent")),
)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
KINDS = st.sampled_from(("memory", "message", "session", "messages", "chat"))


@dataclass(frozen=True)
class Said:
    """A stored message before an erasure: ``given`` is all that its answer was made from."""

    content: str
    given: str
    within: frozenset[UUID]


class Talk:
    """An owner and two clients talk to models that echo, quote and paraphrase."""

    def __init__(self) -> None:
        self.world = new_world()
        self.world.use(chat_model=ScriptedChatModel(self._answer))
        self.world.summarizing(every=6)
        self.secrets: list[str] = []
        self.mode = "silent"

    def step(self, what: str, whose: int, which: int, mode: str) -> None:
        self.mode = mode
        who, topic = PEOPLE[whose], TOPICS[which % len(TOPICS)]
        question = QUESTIONS[which % len(QUESTIONS)].format(topic=topic)
        texts = {
            "ask": question,
            "search": f"/search {topic}",
            "list": "/memories",
            "reset": "/reset",
        }
        if what == "sum_up":
            if ChatSession.objects.filter(chat__whatsapp_chat=who, status="active").exists():
                self.world.sum_up(who)
            return
        if what in ("tell", "remember"):
            digits = f"{len(self.secrets):02d}"
            word = "".join(SYLLABLES[int(digit)] for digit in digits)
            # A number, and a word that only its sentence explains.
            secret = f"k9{digits}7" if which % 2 else f"zo{word}x"
            self.secrets.append(secret)
            text = SENTENCES[which % len(SENTENCES)].format(topic=topic, secret=secret)
            texts |= {"tell": text, "remember": f"/remember {text}"}
        self.world.say(who, texts[what])

    def _answer(self, request: ChatRequest) -> str:
        if self.mode == "echo":
            return echo(request)
        read = [line for message in request.messages for line in message.content.splitlines()]
        known = [line for line in read if any(secret in line for secret in self.secrets)]
        if self.mode == "silent" or not known:
            return "I see."
        line = known[-1]
        if self.mode == "quote":
            return f"Of course. {line}\nAnything else?"
        words = line.split()
        random.Random(len(words)).shuffle(words)
        return f"Of course. As far as I know: {' '.join(words)}. Anything else?"

    def messages(self) -> dict[UUID, Said]:
        """Return all messages with what their answers were made from, by the turns' records."""
        given: dict[UUID | None, str] = {}
        for turn in Turn.objects.select_related("message"):
            replay = TurnReplay.of(turn)
            shown = Memory.objects.filter(pk__in=replay.shown).values_list("content", flat=True)
            asked = turn.message.content if turn.message else ""
            given[turn.reply_id] = f"{replay.prompt} {replay.recalled} {list(shown)} {asked}"
        return {
            row.pk: Said(
                row.content, given.get(row.pk, ""), frozenset((row.session_id, row.chat_id))
            )
            for row in Message.objects.exclude(role="summary")
        }

    def chosen(self, kind: str, which: int) -> UUID | None:
        rows: dict[str, Any] = {
            "memory": Memory.objects.order_by("created_at", "pk"),
            "message": Message.objects.filter(role="user").order_by("received_at", "pk"),
            "session": ChatSession.objects.filter(messages__role="user").distinct(),
            "messages": ChatSession.objects.filter(messages__role="user").distinct(),
            "chat": Chat.objects.order_by("created_at", "pk"),
        }
        keys = list(rows[kind].values_list("pk", flat=True))
        return keys[which % len(keys)] if keys else None

    def erased(self, kind: str, key: UUID) -> list[str]:
        """Return the texts that go."""
        rows: dict[str, Any] = {
            "memory": Memory.objects.filter(pk=key),
            "message": Message.objects.filter(pk=key),
            "session": Message.objects.filter(session=key),
            "messages": Message.objects.filter(session=key),
            "chat": Message.objects.filter(chat=key),
        }
        return list(rows[kind].values_list("content", flat=True))


def holding(secret: str) -> list[str]:
    """Return the columns of all tables of ours and of the libraries that hold a text."""
    return [
        f"{model._meta.db_table}.{name}: {value}"
        for model in apps.get_models()
        if model._meta.managed
        for row in model._default_manager.values()
        for name, value in row.items()
        if secret in str(value)
    ]


def _of_people(kind: str, key: UUID) -> list[str]:
    """Return what people said in what goes."""
    field = {"message": "pk", "chat": "chat"}.get(kind, "session")
    rows = Message.objects.filter(**{field: key}, role="user")
    return list(rows.values_list("content", flat=True))


class TestAnyTalk(TestCase):
    # Without shrinking: an example takes a second, and is short as it is.
    @settings(max_examples=15 * FACTOR, deadline=None, phases=PHASES)
    @given(st.lists(STEPS, min_size=3, max_size=14), KINDS, WHICH)
    def test_nothing_derived_is_left_and_nothing_else_has_changed(
        self, steps: list[tuple[str, int, int, str]], kind: str, which: int
    ) -> None:
        talk = Talk()
        for what, whose, number, mode in steps:
            talk.step(what, whose, number, mode)
        key = talk.chosen(kind, which)
        if key is None:
            return
        before, texts = talk.messages(), talk.erased(kind, key)
        own = " ".join(texts if kind == "memory" else _of_people(kind, key))
        secrets = [secret for secret in talk.secrets if secret in own]
        memories = dict(Memory.objects.values_list("pk", "content"))

        receipt = talk.world.forget(kind, key)

        assert receipt.left == []
        assert [place for secret in secrets for place in holding(secret)] == []
        after = {row.pk: row.content for row in Message.objects.exclude(role="summary")}
        for pk, said in before.items():
            derives = any(text in said.given + said.content for text in [*texts, *secrets])
            if not derives and key not in {pk, *said.within}:
                assert after.get(pk) == said.content
        kept = dict(Memory.objects.values_list("pk", "content"))
        for pk, content in memories.items():
            if not any(secret in content for secret in secrets):
                assert kept.get(pk) == content
