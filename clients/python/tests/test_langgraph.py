"""What LangGraph expects of a store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from conftest import SERVER, TOKEN
from langgraph.store.base import InvalidNamespaceError, MatchCondition, PutOp
from whatsapp_memory_client import MemoryClient
from whatsapp_memory_client.adapters.langgraph import MemoryStore


@pytest.fixture
def client() -> Iterator[MemoryClient]:
    with MemoryClient(SERVER, TOKEN) as made:
        yield made


@pytest.fixture
def store(client: MemoryClient, chat: str) -> MemoryStore:
    return MemoryStore(client, chat)


def test_put_get_update_and_delete(store: MemoryStore) -> None:
    assert store.get(("test",), "k1") is None
    store.delete(("test",), "k1")
    store.put(("test",), "k1", {"name": "Alice", "age": 30})
    first = store.get(("test",), "k1")
    store.put(("test",), "k1", {"name": "Alice", "age": 31})
    second = store.get(("test",), "k1")
    assert first is not None
    assert second is not None
    assert (first.value, second.value["age"]) == ({"name": "Alice", "age": 30}, 31)
    assert second.created_at == first.created_at < second.updated_at
    store.delete(("test",), "k1")
    assert store.get(("test",), "k1") is None


# The values of two keys, none of which may take the other's place.
PAIRS = {
    "the same": ("same text", "same text"),
    "contradicting": ("The bus leaves at 8:00", "The bus leaves at 8:30"),
    "differing by case": ("hello world", "Hello, World!"),
}


@pytest.mark.parametrize("values", PAIRS.values(), ids=PAIRS)
def test_equal_and_similar_values_are_two_items(
    store: MemoryStore, values: tuple[str, str]
) -> None:
    for namespace in (("a",), ("b",)):
        for key, value in zip(("x", "y"), values, strict=True):
            store.put(namespace, key, {"v": value})
    for namespace in (("a",), ("b",)):
        found = [store.get(namespace, key) for key in ("x", "y")]
        assert [each and (each.namespace, each.value) for each in found] == [
            (namespace, {"v": value}) for value in values
        ]


VALUES = {
    "20 KB": {"v": "x" * 20_000},
    "200 KB": {"v": "שלום " * 20_000},
    "nested": {"v": {"deep": [1, {"a": None}]}, "n": None},
    "empty": {},
    "numbers": {"v": 1.5, "w": 12345678901234567890, "t": True, "z": 0},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_values_come_back_as_they_were(store: MemoryStore, value: dict[str, object]) -> None:
    store.put(("v",), "1", {"more": 1, **value})
    store.put(("v",), "1", value)
    found = store.get(("v",), "1")
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    "key", ["k.with/odd: chars\n", "a/b", "%2F", "שלום 😀", "Q?x=1&y#z", "x" * 256]
)
def test_odd_keys_and_namespaces(store: MemoryStore, key: str) -> None:
    namespace = ("users", key.replace(".", "")[:100], "prefs")
    store.put(namespace, key, {"v": "odd"})
    found = store.get(namespace, key)
    assert found is not None
    assert (found.namespace, found.key) == (namespace, key)
    assert store.list_namespaces() == [namespace]
    assert [each.key for each in store.search(namespace[:2])] == [key]
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "k", {})])


FILTERS = [
    ({"tag": "red"}, [1, 3]),
    ({"score": {"$gt": 2}}, [3, 4]),
    ({"score": {"$gte": 2, "$lt": 4}, "tag": "blue"}, [2]),
    ({"score": {"$lte": 0}}, [0]),
    ({"tag": {"$ne": "red"}}, [0, 2, 4]),
    ({"tag": {"$eq": "red"}, "score": 1}, [1]),
    ({"missing": {"$gt": 1}}, []),
    ({"missing": {"$ne": 1}}, [0, 1, 2, 3, 4]),
    ({"deep": {"n": {"$gt": 3}}}, [4]),
    ({"list": ["a", 1]}, [1]),
    ({"tag": {"$gt": 1}}, []),
]


@pytest.fixture
def five(store: MemoryStore) -> MemoryStore:
    subjects = ["the harbour", "a bakery in Haifa", "three tractors", "opening hours", "violins"]
    for n, subject in enumerate(subjects):
        value = {"score": n, "tag": "red" if n % 2 else "blue", "text": f"About {subject}"}
        store.put(("f", f"n{n % 2}"), f"k{n}", {**value, "deep": {"n": n}, "list": ["a", n]})
    store.put(("other",), "k9", {"text": "About a bakery in Haifa"})
    return store


def test_filters(five: MemoryStore) -> None:
    for wanted, numbers in FILTERS:
        found = five.search(("f",), filter=wanted)  # type: ignore[arg-type]
        assert sorted(each.value["score"] for each in found) == numbers, wanted
        asked = five.search(("f",), query="bakery", filter=wanted)  # type: ignore[arg-type]
        assert sorted(each.value["score"] for each in asked) == numbers, wanted
    with pytest.raises(ValueError, match="operator"):
        five.search(("f",), filter={"score": {"$in": [1]}})


def test_search_by_meaning_and_by_pages(five: MemoryStore, client: MemoryClient) -> None:
    best, *rest = five.search(("f",), query="Where is the bakery?")
    assert best.key == "k1"
    assert best.score is not None
    assert {each.key for each in rest} == {"k0", "k2", "k3", "k4"}
    pages = [five.search(("f",), query="bakery", limit=2, offset=n)[:2] for n in (0, 2, 4)]
    assert sorted(each.key for page in pages for each in page) == ["k0", "k1", "k2", "k3", "k4"]
    assert [each.key for each in five.search(("f", "n1"), limit=1, offset=1)] == ["k3"]
    assert len(five.search((), limit=20)) == 6
    assert five.search(("nothing",), query="bakery") == []
    # What is public has the same namespace, and is another store's.
    public = MemoryStore(client, public=True)
    public.put(("f",), "public", {"text": "A bakery in Haifa"})
    assert "public" not in {each.key for each in five.search(("f",), query="bakery")}
    assert [each.key for each in public.search(("f",), query="bakery")] == ["public"]
    public.delete(("f",), "public")


def test_what_is_indexed_is_found(store: MemoryStore) -> None:
    both = {"title": "The bakery", "body": {"text": "violins"}, "tags": [{"n": "harbour"}]}
    store.put(("i",), "none", both, index=False)
    store.put(("i",), "title", both, index=["title"])
    store.put(("i",), "tags", both, index=["tags[*].n"])

    for query, best in (("bakery", "title"), ("harbour", "tags")):
        found = store.search(("i",), query=query)
        assert (found[0].key, found[-1].key, found[-1].score) == (best, "none", None)


def test_namespaces_are_listed(store: MemoryStore) -> None:
    for namespace in (("a", "b", "c"), ("a", "b", "d"), ("x", "y"), ("x", "y", "c")):
        store.put(namespace, "i", {"v": "/".join(namespace)})
    every = store.list_namespaces
    assert every() == [("a", "b", "c"), ("a", "b", "d"), ("x", "y"), ("x", "y", "c")]
    assert every(max_depth=2) == [("a", "b"), ("x", "y")]
    assert every(prefix=("a",), suffix=("d",)) == [("a", "b", "d")]
    assert every(suffix=("*", "c")) == [("a", "b", "c"), ("x", "y", "c")]
    assert every(prefix=("x", "*", "c")) == [("x", "y", "c")]
    assert every(limit=1, offset=1) == [("a", "b", "d")]
    assert MatchCondition("prefix", ("a",)).path == ("a",)


def test_an_item_ends_with_its_time_and_lives_longer_when_it_is_read(
    store: MemoryStore, client: MemoryClient, chat: str
) -> None:
    def ends() -> str | None:
        return next(client.memories(whatsapp_chat=chat))["expires_at"]

    store.put(("t",), "1", {"v": "short lived"}, ttl=10)
    first = ends()
    store.get(("t",), "1", refresh_ttl=False)
    assert ends() == first is not None
    store.get(("t",), "1")
    assert str(ends()) > str(first)
    store.put(("t",), "1", {"v": "short lived"})
    assert ends() is None
    store.put(("t",), "1", {"v": "short lived"}, ttl=0.001)
    deadline = time.monotonic() + 60
    while store.get(("t",), "1", refresh_ttl=False) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    store.put(("t",), "1", {"v": "short lived"})
    found = store.get(("t",), "1")
    assert found is not None
    assert ends() is None


def test_it_is_used_by_event_loops_and_keeps_chats_apart(
    store: MemoryStore, client: MemoryClient, chat: str
) -> None:
    async def many() -> None:
        await asyncio.gather(*[store.aput(("m",), f"k{n}", {"n": n}) for n in range(10)])
        found = await store.asearch(("m",), limit=20)
        assert sorted(each.value["n"] for each in found) == list(range(10))
        await store.adelete(("m",), "k0")
        assert await store.aget(("m",), "k0") is None

    asyncio.run(many())
    assert MemoryStore(client, f"other-{chat}").search(("m",)) == []
    assert MemoryStore(client, f"other-{chat}").search(("m",), query="n") == []
