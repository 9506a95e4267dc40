"""Keep the searched texts of scopes in memory, and read again only what changed.

PostgreSQL remains the only store. Each change of a text or a vector is logged by triggers in the
transaction that makes it (``TextChange``), with the transaction's id. Reading a scope notes the
oldest transaction that was still running; every change that was not visible then was made by that
transaction or a later one. So the next reader reads the log from there on, and then the rows that
it names. What is read is never kept if the reading transaction itself has written: it may be rolled
back.

A scope that no one searches for a while is dropped, so that an erased text is in no process's
memory for longer than that. See "Scopes in memory" in docs/recall.md.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias
from uuid import UUID
from weakref import WeakSet

import numpy as np
from django.conf import settings
from django.db import DatabaseError
from django.db.models import (
    BinaryField,
    FilteredRelation,
    Func,
    IntegerField,
    Q,
    QuerySet,
    TextField,
    Value,
)
from numpy.typing import NDArray

from memories_app.models import TextChange
from memoryproject.foundation.compiled_sql import (
    Given,
    compiled,
    given_ids,
    read_in_portions,
    read_prepared,
    sent_ids,
)
from memoryproject.foundation.retrieval.segment_merging import merged
from memoryproject.foundation.retrieval.text_index import (
    Segment,
    TextIndex,
    Vectors,
    hashes_of,
)

IDLE_SECONDS = 600
# The sizes of texts that are read at once, and that make reading a scope anew the quicker way.
CHUNK = 5_000
MAX_CHANGES = 1_000
MAX_SEGMENTS = 6

_BETWEEN = "\x1f"
# The start of the server is part of the name: what was not written durably may be lost in a crash.
# Ids of transactions that are still to come are from another server, by a dump of its database.
# The arrays are selected for the reason that ``given_ids`` has.
_HEAD = """
SELECT head.*, change.place, change.key
FROM (SELECT
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
    concat_ws(' ', current_database(), '{log}'::regclass::oid, pg_postmaster_start_time()),
    pg_current_xact_id_if_assigned() IS NOT NULL,
    coalesce((SELECT max(changed_in) FROM {log} WHERE scope = '' AND changed_in <= greatest(
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
        pg_current_xact_id_if_assigned()::text::bigint
    )), 0)
) AS head LEFT JOIN (
    SELECT asked.place, uuid_send(log.text_id) AS key
    FROM unnest(
        (SELECT string_to_array(%s, ' ')), (SELECT string_to_array(%s, ' ', 'None')::bigint[])
    ) WITH ORDINALITY AS asked (scope, seen, place),
    LATERAL (
        SELECT text_id FROM {log} WHERE scope = asked.scope AND changed_in >= asked.seen
        UNION ALL
        SELECT text_id FROM {log} WHERE asked.scope = '*' AND changed_in >= asked.seen
            AND scope <> '' AND scope NOT LIKE 'messages:%%'
    ) AS log
) AS change ON TRUE
"""

Keys: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Columns:
    """Values that a scope's texts have besides words and vectors.

    ``read`` gets the values of ``expressions`` for some texts, a sequence for each, and returns a
    structured array with one row for each text.
    """

    expressions: Sequence[Any]
    read: Callable[[Sequence[Sequence[Any]]], NDArray[np.void]]


@dataclass(frozen=True)
class HeldScope:
    """A scope that can be kept in memory.

    ``name``: as in the log. ``texts``: returns all that may be searched, without conditions that
    depend on the time. They have ``terms``, ``term_count`` and ``embeddings``. The same function
    always returns the same ones. ``most``: a scope with more texts is not kept. ``given``: what is
    ``Given`` in the texts.
    """

    name: str
    texts: Callable[[], QuerySet[Any]]
    model: str
    columns: Columns
    most: int | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Entry:
    """What is known of a scope; no index if it is too large. ``seen``: see the module."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    index: TextIndex | None = None
    seen: int | None = None
    database: str = ""
    used: float = 0.0

    @property
    def nbytes(self) -> int:
        return 0 if self.index is None else sum(part.nbytes for part in self.index.segments)


@dataclass(frozen=True)
class _Head:
    seen: int
    database: str
    is_writing: bool
    unsure_since: int
    changed: Sequence[Keys]


def max_bytes() -> int:
    return int(settings.RECALL_MEMORY_MB * 1024**2)


