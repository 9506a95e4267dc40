"""A queryset that is compiled once reads what the queryset itself would read."""

from __future__ import annotations

import tracemalloc

import pytest
from django.db import connection
from django.db.models import TextField, UUIDField

from memories_app.models import Memory
from memoryproject.foundation.compiled_reads import Given, compiled, read_prepared
from memoryproject.foundation.integrations.embedders.hashing import HashingEmbedder
from sessions_app.recall.facade import Viewer, recall
from tests.world import CLIENT, World

FACTS = ["Tea costs 100% of 5", "TestCorp pays in 30 days", "The shop opens at 9"]


@pytest.mark.django_db
def test_it_reads_what_the_queryset_reads_with_the_values_of_each_call() -> None:
    memories = [
        Memory.objects.create(content=fact, visibility="owner", fact_key=fact) for fact in FACTS
    ]
    ids = Given("ids", UUIDField(), "(SELECT unnest(%s::uuid[]))")
    read = compiled(
        Memory.objects.filter(pk__in=ids, content__contains=Given("word", TextField()))
        .exclude(content__endswith="100%")
        .order_by("content")
        .values_list("content")
    )
    for word in ("Test", "%", "no such word"):
        for wanted in (memories, memories[:1]):
            keys = [memory.pk for memory in wanted]
            found = [content for (content,) in read_prepared(read, {"ids": keys, "word": word})]
            expected = Memory.objects.filter(pk__in=keys, content__contains=word)
            assert found == list(expected.order_by("content").values_list("content", flat=True))


@pytest.mark.django_db
def test_a_column_that_django_converts_is_refused() -> None:
    with pytest.raises(TypeError, match="Read columns .* of Memory as text"):
        compiled(Memory.objects.values_list("pk", "metadata"))


def calls_of_prepared() -> dict[str, int]:
    """How often each prepared statement of this connection ran."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement, custom_plans + generic_plans FROM pg_prepared_statements")
        return dict(cursor.fetchall())


def test_a_connection_prepares_the_reads_of_a_recall_once(world: World) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    world.say(CLIENT, "TestCorp pays when the goods are there")
    viewer = Viewer("client", world.chat(CLIENT).pk)

    def ask() -> None:
        found = recall(
            query="When does TestCorp pay?",
            viewer=viewer,
            embedder=HashingEmbedder(),
            min_similarity=0.0,
        )
        assert {hit.source for hit in found.hits} == {"memory", "message"}

    ask()
    before = calls_of_prepared()
    for _ in range(12):
        ask()
    after = calls_of_prepared()
    assert after.keys() == before.keys()
    # What changed, the memories, the messages.
    assert sum(calls - before[text] == 12 for text, calls in after.items()) >= 3


@pytest.mark.django_db
def test_the_driver_keeps_no_other_statements_with_their_values() -> None:
    read = compiled(Memory.objects.filter(content=Given("text", TextField())).values_list("pk"))
    read_prepared(read, {"text": "nothing"})
    tracemalloc.start()
    for number in range(20):
        assert not Memory.objects.filter(content=f"{number}" + "x" * 1_000_000).exists()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 5_000_000
