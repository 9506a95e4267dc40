"""`memories_reembed`: another model takes the place of the one in use, and nothing is lost."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from memories_app.embedding_models.vectors import memories_lacking
from memories_app.models import EmbeddingModel, Memory, MemoryEmbedding
from memories_app.vector_search import index_state
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.embedders.openai_embedder import DELAYS, RetryingEmbedder
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.backup.restore_checks import RestoreError, check_empty
from sessions_app.embedding.choice import embedder
from sessions_app.embedding.maintenance import (
    FEW,
    LOCK,
    Reembedded,
    Target,
    TooBusyError,
    embeddings_tend,
    reembed,
)
from sessions_app.embedding.message_vectors import session_embed
from sessions_app.models import Message, MessageEmbedding
from sessions_app.recall.facade import MEMORIES, recall
from tests.doubles.hashing_embedder import HashingEmbedder, hashed_words

# An index is made beside the others' transactions, so it takes real ones.
from tests.embedding.reembedding import FACT, FACTS, NEW, OLD, OWNER, ask, run
from tests.loopback.openai_behaviours import fails
from tests.loopback.openai_server import OpenAIServer
from tests.memories.bulk import memories_store
from tests.remembering import remember
from tests.world import CLIENT, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("at_first_wordllama"),
]


def state_of(model_id: str) -> str:
    return EmbeddingModel.objects.get(model_id=model_id).state


def models_of(memory: Memory) -> set[str]:
    return set(MemoryEmbedding.objects.filter(memory=memory).values_list("model", flat=True))


class Watching(HashingEmbedder):
    """Lets a test do something while a batch is embedded."""

    def __init__(self, meanwhile: Callable[[Sequence[str]], object]) -> None:
        super().__init__(64)
        self._meanwhile = meanwhile

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self._meanwhile(texts)
        return super().embed(texts)


def go_to(embedder: Embedder) -> Reembedded:
    return reembed(target=Target(embedder, "none", ""), progress=lambda _done, _total: None)


def test_recall_uses_the_new_model_at_last(world: World, use_openai: OpenAIServer) -> None:
    world.say(CLIENT, "My daughter likes walnuts")
    memories_store([FACT, *FACTS])
    assert ask()[0].similarity is not None

    done = run()

    assert (done["model"], done["before"]) == (NEW, OLD)
    assert (done["memories"], done["messages"]) == (601, 2)
    assert (state_of(NEW), state_of(OLD)) == ("active", "retired")
    assert index_state(NEW).valid
    for memory in Memory.objects.all()[:5]:
        (vector,) = MemoryEmbedding.objects.filter(memory=memory, model=NEW).values_list(
            "vector", flat=True
        )
        assert list(vector) == pytest.approx(hashed_words(memory.content, 1536), abs=1e-6)
    assert MessageEmbedding.objects.filter(model=NEW).count() == 2
    (hit, *_) = ask("TestCorp owes me an invoice")
    assert hit.similarity == pytest.approx(1.0, abs=1e-5), "the new model's cosine"
    assert max(map(len, batches(use_openai))) == 256


def batches(server: OpenAIServer) -> list[list[str]]:
    return [body["input"] for body in server.embedding_bodies if len(body["input"]) > 1]


def test_the_old_vectors_stay_for_who_began_before_and_go_later(use_openai: OpenAIServer) -> None:
    memories_store([FACT])
    before = WordLlamaEmbedder()
    run()

    (hit,) = recall(query=FACT, viewer=OWNER, embedder=before, sources=[MEMORIES]).hits
    assert hit.similarity == pytest.approx(1.0, abs=1e-5)
    switched = EmbeddingModel.objects.get(model_id=OLD).retired_at
    assert switched is not None
    early = embeddings_tend(embedder=embedder(), now=switched + timedelta(minutes=14))
    assert early["removed"] == 0

    late = embeddings_tend(embedder=embedder(), now=switched + timedelta(minutes=16))

    assert late["removed"] == 1
    assert not MemoryEmbedding.objects.filter(model=OLD).exists()
    assert not index_state(OLD).exists
    again = embeddings_tend(embedder=embedder(), now=switched + timedelta(hours=1))
    assert again == {"indexes": 0, "made": 0, "removed": 0}


def test_late_vectors_of_the_old_are_made_up_for(world: World, use_openai: OpenAIServer) -> None:
    """A worker that took its embedder before the switch, and stored after it."""
    before = WordLlamaEmbedder()
    run()
    memory = remember(FACT, embedder=before)
    world.say(CLIENT, "said to the old model")
    assert models_of(memory) == {OLD}

    done = embeddings_tend(embedder=embedder(), now=timezone.now() + timedelta(minutes=16))

    assert done["made"] == 3
    assert models_of(memory) == {NEW}
    assert not MessageEmbedding.objects.exclude(model=NEW).exists()


def test_while_the_new_model_fails_the_old_vectors_are_kept(use_openai: OpenAIServer) -> None:
    memories_store([FACT])
    run()
    remember("late", embedder=WordLlamaEmbedder())
    failing = HashingEmbedder(failure=EmbedderError("down"))

    done = embeddings_tend(embedder=failing, now=timezone.now() + timedelta(minutes=16))

    assert done["removed"] == 0
    assert MemoryEmbedding.objects.filter(model=OLD).count() == 2


def test_it_fills_what_the_model_in_use_lacks(world: World) -> None:
    world.say(CLIENT, "My daughter likes walnuts")
    memories_store([FACT])
    MemoryEmbedding.objects.all().delete()
    MessageEmbedding.objects.all().delete()

    assert (run()["memories"], MessageEmbedding.objects.count()) == (1, 2)


def test_cut_off_in_the_middle_it_goes_on_where_it_was(world: World) -> None:
    """What recall uses doesn't change before all is there."""
    world.say(CLIENT, "My daughter likes walnuts")
    memories_store([FACT, *FACTS])
    seen: list[str] = []

    def cut_off(texts: Sequence[str]) -> None:
        if len(seen) >= 256:
            raise KeyboardInterrupt
        seen.extend(texts)

    with pytest.raises(KeyboardInterrupt):
        go_to(Watching(cut_off))
    assert state_of("hashing-64") == "building"
    assert embedder().model_id == OLD
    assert MemoryEmbedding.objects.filter(model="hashing-64").count() == 256

    done = go_to(HashingEmbedder(64))

    assert done.memories == 601 - 256, "none is made twice"
    assert done.before == OLD
    assert MemoryEmbedding.objects.filter(model="hashing-64").count() == 601


