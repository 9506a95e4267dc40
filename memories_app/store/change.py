"""Change memories. The earlier content stays as a revision."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memories_app.errors import (
    DuplicateFactError,
    MemoryNotFoundError,
    MemoryOperationError,
    MemoryStateError,
    MemoryValidationError,
    Problem,
)
from memories_app.facts.facts import Likeness, fact_key, likeness_of
from memories_app.facts.validation import (
    FACT_TIMES,
    PROMISE,
    NewMemory,
    problems_of,
    promise_completed,
    storable_metadata,
    time_problems,
    visibility_problems,
)
from memories_app.models import Memory, MemoryStatus, RevisionReason
from memories_app.store.duplicate_lookup import KnownFacts
from memories_app.store.memory_fields import (
    content_set,
    memory_audit,
    revisions_add,
    scopes_lock,
    terms_set,
)
from memories_app.visibility import scope_of
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder, embed_covered
from memoryproject.foundation.outgoing_webhooks.deliveries import hooks_gathered
from memoryproject.foundation.process.tracing import memory_span, note_records


@dataclass(frozen=True)
class NewText:
    """A new text. ``vector`` is by the model ``model_id``, None if it doesn't cover the text."""

    content: str
    vector: list[float] | None
    model_id: str

    @classmethod
    def made(cls, content: str, embedder: Embedder) -> NewText:
        """Make the vector, before the transaction: a provider is called. Raises EmbedderError."""
        (vector,) = embed_covered(embedder, [content])
        return cls(content, vector, embedder.model_id)


def texts_set(
    memory: Memory, given: Mapping[str, Any], *, text: NewText | None, actor: Actor
) -> None:
    """Change the texts of a memory that is locked; equal values change nothing.

    ``text``: the new content with its vector; None where the content stays. Raises
    MemoryStateError, also if the content changed since ``text`` was made, and DuplicateFactError.
    """
    changed = [name for name, value in given.items() if differs(getattr(memory, name), value)]
    if not changed:
        return
    if memory.status == MemoryStatus.SUPERSEDED:
        raise MemoryStateError(_("This memory was superseded: change the newer one."))
    revisions_add([memory], reason=RevisionReason.UPDATED, actor=actor)
    if "content" in changed:
        if text is None:
            raise MemoryStateError(_("Somebody else changed this memory. Look, and try again."))
        refuse_duplicate(memory, scope=memory.scope, content=text.content)
        content_set(memory, **vars(text))
    for name in set(changed) - {"content"}:
        setattr(memory, name, given[name])
    if "tags" in changed:
        terms_set(memory)
    memory.save()
    memory_audit("memory.update", memory, actor, fields=sorted(changed))


def differs(one: Any, other: Any) -> bool:
    """Return whether two values differ as JSON, in which true isn't 1."""
    if one != other or not isinstance(one, dict):
        return bool(one != other)
    # Stored numbers may have lost their point.
    first, second = (json.loads(json.dumps(each), parse_int=float) for each in (one, other))
    return json.dumps(first, sort_keys=True) != json.dumps(second, sort_keys=True)


def _checked(known: Memory, changes: Mapping[str, Any], visibility: str) -> dict[str, Any]:
    """Return the changed texts as they are stored. Raises MemoryValidationError."""
    given = {name: changes[name] for name in TEXTS if changes.get(name) is not None}
    fields = {"content": known.content, "value": known.value, **given}
    fields |= {"tags": tuple(given.get("tags", ())), "namespace": known.namespace, "key": known.key}
    kind = fields.setdefault("type", known.type)
    new = NewMemory(**fields, visibility=visibility, chat_id=known.chat_id)
    problems = [problem for problem in problems_of(new) if problem.field in changes]
    if problems:
        raise MemoryValidationError(problems)
    if "metadata" in given:
        given["metadata"] = storable_metadata(given["metadata"])
    if kind == PROMISE and given.keys() & {"type", "metadata"}:
        # A state alone may be given, and other metadata leaves the promise as it is.
        stored, metadata = promise_completed(known.metadata), given.get("metadata")
        changed = stored if metadata is None else metadata
        promise = {**stored[PROMISE], **changed.get(PROMISE, {})}
        given["metadata"] = {**changed, PROMISE: promise}
    return given


