"""What a process holds of a scope is what the database holds, whoever changes it."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from django.db import connection, transaction
from django.utils import timezone

from memories_app.models import Memory, MemoryEmbedding, TextChange
from memories_app.ranking import scope_cache
from memories_app.ranking.scope_cache import Columns, HeldScope, ScopeCache, ids_of
from memories_app.search.facade import EVERY_SCOPE, changes_prune, memories_of_scope
from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.text.terms import index_text
from tests.threads import at_once

MODEL = "test-model"
NOTHING = Columns([], lambda rows: np.zeros(len(rows), []))


@pytest.fixture
def cache() -> ScopeCache:
    return ScopeCache()


def scope(name: str = "public", most: int | None = None) -> HeldScope:
    return HeldScope(name, partial(memories_of_scope, name), MODEL, NOTHING, most)


def held(cache: ScopeCache, name: str = "public") -> dict[UUID, tuple[int, bool]]:
    """The length of each text that the cache holds, and whether it has a vector."""
    (index,) = cache.open([scope(name)])
    assert index is not None
    rows = np.arange(len(index))
    ids = ids_of(index.keys_of(rows))
    assert len(set(ids)) == len(ids)
    with_vector = index.marked(lambda segment: segment.vectors.scales > 0)
    lengths = index.lengths_of(rows)
    return dict(zip(ids, zip(lengths.tolist(), with_vector.tolist(), strict=True), strict=True))


def stored(name: str = "public") -> dict[UUID, tuple[int, bool]]:
    """The same by the database."""
    with_vector = set(
        MemoryEmbedding.objects.filter(model=MODEL).values_list("memory_id", flat=True)
    )
    rows = memories_of_scope(name).values_list("pk", "term_count")
    return {key: (length, key in with_vector) for key, length in rows}


def remember(text: str, **values: Any) -> Memory:
    indexed = index_text(text)
    values = {"visibility": "public", "terms": indexed.terms, "term_count": indexed.length} | values
    return Memory.objects.create(content=text, fact_key=uuid4().hex, **values)


def embed(memory: Memory, model: str = MODEL) -> None:
    MemoryEmbedding.objects.create(memory=memory, model=model, vector=[1.0, 2.0, 3.0])


class Other:
    """Another process, with a transaction of its own. It changes only its own memories."""

    def __init__(self, templates: list[Memory]) -> None:
        self._connection = connection.copy()
        self._connection.set_autocommit(False)
        self._own = [memory.pk for memory in templates]
        self._fresh: list[UUID] = []

    def run(self, statement: str, *params: Any) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, params)

    def add(self) -> None:
        key = uuid4()
        columns = [
            present(field.column)
            for field in Memory._meta.concrete_fields
            if field.column not in ("memory_id", "fact_key", "scope")
        ]
        names = ", ".join(columns)
        self.run(
            f"INSERT INTO memories_app_memory (memory_id, fact_key, {names})"
            f" SELECT %s, %s, {names} FROM memories_app_memory LIMIT 1",
            key,
            key.hex,
        )
        self._fresh.append(key)

    def change(self, draw: random.Random) -> None:
        statement = draw.choice(
            [
                "UPDATE memories_app_memory SET term_count = term_count + 1 WHERE memory_id = %s",
                "UPDATE memories_app_memory SET status = 'superseded' WHERE memory_id = %s",
                "UPDATE memories_app_memory SET status = 'active' WHERE memory_id = %s",
                "UPDATE memories_app_memory SET visibility = 'owner' WHERE memory_id = %s",
                "UPDATE memories_app_memory SET visibility = 'public' WHERE memory_id = %s",
                "UPDATE memories_app_memory SET told_count = told_count + 1 WHERE memory_id = %s",
                "DELETE FROM memories_app_memoryembedding WHERE memory_id = %s",
                "INSERT INTO memories_app_memoryembedding (memory_id, model, vector)"
                f" VALUES (%s, '{MODEL}', '[3,2,1]') ON CONFLICT DO NOTHING",
            ]
        )
        self.run(statement, draw.choice(self._own))

    def remove(self, draw: random.Random) -> None:
        if len(self._own) > 1:
            key = self._own.pop(draw.randrange(len(self._own)))
            self.run("DELETE FROM memories_app_memoryembedding WHERE memory_id = %s", key)
            self.run("DELETE FROM memories_app_memory WHERE memory_id = %s", key)

    def commit(self) -> None:
        self._connection.commit()
        self._own += self._fresh
        self._fresh = []

    def rollback(self) -> None:
        self._connection.rollback()
        self._fresh = []
        with connection.cursor() as cursor:
            cursor.execute("SELECT memory_id FROM memories_app_memory")
            there = {key for (key,) in cursor.fetchall()}
        self._own = [key for key in self._own if key in there]

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def others(transactional_db: None) -> Iterator[list[Other]]:
    made = [Other([remember(f"fact {n} {m}") for m in range(4)]) for n in range(2)]
    yield made
    for other in made:
        other.close()


@pytest.mark.parametrize("seed", range(12))
def test_it_holds_what_is_stored_whatever_transactions_do_meanwhile(
    others: list[Other], cache: ScopeCache, seed: int
) -> None:
    draw = random.Random(seed)
    for step in range(60):
        other = draw.choice(others)
        what = draw.choice(["add", "change", "change", "remove", "commit", "rollback", "read"])
        if what == "change":
            other.change(draw)
        elif what == "remove":
            other.remove(draw)
        elif what != "read":
            getattr(other, what)()
        if what in ("commit", "rollback", "read"):
            name = draw.choice(["public", "owner", EVERY_SCOPE])
            assert held(cache, name) == stored(name), f"step {step}, {name}"


def test_a_transaction_that_began_before_the_reading_is_not_missed(
    others: list[Other], cache: ScopeCache
) -> None:
    early, late = others
    early.add()
    late.add()
    late.commit()
    before = held(cache)
    assert before == stored()

    early.commit()

    assert held(cache) == stored() != before


def test_only_what_changed_is_read_again(
    others: list[Other], cache: ScopeCache, django_assert_num_queries: Any
) -> None:
    held(cache)

    with django_assert_num_queries(1):
        cache.open([scope()])

    others[0].add()
    others[0].commit()
    with django_assert_num_queries(2):
        (index,) = cache.open([scope()])
    assert index is not None
    assert len(index) == 9


def test_several_scopes_are_checked_by_one_statement(
    others: list[Other], cache: ScopeCache, django_assert_num_queries: Any
) -> None:
    cache.open([scope("public"), scope("owner"), scope(EVERY_SCOPE)])

    with django_assert_num_queries(1):
        cache.open([scope("public"), scope("owner"), scope(EVERY_SCOPE)])


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_was_never_held(cache: ScopeCache) -> None:
    remember("kept")
    held(cache)

    with transaction.atomic():
        fresh = remember("not kept")
        assert fresh.pk in held(cache)
        transaction.set_rollback(True)

    assert held(cache) == stored()
    assert fresh.pk not in held(cache)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["public", EVERY_SCOPE])
def test_what_is_emptied_at_once_is_gone(cache: ScopeCache, name: str) -> None:
    remember("one")
    assert len(held(cache, name)) == 1

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE memories_app_memory CASCADE")

    assert held(cache, name) == {}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["public", EVERY_SCOPE])
def test_nothing_is_missed_after_the_log_was_pruned(name: str) -> None:
    remember("one")
    reader, late = ScopeCache(), ScopeCache()
    held(reader, name)
    held(late, name)
    remember("two")
    held(reader, name)

    later = timezone.now() + timedelta(minutes=1)
    assert changes_prune(before=later) > 0
    assert changes_prune(before=later) == 0

    assert TextChange.objects.count() == 1
    assert held(late, name) == stored(name) == held(reader, name)
    remember("three")
    assert held(late, name) == stored(name) == held(reader, name)


@pytest.mark.django_db(transaction=True)
def test_a_log_from_another_server_is_not_taken_for_news(
    cache: ScopeCache, django_assert_num_queries: Any
) -> None:
    """A dump keeps the log, and the ids of another server's transactions may be larger."""
    remember("one")
    TextChange.objects.create(scope="", changed_in=2**40)
    TextChange.objects.create(scope="public", text_id=uuid4(), changed_in=2**40)
    changes_prune(before=timezone.now() + timedelta(minutes=1))
    held(cache)
    held(cache)

    with django_assert_num_queries(1):
        assert cache.open([scope()])[0] is not None