def test_a_model_given_up_in_the_making_is_cleared_later() -> None:
    memories_store([FACT])
    with pytest.raises(EmbedderError):
        go_to(HashingEmbedder(8, failure=EmbedderError("no", permanent=True)))
    MemoryEmbedding.objects.create(memory=Memory.objects.get(), model="hashing-8", vector=[1] * 8)

    go_to(HashingEmbedder(64))

    assert state_of("hashing-8") == "retired"
    embeddings_tend(embedder=HashingEmbedder(64), now=timezone.now() + timedelta(hours=1))
    assert {each.model for each in MemoryEmbedding.objects.all()} == {"hashing-64"}


def test_memories_that_come_in_meanwhile_have_their_vector_at_the_switch() -> None:
    memories_store(FACTS[:300])
    late: list[Memory] = []

    def add(_texts: Sequence[str]) -> None:
        if len(late) < 5:
            late.append(remember(f"late {len(late)}", embedder=WordLlamaEmbedder()))

    go_to(Watching(add))

    assert len(late) == 5
    assert all("hashing-64" in models_of(memory) for memory in late)


def test_memories_that_never_stop_coming_put_the_switch_off() -> None:
    memories_store([FACT])

    # Each comes before those that a round has seen, and is left for the next round.
    keys = (uuid.UUID(int=number) for number in itertools.count(2**32, -1))

    def add(texts: Sequence[str]) -> None:
        lacking = memories_lacking("hashing-64").count() - len(texts)
        new = list(itertools.islice(keys, max(FEW + 1 - lacking, 0)))
        Memory.objects.bulk_create(
            Memory(memory_id=key, content=f"{key} of many", visibility="owner", fact_key=str(key))
            for key in new
        )

    with pytest.raises(TooBusyError, match="run memories_reembed again"):
        go_to(Watching(add))

    assert state_of("hashing-64") == "building"
    assert embedder().model_id == OLD


