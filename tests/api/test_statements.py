"""How many statements the calls take that programs make with every message."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.signals import post_init
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from sessions_app.models import ChatSession, Message, MessageEmbedding
from sessions_app.models.sessions import VECTORS_LOST_AFTER
from sessions_app.sweeps import leased_kinds
from sessions_app.tasks import embed_session
from tests.api.calling import Api
from tests.api.test_sessions import opened

# Outside a test's own transaction, where BEGIN and COMMIT are the call's.
pytestmark = pytest.mark.django_db(transaction=True)

# Before the transaction, the token is read and the call is counted.
MAX_BEFORE = 2
MAX_TO_READ = 3
# Token, call, session, history, summaries, later sessions, embedder, profile; what changed, what
# was found of memories and of messages; two that read each scope, for the first time.
MAX_FOR_CONTEXT = 16
# Token, call, embedder, the lock of the scope, known facts, mentions; memories, vectors, mentions,
# audit, webhook endpoints; the job that seals the audit log; others that wait for vectors, the job
# for it.
MAX_FOR_BATCH = 13
# Token, call, embedder, what changed, what was found, and what recall shows of memories and of
# messages, and whether vectors wait; three that read the scope: in a transaction that has written,
# a scope is read anew each time.
MAX_OF_RECALL = 11
ENDS = ("BEGIN", "COMMIT")


@pytest.fixture
def path(api: Api) -> str:
    """A session that has messages, and whose vectors were requested."""
    path = f"sessions/{opened(api)['session_id']}/"
    for number in range(6):
        store(api, path, f"number {number} about the invoice of March")
    return path


def store(api: Api, path: str, content: str) -> None:
    body = {"messages": [{"role": "user", "content": content}]}
    assert api.post(f"{path}messages/", body).status_code == 201


def taken_by(call: Any) -> list[str]:
    """The statements of a call, shortened."""
    with CaptureQueriesContext(connection) as queries:
        call()
    return [query["sql"][:160] for query in queries]


def without_ends(statements: list[str]) -> list[str]:
    return [each for each in statements if each not in ENDS]


@pytest.mark.parametrize(("length", "most"), [(40, 4), (4_000, 5)])
def test_storing_takes_few_statements(api: Api, path: str, length: int, most: int) -> None:
    # The longer ones exceed the window of a client, so that it moves with each message.
    for _ in range(4):
        store(api, path, "x" * length)
    # As where a worker has summed up.
    ChatSession.objects.update(summarized_until=8)
    statements = taken_by(lambda: store(api, path, "x" * length))
    assert [each for each in statements if each in ENDS] == list(ENDS), statements
    began, ended = map(statements.index, ENDS)
    assert ended - began - 1 <= most, statements
    assert len(without_ends(statements)) <= MAX_BEFORE + most, statements


def test_reading_the_newest_messages_takes_few_statements(api: Api, path: str) -> None:
    statements = taken_by(lambda: api.get(f"{path}messages/?limit=20"))
    assert len(statements) <= MAX_TO_READ, statements


def test_a_context_takes_few_statements(api: Api, path: str) -> None:
    remembered = {"content": "The invoice of March was paid", "visibility": "public"}
    assert api.post("memories/", remembered).status_code == 201
    embed_session(path.split("/")[1])
    found: list[Any] = []
    question = {"query": "what about the invoice of March?"}
    statements = taken_by(lambda: found.append(api.post(f"{path}context/", question)))
    assert "was paid" in found[0].json()["messages"][0]["content"]
    assert len(without_ends(statements)) <= MAX_FOR_CONTEXT, statements


def test_reading_a_conversation_builds_no_models_of_it(api: Api, path: str) -> None:
    built: list[Any] = []

    def count(instance: Any, **_: Any) -> None:
        built.append(instance)

    post_init.connect(count, sender=Message)
    try:
        answer = api.get(f"{path}messages/?limit=20")
    finally:
        post_init.disconnect(count, sender=Message)
    assert "number 5 about the invoice" in answer.content.decode()
    assert built == []


def memories(size: int, topic: str) -> dict[str, Any]:
    texts = [f"The {topic} with the number {number} is in the van" for number in range(size)]
    return {"memories": [{"content": text, "visibility": "public"} for text in texts]}


def test_the_statements_of_a_batch_do_not_grow_with_it(api: Api) -> None:
    size = 300
    # The first call records the token's use and the embedder's model.
    assert api.post("memories/batch/", memories(1, "crate")).status_code == 201
    stored: list[Any] = []
    statements = taken_by(
        lambda: stored.append(api.post("memories/batch/", memories(size, "parcel")))
    )
    assert stored[0].status_code == 201
    assert len(without_ends(statements)) <= MAX_FOR_BATCH, statements
    # All but the last are known already, and one statement updates them.
    statements = taken_by(
        lambda: stored.append(api.post("memories/batch/", memories(size + 1, "parcel")))
    )
    statuses = [each["status"] for each in stored[1].json()["memories"]]
    assert statuses == ["duplicate"] * size + ["created"]
    assert len(without_ends(statements)) <= MAX_FOR_BATCH + 1, statements


def test_storing_many_messages_takes_as_few_statements_as_one(api: Api, path: str) -> None:
    size = 300
    ChatSession.objects.update(summarized_until=8)
    said = [{"role": "user", "content": f"parcel {number}"} for number in range(size)]
    statements = taken_by(lambda: api.post(f"{path}messages/", {"messages": said}))
    began, ended = map(statements.index, ENDS)
    assert ended - began - 1 <= 4, statements
    assert Message.objects.count() == 6 + size


def test_a_recall_takes_few_statements(api: Api, path: str) -> None:
    assert api.post("memories/batch/", memories(3, "parcel")).status_code == 201
    for body in ({}, {"sources": ["memories"]}):
        found: list[Any] = []
        question = {"query": "Where is the parcel?", "min_similarity": 0, **body}
        statements = taken_by(lambda: found.append(api.post("memories/recall/", question)))  # noqa: B023
        assert len(found[0].json()["results"]) == 3
        assert len(statements) <= MAX_OF_RECALL, statements


def jobs() -> int:
    functions = [job.task["func"] for job in OrmQ.objects.all()]
    return functions.count("sessions_app.tasks.embed_session")


def test_one_job_makes_the_vectors_of_all_messages_until_it_begins(api: Api, path: str) -> None:
    assert jobs() == 1
    OrmQ.objects.all().delete()
    embed_session(path.split("/")[1])
    assert MessageEmbedding.objects.count() == Message.objects.count() == 6
    # The next message isn't served by the job that has run.
    store(api, path, "and one more about the order of chairs")
    store(api, path, "and another one about the van")
    assert jobs() == 1
    embed_session(path.split("/")[1])
    assert MessageEmbedding.objects.count() == Message.objects.count() == 8


def test_what_has_no_vector_needs_no_job(api: Api) -> None:
    path = f"sessions/{opened(api)['session_id']}/messages/"
    said = [{"role": "user", "content": ""}, {"role": "tool", "content": "3 rows"}]
    assert api.post(path, {"messages": said}).status_code == 201
    assert jobs() == 0


def test_a_job_that_was_lost_is_enqueued_again_once(api: Api, path: str) -> None:
    OrmQ.objects.all().delete()
    (vectors,) = [kind for kind in leased_kinds() if kind.name == "vectors"]
    now = timezone.now()
    assert vectors.sweep(now) == 0
    for later in (now + VECTORS_LOST_AFTER, now + VECTORS_LOST_AFTER):
        vectors.sweep(later + timedelta(seconds=1))
    assert jobs() == 1
    # A message finds the loss, too.
    OrmQ.objects.all().delete()
    ChatSession.objects.update(vectors_requested_at=now - VECTORS_LOST_AFTER)
    store(api, path, "about the van")
    assert jobs() == 1