@pytest.mark.django_db(transaction=True)
def test_a_text_whose_vector_is_another_models_has_none(cache: ScopeCache) -> None:
    memory = remember("one")
    embed(memory, model="another")
    assert held(cache)[memory.pk][1] is False

    embed(memory)

    assert held(cache)[memory.pk][1] is True


@pytest.mark.django_db(transaction=True)
def test_a_scope_that_is_too_large_is_not_held(cache: ScopeCache) -> None:
    for number in range(3):
        remember(f"fact {number}")

    assert cache.open([scope(most=2)]) == [None]
    assert ScopeCache().open([scope(most=3)])[0] is not None


@pytest.mark.django_db(transaction=True)
def test_many_changes_at_once_are_read_anew(
    cache: ScopeCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("first")
    held(cache)
    texts = [index_text(f"fact {number}") for number in range(scope_cache.MAX_CHANGES + 1)]
    Memory.objects.bulk_create(
        Memory(
            content="",
            fact_key=uuid4().hex,
            visibility="public",
            terms=text.terms,
            term_count=text.length,
        )
        for text in texts
    )

    assert held(cache) == stored()


@pytest.mark.django_db(transaction=True)
def test_what_is_searched_longest_ago_is_dropped_first_and_the_last_one_stays() -> None:
    cache = ScopeCache(max_bytes=lambda: 1)
    for name in ("public", "owner"):
        remember("fact", visibility=name)
        held(cache, name)

    assert [name for name, _ in cache.held()] == ["owner"]


@pytest.mark.django_db(transaction=True)
def test_the_scopes_of_one_recall_stay_together_however_large_they_are() -> None:
    """Otherwise each recall would drop what the next one needs, and read all of it again."""
    cache = ScopeCache(max_bytes=lambda: 1)
    for name in ("public", "owner"):
        remember("fact", visibility=name)
    scopes = [scope("public"), scope("owner")]

    first = cache.open(scopes)
    second = cache.open(scopes)

    assert all(new is old for new, old in zip(second, first, strict=True))


def test_a_process_holds_as_much_as_the_setting_allows(settings: Any) -> None:
    settings.RECALL_MEMORY_MB = 16

    assert scope_cache.max_bytes() == 16 * 1024**2


@pytest.mark.django_db(transaction=True)
def test_what_is_not_searched_is_dropped_after_a_while() -> None:
    dropped = threading.Event()
    cache = ScopeCache(idle_seconds=0.05, dropped=dropped.set)
    remember("fact")
    held(cache)

    assert dropped.wait(10)
    assert cache.held() == []


@pytest.mark.django_db(transaction=True)
def test_threads_that_open_the_same_scopes_wait_for_each_other(cache: ScopeCache) -> None:
    remember("fact")
    names = ["public", "owner", EVERY_SCOPE]

    def open_some(turn: int) -> None:
        for number in range(30):
            order = names if (turn + number) % 2 else names[::-1]
            cache.open([scope(name) for name in order])

    at_once(*(partial(open_some, turn) for turn in range(4)))