def memory_set_visibility(*, memory_id: UUID, visibility: str, actor: Actor) -> Memory:
    """Change the visibility of a memory.

    Raises MemoryValidationError, MemoryNotFoundError, MemoryStateError, DuplicateFactError.
    """
    known = memory_get(memory_id)
    problems = list(visibility_problems(visibility, known.chat_id))
    if problems:
        raise MemoryValidationError([Problem(*each) for each in problems])
    target = scope_of(visibility, known.chat_id)
    with transaction.atomic():
        memory = memory_locked(memory_id, also=target)
        before = memory.visibility
        if before == visibility:
            return memory
        refuse_duplicate(memory, scope=target, content=memory.content)
        revisions_add([memory], reason=RevisionReason.UPDATED, actor=actor)
        memory.visibility = visibility
        memory.save()
        memory.refresh_from_db(fields=["scope"])
        memory_audit("memory.visibility", memory, actor, before=before, after=visibility)
    return memory


def memory_pin(*, memory_id: UUID, actor: Actor, pinned: bool = True) -> Memory:
    """Pin or unpin a memory. Raises MemoryNotFoundError, MemoryStateError."""
    with transaction.atomic():
        memory = memory_locked(memory_id)
        if memory.pinned != pinned:
            memory.pinned = pinned
            memory.save(update_fields=["pinned", "updated_at"])
            memory_audit("memory.pin" if pinned else "memory.unpin", memory, actor)
    return memory


def memory_expire_at(*, memory_id: UUID, at: datetime | None, actor: Actor) -> Memory:
    """Set the time when a memory expires, or remove it.

    Raises MemoryValidationError, MemoryNotFoundError, MemoryStateError.
    """
    if at is not None and timezone.is_naive(at):
        raise MemoryValidationError([Problem("expires_at", _("has no time zone"))])
    with transaction.atomic():
        memory = memory_locked(memory_id)
        if memory.expires_at != at:
            memory.expires_at = at
            memory.save(update_fields=["expires_at", "updated_at"])
            ends = at.isoformat() if at else None
            memory_audit("memory.expiry", memory, actor, expires_at=ends)
    return memory


def memory_set_times(
    *, memory_id: UUID, times: Mapping[str, datetime | None], actor: Actor
) -> Memory:
    """Set when a memory was said, from when and until when it holds.

    Raises MemoryValidationError, MemoryNotFoundError, MemoryStateError.
    """
    with transaction.atomic():
        memory = memory_locked(memory_id)
        before = {name: getattr(memory, name) for name in FACT_TIMES}
        after = {**before, **times}
        after["said_at"] = after["said_at"] or before["said_at"]
        problems = list(time_problems(after))
        if problems:
            raise MemoryValidationError([Problem(*each) for each in problems])
        changed = {name: at for name, at in after.items() if at != before[name]}
        if changed:
            for name, at in changed.items():
                setattr(memory, name, at)
            memory.save(update_fields=[*changed, "updated_at"])
            memory_audit("memory.update", memory, actor, fields=sorted(changed))
    return memory


# Let one memory supersede another.


def memory_supersede(
    *, older: Memory, newer: Memory, actor: Actor, reason: str = RevisionReason.SUPERSEDED
) -> None:
    """Exclude ``older`` from recall and point it to ``newer``.

    Call it in a transaction that holds the lock of their scope.
    """
    revisions_add([older], reason=reason, actor=actor)
    older.status = MemoryStatus.SUPERSEDED
    older.superseded_by = newer
    older.superseded_at = timezone.now()
    older.save(update_fields=["status", "superseded_by", "superseded_at", "updated_at"])
    memory_audit("memory.supersede", older, actor, superseded_by=str(newer.pk), reason=str(reason))


def memory_reinstate(memory: Memory, *, actor: Actor) -> None:
    """Undo ``memory_supersede``: the memory is recalled again.

    Call it in a transaction that holds the lock of the scope, after a check that no other active
    memory states the same.
    """
    memory.status = MemoryStatus.ACTIVE
    memory.superseded_by = None
    memory.superseded_at = None
    memory.save(update_fields=["status", "superseded_by", "superseded_at", "updated_at"])
    memory_audit("memory.reinstate", memory, actor)


# Load memories and lock them against concurrent changes and comparisons.


def memory_get(memory_id: UUID) -> Memory:
    """Return the memory. Raises MemoryNotFoundError."""
    memory = Memory.objects.filter(pk=memory_id).first()
    if memory is None:
        raise MemoryNotFoundError(_("There is no memory %(id)s.") % {"id": memory_id})
    return memory