class ScopeCache:
    """The scopes that this process holds. Threads may share it.

    max_bytes: beyond this, those that were searched longest ago are dropped. The scopes of one
    recall stay together, however large they are: the next recall would read them again.
    dropped: called when scopes that no one searches have been dropped.
    """

    def __init__(
        self,
        *,
        max_bytes: Callable[[], int] = max_bytes,
        idle_seconds: float = IDLE_SECONDS,
        dropped: Callable[[], object] = lambda: None,
    ) -> None:
        self._max_bytes = max_bytes
        self._idle_seconds = idle_seconds
        self._dropped = dropped
        self._start()
        _caches.add(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self._cleaner: threading.Timer | None = None

    def open(self, scopes: Sequence[HeldScope]) -> list[TextIndex | None]:
        """Return the index of each scope, as of now; None for a scope that is too large."""
        if not scopes:
            return []
        keys = [(scope.name, scope.model) for scope in scopes]
        entries = self._entries_of(keys)
        with ExitStack() as locked:
            # In one order: two threads may open the same scopes.
            for key in sorted(set(keys)):
                locked.enter_context(entries[key].lock)
            try:
                found = self._refreshed(scopes, [entries[key] for key in keys])
            except DatabaseError:
                self.clear()
                raise
        self._tidy(kept=set(keys))
        return found

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()

    def _refreshed(
        self, scopes: Sequence[HeldScope], entries: Sequence[_Entry]
    ) -> list[TextIndex | None]:
        head = _read_head(scopes, entries)
        found = []
        for scope, entry, changed in zip(scopes, entries, head.changed, strict=True):
            known = (
                entry.seen is not None
                and entry.database == head.database
                and head.unsure_since < entry.seen <= head.seen
            )
            index = _changed_only(scope, entry.index, changed) if known else _read_all(scope)
            if not head.is_writing:
                entry.index, entry.seen, entry.database = index, head.seen, head.database
            found.append(index)
        return found

    def _entries_of(self, keys: Sequence[tuple[str, str]]) -> dict[Any, _Entry]:
        now = time.monotonic()
        with self._lock:
            for key in keys:
                entry = self._entries.setdefault(key, _Entry())
                entry.used = now
                self._entries.move_to_end(key)
            return {key: self._entries[key] for key in keys}

    def _tidy(self, kept: Set[tuple[str, str]] = frozenset()) -> None:
        """Drop what isn't used, and come back for the rest."""
        oldest = time.monotonic() - self._idle_seconds
        with self._lock:
            idle = [key for key, entry in self._entries.items() if entry.used < oldest]
            for key in idle:
                del self._entries[key]
            total = sum(entry.nbytes for entry in self._entries.values())
            most = self._max_bytes()
            for key in [key for key in self._entries if key not in kept]:
                if total <= most:
                    break
                total -= self._entries.pop(key).nbytes
            if self._entries and self._cleaner is None:
                self._cleaner = threading.Timer(self._idle_seconds / 2, self._tidy_later)
                self._cleaner.daemon = True
                self._cleaner.start()

    def _tidy_later(self) -> None:
        with self._lock:
            self._cleaner = None
            known = len(self._entries)
        self._tidy()
        if len(self.held()) < known:
            self._dropped()

    def held(self) -> list[tuple[str, str]]:
        """Return name and model of each scope, the one searched longest ago first."""
        with self._lock:
            return list(self._entries)


_caches: WeakSet[ScopeCache] = WeakSet()


def _forget_after_fork() -> None:
    """A child process has neither the threads nor their locks."""
    for cache in _caches:
        cache._start()


os.register_at_fork(after_in_child=_forget_after_fork)

SCOPES = ScopeCache()


def _read_head(scopes: Sequence[HeldScope], entries: Sequence[_Entry]) -> _Head:
    names = " ".join(scope.name for scope in scopes)
    # Nothing is asked for a scope that isn't known yet.
    seen = " ".join(str(entry.seen) for entry in entries)
    rows = read_prepared(_HEAD.format(log=TextChange._meta.db_table), [names, seen])
    changed: list[list[bytes]] = [[] for _ in scopes]
    for row in rows:
        if row[4] is not None:
            changed[row[4] - 1].append(row[5])
    return _Head(
        seen=rows[0][0],
        database=rows[0][1],
        is_writing=rows[0][2],
        unsure_since=rows[0][3],
        changed=[_keys_of(keys) for keys in changed],
    )


def _changed_only(scope: HeldScope, index: TextIndex | None, changed: Keys) -> TextIndex | None:
    """Return the index with the present state of the texts that changed."""
    if not len(changed) or index is None:
        return index
    changed = np.unique(changed, axis=0)
    if len(changed) > max(MAX_CHANGES, len(index) // 5):
        return _read_all(scope)
    segments = []
    for segment in index.segments:
        rows = segment.rows_of(changed)
        gone = rows[rows >= 0]
        left = segment.without(gone) if len(gone) else segment
        if len(left):
            segments.append(left)
    ids = sent_ids(ids_of(changed))
    statement = _changed_read(scope.texts, scope.columns)
    fresh = read_prepared(statement, {**scope.given, "model": scope.model, "ids": ids})
    if fresh:
        segments.append(_segment(scope, fresh))
    # Each is at least four times as large as the next, so that a text is seldom moved.
    while len(segments) > 1 and (
        len(segments[-2]) < 4 * len(segments[-1]) or len(segments) > MAX_SEGMENTS
    ):
        segments[-2:] = [merged(segments[-2:])]
    return TextIndex(segments)


def _read_all(scope: HeldScope) -> TextIndex | None:
    """Return the index of all texts; None if there are too many."""
    if scope.most is not None:
        too_many = scope.texts().order_by().values_list("pk")[scope.most : scope.most + 1]
        if read_prepared(compiled(too_many), scope.given):
            return None
    statement = compiled(_values(scope.texts(), scope.columns))
    given = {**scope.given, "model": scope.model}
    parts = [_segment(scope, rows) for rows in read_in_portions(statement, given, CHUNK)]
    return TextIndex([merged(parts)] if len(parts) > 1 else parts)


@lru_cache(maxsize=64)
def _changed_read(texts: Callable[[], QuerySet[Any]], columns: Columns) -> str:
    return compiled(_values(texts().filter(pk__in=given_ids("ids")), columns))


def _values(texts: QuerySet[Any], columns: Columns) -> QuerySet[Any, Any]:
    model = Given("model", TextField())
    vector = FilteredRelation("embeddings", condition=Q(embeddings__model=model))
    rows = texts.order_by().annotate(own_vector=vector)
    return rows.values_list(
        _sent("pk", "uuid_send"),
        Func("terms", Value(_BETWEEN), function="array_to_string", output_field=TextField()),
        Func("terms", function="cardinality", output_field=IntegerField()),
        "term_count",
        _sent("own_vector__vector", "vector_send"),
        *columns.expressions,
    )


def _sent(column: str, function: str) -> Func:
    """Return the column as bytes, which are read faster than values."""
    return Func(column, function=function, output_field=BinaryField())


def _segment(scope: HeldScope, rows: Sequence[Sequence[Any]]) -> Segment:
    """Return some texts as a segment. There is at least one."""
    keys, terms, sizes, lengths, vectors, *columns = zip(*rows, strict=True)
    joined = _BETWEEN.join(text for text, size in zip(terms, sizes, strict=True) if size)
    return Segment.of(
        keys=_keys_of(keys),
        lengths=np.array(lengths, np.int32),
        columns=scope.columns.read(
            list(zip(*columns, strict=True)) if columns else [()] * len(rows)
        ),
        vectors=_vectors_of(vectors),
        hashes=hashes_of(joined.split(_BETWEEN) if joined else []),
        sizes=np.array(sizes, np.int64),
    )


def ids_of(keys: Keys) -> list[UUID]:
    """Return the ids whose halves these are."""
    return [UUID(int=(high << 64) | low) for high, low in keys.tolist()]


def _keys_of(keys: Sequence[bytes]) -> Keys:
    return np.frombuffer(b"".join(keys), ">u8").reshape(-1, 2).astype(np.uint64)


def _vectors_of(sent: Sequence[bytes | None]) -> Vectors:
    known = np.array([vector is not None for vector in sent])
    present = [vector for vector in sent if vector is not None]
    return Vectors.of(vectors_from(present), known) if present else Vectors.none(len(sent))


def vectors_from(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """Return vectors that PostgreSQL sends: four bytes, then numbers of four bytes each."""
    numbers = np.frombuffer(b"".join(sent), ">f4").reshape(len(sent), -1)[:, 1:]
    return numbers.astype(np.float32)
