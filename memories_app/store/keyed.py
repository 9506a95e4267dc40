"""Keyed memories: JSON objects that programs store and find by a namespace and a key.

A scope has one memory of a namespace and key. It is compared with no other memory, whatever both
say. Its content is the text by which recall finds it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from memories_app.errors import MemoryNotFoundError, MemoryStateError
from memories_app.facts.validation import MAX_CONTENT, NewMemory
from memories_app.models import Memory, MemoryStatus
from memories_app.store import change, memory_fields, retract
from memories_app.store.remember import memory_remember
from memories_app.visibility import scope_of
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.text.characters import cut_at_word

# Others may store or remove the same memory meanwhile.
TRIES = 5
EXPIRED_AT_ONCE = 1_000


def keyed_in(scope: str) -> Q:
    """Return a filter for the keyed memories of a scope, with those that have expired."""
    return Q(scope=scope, key__isnull=False, status=MemoryStatus.ACTIVE)


def within_namespace(namespace: str) -> Q:
    """Return a filter for the memories of a namespace and of those below it."""
    return Q(namespace=namespace) | Q(namespace__startswith=f"{namespace}.")


def keyed_put(
    new: NewMemory,
    *,
    embedder: Embedder,
    actor: Actor,
    check: Callable[[Memory | None], None],
    before_storing: Callable[[], None],
) -> tuple[Memory, bool]:
    """Store a keyed memory in place of the one with its key; return it and whether it is new.

    Equal values change nothing and make no revision. One that has expired counts as absent.
    ``check`` gets the memory there, locked, or None, before anything is stored; ``before_storing``
    is called first in the transaction that stores a new one; their errors are passed on.

    Raises what memory_remember and memory_patch raise; nothing is changed then.
    """
    changes = {name: getattr(new, name) for name in ("content", "value", "metadata", "expires_at")}
    scope = scope_of(new.visibility, new.chat_id)
    there = Memory.objects.filter(keyed_in(scope), namespace=new.namespace, key=new.key)

    def claim() -> None:
        before_storing()
        memory_fields.scopes_lock([scope])
        if there.exists():
            raise MemoryStateError(_("Somebody else changed this memory. Look, and try again."))
        check(None)

    def once() -> tuple[Memory, bool]:
        known = there.first()
        if known is None:
            made = memory_remember(new, embedder=embedder, actor=actor, before_storing=claim)
            return made.memory, True
        ended = known.expires_at is not None and known.expires_at <= timezone.now()
        seen: Callable[[Memory], None] = (lambda _memory: check(None)) if ended else check
        memory = change.memory_patch(
            memory_id=known.pk, changes=changes, actor=actor, embedder=embedder, check=seen
        )
        return memory, ended

    for _attempt in range(TRIES - 1):
        with suppress(MemoryNotFoundError, MemoryStateError):
            return once()
    return once()


def value_text(value: Mapping[str, Any], fields: Sequence[str] | None = None) -> str:
    """Return the texts, numbers and truth values of a JSON object as lines "names: text".

    ``fields``: only what is in one of these, such as "title" or "body.text"; "$" is the whole. A
    list counts as each of its entries. The text has the length of a memory at most.
    """
    lines = [
        f"{' '.join(path)}: {text}"
        for path, text in _leaves(value)
        if fields is None or any(_is_within(path, field) for field in fields)
    ]
    return cut_at_word("\n".join(lines), MAX_CONTENT)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _leaves(each, (*path, str(name)))
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, path)
    elif isinstance(value, bool):
        yield path, str(value).lower()
    elif value is not None and str(value).strip():
        yield path, str(value)


def _is_within(path: Sequence[str], field: str) -> bool:
    return field == "$" or f"{'.'.join(path)}.".startswith(f"{field}.")


def keyed_expire(now: datetime) -> None:
    """Delete keyed memories that have expired, a limited number of them at once.

    Programs store many for a short time. Other memories stay for staff, who may renew them.
    """
    expired = Memory.objects.filter(key__isnull=False, expires_at__lte=now).order_by("expires_at")
    keys = list(expired.values_list("pk", flat=True)[:EXPIRED_AT_ONCE])
    if keys:
        retract.memories_delete(memory_ids=keys, actor=SYSTEM)
