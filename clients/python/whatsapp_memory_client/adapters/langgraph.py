"""LangGraph: keyed memories as a store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any, TypeVar

from langgraph.store import base

from ..client import MemoryClient
from ..core import NotFound, given
from .filters import index_of, levels
from .keyed import KeyedMemories

TTL = "ttl_minutes"
AnItem = TypeVar("AnItem", bound=base.Item)


class MemoryStore(base.BaseStore):
    """The keyed memories of a chat; without a chat the owner's, or with ``public`` those for all.

    Texts are found by their meaning: all of an item, or those that its ``index`` names.
    """

    supports_ttl = True

    def __init__(
        self, client: MemoryClient, whatsapp_chat: str | None = None, *, public: bool = False
    ) -> None:
        self._client = client
        self._keyed = KeyedMemories(client, whatsapp_chat, public=public)

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        return [self._run(op) for op in ops]

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _run(self, op: base.Op) -> base.Result:
        base.validate_op_namespace(op)
        if isinstance(op, base.GetOp):
            stored = self._keyed.get(op.namespace, op.key)
            return None if stored is None else self._item(base.Item, stored, op)
        if isinstance(op, base.SearchOp):
            every = self._keyed.find(op.namespace_prefix, op.query, op.filter or {})
            found = islice(every, op.offset, op.offset + op.limit)
            return [self._item(base.SearchItem, x, op, score=x.get("score")) for x in found]
        if isinstance(op, base.ListNamespacesOp):
            wanted = [(each.match_type, each.path) for each in op.match_conditions or ()]
            return self._keyed.namespaces(wanted, op.max_depth)[op.offset : op.offset + op.limit]
        if op.value is None:
            self._keyed.forget(op.namespace, op.key)
            return None
        index = None if op.index is None else index_of(op.index)
        body = given(value=op.value, index=index)
        if op.ttl is not None:
            body |= {"ttl_seconds": max(1, round(op.ttl * 60)), "metadata": {TTL: op.ttl}}
        self._keyed.put(op.namespace, op.key, body)
        return None

    def _item(
        self, kind: type[AnItem], stored: Any, op: base.GetOp | base.SearchOp, **more: Any
    ) -> AnItem:
        minutes = stored["metadata"].get(TTL)
        if op.refresh_ttl and minutes is not None:
            ends = datetime.now(timezone.utc) + timedelta(minutes=minutes)
            with suppress(NotFound):
                self._client.change(stored["memory_id"], expires_at=ends)
        # Python 3.10 doesn't read Z.
        times = [stored["created_at"], stored.get("updated_at") or stored["created_at"]]
        made, changed = (datetime.fromisoformat(each.replace("Z", "+00:00")) for each in times)
        named = {"namespace": levels(stored["namespace"]), "key": stored["key"], **more}
        return kind(value=stored["value"], created_at=made, updated_at=changed, **named)