def test_a_memory_edited_meanwhile_gets_the_vector_of_its_new_text() -> None:
    memories_store([FACT])
    edited = "Another text altogether"

    def edit(texts: Sequence[str]) -> None:
        if FACT in texts:
            Memory.objects.update(content=edited, content_hash="other")

    go_to(Watching(edit))

    (vector,) = MemoryEmbedding.objects.filter(model="hashing-64").values_list("vector", flat=True)
    assert list(vector) == pytest.approx(hashed_words(edited, 64), abs=1e-6)


def test_a_message_revoked_meanwhile_gets_no_vector(world: World) -> None:
    world.say(CLIENT, "My daughter likes walnuts")

    def revoke(_texts: Sequence[str]) -> None:
        Message.objects.filter(order_num=1).update(content="", revoked_at=timezone.now())

    go_to(Watching(revoke))

    found = MessageEmbedding.objects.filter(model="hashing-64")
    assert list(found.values_list("message__order_num", flat=True)) == [2]


def test_texts_that_the_model_does_not_cover_have_no_vector(world: World) -> None:
    memories_store(["לטסטקורפ יש משרד", "שלום", FACT])
    world.say(CLIENT, "שלום")
    go_to(HashingEmbedder(64))

    done = run(model="wordllama", keep_old=0)

    assert done["before"] == "hashing-64"
    assert MemoryEmbedding.objects.count() == 1


def test_two_at_once_one_works_and_the_other_says_so() -> None:
    memories_store([FACT])
    other = connection.copy()
    with closing(other), other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])

        with pytest.raises(CommandError, match="Another memories_reembed is at work"):
            call_command("memories_reembed", stdout=StringIO())

        done = embeddings_tend(embedder=HashingEmbedder(), now=timezone.now())
        assert done == {"indexes": 0, "made": 0, "removed": 0}, "the clock steps back"


def test_rate_limits_are_waited_for(use_openai: OpenAIServer) -> None:
    """429 with Retry-After: the embedder waits as long as it is told to, and what nobody waits
    for is tried for minutes more."""
    waited: list[float] = []
    failing = HashingEmbedder(failure=EmbedderError("slow down"))
    patient = RetryingEmbedder(failing, sleep=waited.append)

    with pytest.raises(EmbedderError, match="slow down"):
        patient.embed(["text"])

    assert waited == list(DELAYS)
    assert len(failing.calls) == len(DELAYS) + 1
    failing.failure = EmbedderError("no key", permanent=True)
    with pytest.raises(EmbedderError, match="no key"):
        patient.embed(["text"])
    assert waited == list(DELAYS), "waiting can't help"


def test_what_was_made_before_a_failure_stays(settings: Any, use_openai: OpenAIServer) -> None:
    memories_store([FACT])
    settings.OPENAI_API_KEY = "wrong"
    use_openai.script_embeddings(fails(401))

    with pytest.raises(CommandError, match="run memories_reembed again") as caught:
        call_command("memories_reembed", stdout=StringIO())

    assert caught.value.returncode == 1
    assert embedder().model_id == OLD


@pytest.mark.parametrize("wrong", ["bert", "wordllama:x", "openai", "model2vec:", ":x"])
def test_a_wrong_model_is_wrong_usage(wrong: str) -> None:
    with pytest.raises(CommandError, match="--model") as caught:
        call_command("memories_reembed", model=wrong)

    assert caught.value.returncode == 2


def test_the_switch_is_in_the_audit_log(use_openai: OpenAIServer) -> None:
    run()

    event = AuditEvent.objects.get(object_type="embedding_model")
    assert (event.action, event.object_id, event.details) == (
        "setting.change",
        NEW,
        {"before": OLD},
    )


def test_vectors_are_made_by_who_took_the_model(world: World, use_openai: OpenAIServer) -> None:
    world.say(CLIENT, "My daughter likes walnuts")
    run()
    session_embed(session_id=world.session(CLIENT).pk, embedder=embedder())

    assert MessageEmbedding.objects.filter(model=NEW).count() == 2


def test_a_fresh_databases_model_gives_way_to_a_backups() -> None:
    """`make run` made it before anybody could restore."""
    assert EmbeddingModel.objects.exists()

    with connection.cursor() as cursor:
        check_empty(cursor)
        memories_store([FACT])
        with pytest.raises(RestoreError, match="memories_app_memory"):
            check_empty(cursor)
