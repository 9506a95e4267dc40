"""Many new texts are stored at once and found by their words; workers make their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from memories_app.embedding_models.vectors import DUE_AGAIN, DUE_BATCH, due_vectors_make
from memories_app.facts.validation import NewMemory
from memories_app.models import Memory, MemoryEmbedding
from memories_app.store.remember import memories_remember
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.embedders.base import MAX_AWAITED, EmbedderError
from sessions_app.conversations.message_store import NewMessage
from sessions_app.embedding.choice import embedder
from sessions_app.embedding.facade import texts_waiting
from sessions_app.embedding.message_vectors import BATCH
from sessions_app.history.dependencies import build_chat_memory
from sessions_app.models import ChatSession, MessageEmbedding
from sessions_app.recall.facade import MEMORIES, Viewer, recall
from sessions_app.tasks import embed_memories, embed_session, sweep_work
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.remembering import memory_update
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

OWNER = Viewer(user_role="godfather")
BALLET = "The ballet class for children begins at nine"


def store(*texts: str) -> None:
    memories_remember(
        memories=[NewMemory(content=text, visibility="public") for text in texts],
        embedder=embedder(),
    )


def store_many(count: int) -> None:
    store(*(f"Crate {number} is in the van" for number in range(count)))


def found(question: str) -> list[str]:
    hits = recall(
        query=question, viewer=OWNER, embedder=embedder(), sources=[MEMORIES], min_similarity=0.2
    ).hits
    return [hit.content for hit in hits]


def jobs(name: str) -> int:
    return sum(job.task["func"] == f"sessions_app.tasks.{name}" for job in OrmQ.objects.all())


def come_due_again() -> None:
    Memory.objects.update(vector_due_at=F("vector_due_at") - DUE_AGAIN)


def test_many_memories_are_found_by_words_at_once_and_by_meaning_later() -> None:
    store(BALLET, *(f"Crate {number} is in the van" for number in range(MAX_AWAITED)))
    assert not MemoryEmbedding.objects.exists()
    assert found("When does the ballet begin?") == [BALLET]
    assert found("kids dancing lesson") == []

    assert embed_memories() == MAX_AWAITED + 1

    assert found("kids dancing lesson") == [BALLET]


def test_staff_and_metrics_see_how_many_texts_wait(admin_client: Client) -> None:
    store_many(20)
    assert texts_waiting() == 20
    assert "memory_texts_without_vector 20.0" in admin_client.get("/metrics").content.decode()
    page = admin_client.get("/admin/operations/").content.decode()
    assert "20 new texts are found by their words" in page

    embed_memories()

    assert texts_waiting() == 0
    page = admin_client.get("/admin/operations/").content.decode()
    assert "found by their words" not in page


def test_one_job_is_queued_and_the_sweep_replaces_a_lost_one() -> None:
    store_many(20)
    store(*(f"Box {number} is in the cellar" for number in range(20)))
    assert jobs("embed_memories") == 1
    OrmQ.objects.all().delete()
    assert sweep_work()["memory vectors"] == 0, "the job may have been taken a moment ago"
    come_due_again()
    assert sweep_work()["memory vectors"] == jobs("embed_memories") == 1


def test_a_failing_embedder_loses_nothing() -> None:
    store_many(20)
    failing = HashingEmbedder(failure=EmbedderError("no answer"))
    with pytest.raises(EmbedderError):
        due_vectors_make(embedder=failing)
    assert texts_waiting() == 20
    assert due_vectors_make(embedder=HashingEmbedder()) == 0, "not again at once"
    come_due_again()
    assert due_vectors_make(embedder=HashingEmbedder()) == 20
    assert texts_waiting() == 0


class Interrupted(HashingEmbedder):
    """An embedder during whose first call something else happens."""

    def __init__(self, meanwhile: object) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if callable(meanwhile):
            meanwhile()
        return super().embed(texts)


def test_two_workers_never_make_the_same_vectors() -> None:
    store_many(2 * DUE_BATCH)
    other = HashingEmbedder()
    one = Interrupted(lambda: due_vectors_make(embedder=other))
    assert due_vectors_make(embedder=one) == DUE_BATCH
    (first,), (second,) = one.calls, other.calls
    assert set(first) | set(second) == set(Memory.objects.values_list("content", flat=True))


def test_a_text_that_changes_meanwhile_gets_the_vector_of_its_new_form() -> None:
    store_many(MAX_AWAITED + 1)
    memory = Memory.objects.get(content="Crate 3 is in the van")

    def change() -> None:
        memory_update(
            memory_id=memory.pk, actor=SYSTEM, embedder=embedder(), content="Crate 3 was sold"
        )

    due_vectors_make(embedder=Interrupted(change))
    assert list(memory.embeddings.values_list("model", flat=True)) == [embedder().model_id]
    memory.refresh_from_db()
    assert memory.vector_due_at is None


def test_a_text_that_the_model_does_not_know_is_tried_once() -> None:
    store("המספרה סגורה ביום שני")
    assert texts_waiting() == 1
    assert embed_memories() == 1
    assert (texts_waiting(), MemoryEmbedding.objects.count()) == (0, 0)
    assert embed_memories() == 0


def test_a_long_session_is_embedded_a_batch_at_a_time(world: World) -> None:
    embedder()  # It is the model in use from now on.
    world.say(CLIENT, "hello")
    session = world.session(CLIENT)
    said = [
        NewMessage("user", f"parcel {number} is ready", timezone.now())
        for number in range(BATCH + 50)
    ]
    build_chat_memory().add_messages(conversation_id=session.pk, messages=said)
    already = MessageEmbedding.objects.count()
    assert texts_waiting() == len(said)

    embed_session(str(session.pk))
    assert MessageEmbedding.objects.count() == already + BATCH
    assert texts_waiting() == 50
    job = OrmQ.objects.order_by("id").last()
    assert job is not None

    embed_session(*job.task["args"])
    assert MessageEmbedding.objects.count() == already + len(said)
    assert (texts_waiting(), ChatSession.objects.get().vectors_requested_at) == (0, None)
