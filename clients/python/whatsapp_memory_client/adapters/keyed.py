"""Values by namespace and key, for LangGraph's store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from .. import operations
from ..client import MemoryClient
from ..core import NotFound, given
from .filters import fits, is_like, joined, levels

MAX_RECALLED = 100


class KeyedMemories:
    """Those of one scope: of a chat, of the owner, or public ones."""

    def __init__(self, client: MemoryClient, chat: str | None, *, public: bool) -> None:
        self._client = client
        self._chat = chat
        self._scope = given(whatsapp_chat=chat, visibility="public" if public else None)

    def get(self, namespace: Sequence[str], key: str) -> Any:
        """The memory; None where there is none."""
        with suppress(NotFound):
            call = operations.memories_keyed_get(joined(namespace), key, **self._scope)
            return self._client.call(call)
        return None

    def put(self, namespace: Sequence[str], key: str, body: Any) -> None:
        call = operations.memories_keyed_put(joined(namespace), key, body, **self._scope)
        self._client.call(call)

    def forget(self, namespace: Sequence[str], key: str) -> None:
        with suppress(NotFound):
            call = operations.memories_keyed_forget(joined(namespace), key, **self._scope)
            self._client.call(call)

    def find(
        self, prefix: Sequence[str], query: str | None, wanted: Mapping[str, Any]
    ) -> Iterator[Any]:
        """Yield what the filter lets pass: the best first, then those of which no text fits."""
        recalled = self._recalled(prefix, query) if query else []
        seen = {each["memory_id"] for each in recalled}
        plain = {name: each for name, each in wanted.items() if isinstance(each, str | int | float)}
        every = self._listed(prefix, **given(value=plain or None))
        listed = (each for each in every if each["memory_id"] not in seen)
        return (each for each in chain(recalled, listed) if fits(each["value"], wanted))

    def namespaces(
        self, wanted: Sequence[tuple[str, Sequence[str]]], depth: int | None
    ) -> list[tuple[str, ...]]:
        """Those that match each condition ("prefix" or "suffix", and levels or "*"), in order."""
        every = [levels(each) for each in self._names()]
        found = [each for each in every if all(is_like(each, *condition) for condition in wanted)]
        return sorted({each[:depth] for each in found})

    def _names(self) -> Iterator[str]:
        call = operations.memories_keyed_namespaces(**self._scope, limit=1000)
        return (each["namespace"] for each in self._client.items(call))

    def _listed(self, prefix: Sequence[str], **query: Any) -> Iterator[Any]:
        roots = {joined(prefix)} if prefix else {each.split(".")[0] for each in self._names()}
        for root in sorted(roots):
            call = operations.memories_keyed_list(root, **self._scope, **query)
            yield from self._client.items(call)

    def _recalled(self, prefix: Sequence[str], query: str) -> list[Any]:
        one = next(self._listed(prefix), None)
        fields = given(whatsapp_chat=self._chat, namespace=joined(prefix) or None)
        fields |= {"sources": ["memories"], "min_similarity": 0, "top_k": MAX_RECALLED}
        found = self._client.recall(query, **fields)["results"] if one else []
        # What else the chat may see has the same namespaces, and is of another scope.
        scope = one and (one["visibility"], one["whatsapp_chat"])
        ours = [each for each in found if (each["visibility"], each["whatsapp_chat"]) == scope]
        return [each for each in ours if each.get("key") is not None]