def memory_locked(memory_id: UUID, *, also: str = "") -> Memory:
    """Return the memory, locked until the transaction ends with its scope and ``also``.

    Raises MemoryNotFoundError, and MemoryStateError if its scope changed meanwhile.
    """
    scope = memory_get(memory_id).scope
    scopes_lock([scope, also or scope])
    memory = Memory.objects.select_for_update(no_key=True).filter(pk=memory_id).first()
    if memory is None:
        raise MemoryNotFoundError(_("There is no memory %(id)s.") % {"id": memory_id})
    if memory.scope != scope:
        raise MemoryStateError(_("Somebody else changed who may see this memory. Try again."))
    return memory


def refuse_duplicate(memory: Memory, *, scope: str, content: str) -> None:
    """Raise DuplicateFactError if another active memory of the scope states this.

    An inactive memory is not checked.
    """
    if memory.status != MemoryStatus.ACTIVE:
        return
    key, likeness = fact_key(content), likeness_of(content)
    if memory.stands_alone:
        key, likeness = memory.fact_key, Likeness("", ())
    known = KnownFacts.load(scopes=[scope], likenesses=[likeness], fact_keys=[key])
    for same in known.all_same(scope, key, likeness):
        if same.pk != memory.pk:
            raise DuplicateFactError(same.pk)


# Change several fields of a memory at once: all of them or none.

TEXTS = ("content", "value", "type", "category", "tags", "metadata")


class Patch(NamedTuple):
    """The changes of one memory, by the names of its fields. What isn't given stays."""

    memory_id: UUID
    changes: Mapping[str, Any]


@memory_span("update_memory")
def memories_patch(
    *,
    patches: Sequence[Patch],
    actor: Actor,
    embedder: Embedder,
    check: Callable[[Memory], None] = lambda _memory: None,
) -> None:
    """Change the given fields of memories, all or none; equal values make no revision.

    They are content, value, type, category, tags, metadata, visibility, pinned, expires_at,
    said_at, valid_from and valid_until.

    ``check`` gets each locked memory before it is changed; its errors are passed on.

    Raises MemoryValidationError, MemoryNotFoundError, MemoryStateError, DuplicateFactError, each
    with its ``place``; EmbedderError, DatabaseError. Nothing is changed then.
    """
    note_records(len(patches))
    stored = Memory.objects.in_bulk([patch.memory_id for patch in patches])
    given: list[dict[str, Any]] = []
    place, scopes, new = 0, [], []
    try:
        for place in range(len(patches)):
            memory_id, changes = patches[place]
            known = stored.get(memory_id) or memory_get(memory_id)
            visibility = changes.get("visibility", known.visibility)
            scopes += [known.scope, scope_of(visibility, known.chat_id)]
            given.append(_checked(known, changes, visibility))
            if given[-1].get("content", known.content) != known.content:
                new.append(given[-1]["content"])
        # Before the transaction: a provider is called.
        vectors = zip(new, embed_covered(embedder, new) if new else [], strict=True)
        texts = {content: NewText(content, each, embedder.model_id) for content, each in vectors}
        with transaction.atomic(), hooks_gathered():
            # All at once, in one order: other batches may have the same memories.
            scopes_lock(scopes)
            for place, patch in enumerate(patches):
                text = texts.get(given[place].get("content", ""))
                _patch(patch, given[place], text, actor=actor, check=check)
    except MemoryOperationError as error:
        error.place = place
        raise


def memory_patch(
    *,
    memory_id: UUID,
    changes: Mapping[str, Any],
    actor: Actor,
    embedder: Embedder,
    check: Callable[[Memory], None] = lambda _memory: None,
) -> Memory:
    """Change one memory, and return it: see ``memories_patch``."""
    patch = Patch(memory_id, changes)
    memories_patch(patches=[patch], actor=actor, embedder=embedder, check=check)
    return memory_get(memory_id)


def _patch(
    patch: Patch,
    texts: Mapping[str, Any],
    text: NewText | None,
    *,
    actor: Actor,
    check: Callable[[Memory], None],
) -> None:
    memory_id, changes = patch.memory_id, patch.changes
    memory = memory_locked(memory_id)
    check(memory)
    if memory.status == MemoryStatus.SUPERSEDED and changes:
        raise MemoryStateError(_("This memory was superseded: change the newer one."))
    texts_set(memory, texts, text=text, actor=actor)
    if "visibility" in changes:
        memory_set_visibility(memory_id=memory_id, visibility=changes["visibility"], actor=actor)
    if "pinned" in changes:
        memory_pin(memory_id=memory_id, pinned=changes["pinned"], actor=actor)
    if "expires_at" in changes:
        memory_expire_at(memory_id=memory_id, at=changes["expires_at"], actor=actor)
    times = {name: changes[name] for name in FACT_TIMES if name in changes}
    if times:
        memory_set_times(memory_id=memory_id, times=times, actor=actor)
