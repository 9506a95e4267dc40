"""Change memories. The earlier content stays as a revision."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
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
from memories_app.facts import facts, validation
from memories_app.models import Memory, MemoryStatus, RevisionReason
from memories_app.store import duplicate_lookup, memory_fields
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
    def made(cls, content: str, embedder: Embedder) -> "NewText":
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
    memory_fields.revisions_add([memory], reason=RevisionReason.UPDATED, actor=actor)
    if "content" in changed:
        if text is None:
            raise MemoryStateError(_("Somebody else changed this memory. Look, and try again."))
        refuse_duplicate(memory, scope=memory.scope, content=text.content)
        memory_fields.content_set(memory, **vars(text))
    for name in set(changed) - {"content"}:
        setattr(memory, name, given[name])
    if "tags" in changed:
        memory_fields.terms_set(memory)
    memory.save()
    memory_fields.memory_audit("memory.update", memory, actor, fields=sorted(changed))


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
    is_apart = known.key is not None and "value" not in given
    if is_apart and given.get("content", known.content) != known.content:
        # It would say something else than its value.
        detail = _("is made of the value of a keyed memory: store that value instead")
        raise MemoryValidationError([Problem("content", detail)])
    fields = {"content": known.content, "value": known.value, **given}
    fields |= {"tags": tuple(given.get("tags", ())), "namespace": known.namespace, "key": known.key}
    kind = fields.setdefault("type", known.type)
    new = validation.NewMemory(**fields, visibility=visibility, chat_id=known.chat_id)
    problems = [problem for problem in validation.problems_of(new) if problem.field in changes]
    if problems:
        raise MemoryValidationError(problems)
    if "metadata" in given:
        given["metadata"] = validation.storable_metadata(given["metadata"])
    if kind == validation.PROMISE and given.keys() & {"type", "metadata"}:
        # A state alone may be given, and other metadata leaves the promise as it is.
        stored, metadata = validation.promise_completed(known.metadata), given.get("metadata")
        changed = stored if metadata is None else metadata
        promise = {**stored[validation.PROMISE], **changed.get(validation.PROMISE, {})}
        given["metadata"] = {**changed, validation.PROMISE: promise}
    return given


def memory_set_visibility(*, memory_id: UUID, visibility: str, actor: Actor) -> Memory:
    """Change the visibility of a memory.

    Raises MemoryValidationError, MemoryNotFoundError, MemoryStateError, DuplicateFactError.
    """
    known = memory_get(memory_id)
    _refuse(validation.visibility_problems(visibility, known.chat_id))
    with transaction.atomic():
        memory = memory_locked(memory_id, also=scope_of(visibility, known.chat_id))
        _visibility_set(memory, visibility, actor)
    return memory


def _visibility_set(memory: Memory, visibility: str, actor: Actor) -> None:
    before = memory.visibility
    if before == visibility:
        return
    target = scope_of(visibility, memory.chat_id)
    refuse_duplicate(memory, scope=target, content=memory.content)
    memory_fields.revisions_add([memory], reason=RevisionReason.UPDATED, actor=actor)
    memory.visibility = visibility
    memory.save()
    memory.refresh_from_db(fields=["scope"])
    memory_fields.memory_audit("memory.visibility", memory, actor, before=before, after=visibility)


def memory_pin(*, memory_id: UUID, actor: Actor, pinned: bool = True) -> None:
    """Pin or unpin a memory. Raises MemoryNotFoundError, MemoryStateError."""
    with transaction.atomic():
        _pinned_set(memory_locked(memory_id), pinned, actor)


def _pinned_set(memory: Memory, pinned: bool, actor: Actor) -> None:
    if _plainly_set(memory, {"pinned": pinned}):
        memory_fields.memory_audit("memory.pin" if pinned else "memory.unpin", memory, actor)


def times_set(memory: Memory, times: Mapping[str, datetime | None], actor: Actor) -> None:
    """Set when a locked memory was said, from when and until when it holds, and when it expires.

    Raises MemoryValidationError.
    """
    given = {name: at for name, at in times.items() if at is not None or name != "said_at"}
    known = {name: getattr(memory, name) for name in validation.FACT_TIMES}
    _refuse(validation.time_problems({**known, **given}))
    if "expires_at" in given and _plainly_set(memory, {"expires_at": given.pop("expires_at")}):
        ends = memory.expires_at
        memory_fields.memory_audit(
            "memory.expiry", memory, actor, expires_at=ends.isoformat() if ends else None
        )
    changed = _plainly_set(memory, given)
    if changed:
        memory_fields.memory_audit("memory.update", memory, actor, fields=sorted(changed))


def _plainly_set(memory: Memory, values: Mapping[str, Any]) -> list[str]:
    """Set fields that make no revision; return the names of those that changed."""
    changed = [name for name, value in values.items() if getattr(memory, name) != value]
    for name in changed:
        setattr(memory, name, values[name])
    if changed:
        memory.save(update_fields=[*changed, "updated_at"])
    return changed


def _refuse(problems: Iterable[tuple[str, str]]) -> None:
    """Raise MemoryValidationError if there are any."""
    found = [Problem(*each) for each in problems]
    if found:
        raise MemoryValidationError(found)


# Let one memory supersede another.


def memory_supersede(
    *, older: Memory, newer: Memory, actor: Actor, reason: str = RevisionReason.SUPERSEDED
) -> None:
    """Exclude ``older`` from recall and point it to ``newer``.

    Call it in a transaction that holds the lock of their scope.
    """
    memory_fields.revisions_add([older], reason=reason, actor=actor)
    older.status = MemoryStatus.SUPERSEDED
    older.superseded_by = newer
    older.superseded_at = timezone.now()
    older.save(update_fields=["status", "superseded_by", "superseded_at", "updated_at"])
    memory_fields.memory_audit(
        "memory.supersede", older, actor, superseded_by=str(newer.pk), reason=str(reason)
    )


def memory_reinstate(memory: Memory, *, actor: Actor) -> None:
    """Undo ``memory_supersede``: the memory is recalled again.

    Call it in a transaction that holds the lock of the scope, after a check that no other active
    memory states the same.
    """
    memory.status = MemoryStatus.ACTIVE
    memory.superseded_by = None
    memory.superseded_at = None
    memory.save(update_fields=["status", "superseded_by", "superseded_at", "updated_at"])
    memory_fields.memory_audit("memory.reinstate", memory, actor)


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
    known = memory_get(memory_id)
    memory_fields.scopes_lock([known.scope, also or known.scope])
    memory = Memory.objects.select_for_update(no_key=True).filter(pk=memory_id).first()
    return _unmoved(known, memory)


def _unmoved(known: Memory, memory: Memory | None) -> Memory:
    """Return the locked memory, of which ``known`` was read before."""
    if memory is None:
        raise MemoryNotFoundError(_("There is no memory %(id)s.") % {"id": known.pk})
    if memory.scope != known.scope:
        raise MemoryStateError(_("Somebody else changed who may see this memory. Try again."))
    return memory


def refuse_duplicate(memory: Memory, *, scope: str, content: str) -> None:
    """Raise DuplicateFactError if another active memory of the scope states this.

    An inactive memory is not checked.
    """
    if memory.status != MemoryStatus.ACTIVE:
        return
    key, likeness = facts.fact_key(content), facts.likeness_of(content)
    if memory.stands_alone:
        key, likeness = memory.fact_key, facts.Likeness("", ())
    known = duplicate_lookup.KnownFacts.load(scopes=[scope], likenesses=[likeness], fact_keys=[key])
    for same in known.all_same(scope, key, likeness):
        if same.pk != memory.pk:
            raise DuplicateFactError(same.pk)


# Change several fields of a memory at once: all of them or none.

TEXTS = ("content", "value", "type", "category", "tags", "metadata")


Check = Callable[[Memory], None]


@memory_span("update_memory")
def memories_patch(
    *,
    patches: Mapping[UUID, Mapping[str, Any]],
    actor: Actor,
    embedder: Embedder,
    check: Check = lambda _memory: None,
) -> None:
    """Change the given fields of memories, all or none; equal values make no revision.

    They are content, value, type, category, tags, metadata, visibility, pinned, expires_at,
    said_at, valid_from and valid_until.

    ``check`` gets each locked memory before it is changed; its errors are passed on.

    Raises MemoryValidationError, MemoryNotFoundError, MemoryStateError, DuplicateFactError, each
    with its ``place``; EmbedderError, DatabaseError. Nothing is changed then.
    """
    note_records(len(patches))
    known = Memory.objects.in_bulk(patches)
    given: dict[UUID, dict[str, Any]] = {}
    scopes, new = [], []
    try:
        for memory_id, changes in patches.items():
            if memory_id not in known:
                known[memory_id] = memory_get(memory_id)
            memory = known[memory_id]
            visibility = changes.get("visibility", memory.visibility)
            scopes += [memory.scope, scope_of(visibility, memory.chat_id)]
            given[memory_id] = _checked(memory, changes, visibility)
            content = given[memory_id].get("content", memory.content)
            if content != memory.content:
                new.append(content)
        # Before the transaction: a provider is called.
        vectors = zip(new, embed_covered(embedder, new) if new else [], strict=True)
        texts = {content: NewText(content, each, embedder.model_id) for content, each in vectors}
        with transaction.atomic(), hooks_gathered():
            # All at once, in one order: other batches may have the same memories.
            memory_fields.scopes_lock(scopes)
            rows = Memory.objects.select_for_update(no_key=True).order_by("pk").in_bulk(patches)
            for memory_id, changes in patches.items():
                memory = _unmoved(known[memory_id], rows.get(memory_id))
                check(memory)
                if memory.status == MemoryStatus.SUPERSEDED and changes:
                    raise MemoryStateError(_("This memory was superseded: change the newer one."))
                text = texts.get(given[memory_id].get("content", ""))
                texts_set(memory, given[memory_id], text=text, actor=actor)
                _others_set(memory, changes, actor)
    except MemoryOperationError as error:
        error.place = list(patches).index(memory_id)
        raise


def memory_patch(
    *,
    memory_id: UUID,
    changes: Mapping[str, Any],
    actor: Actor,
    embedder: Embedder,
    check: Check = lambda _memory: None,
) -> Memory:
    """Change one memory, and return it: see ``memories_patch``."""
    memories_patch(patches={memory_id: changes}, actor=actor, embedder=embedder, check=check)
    return memory_get(memory_id)


def _others_set(memory: Memory, changes: Mapping[str, Any], actor: Actor) -> None:
    """Set the fields of a locked memory that are no texts, with the scopes of both locked."""
    if "visibility" in changes:
        _visibility_set(memory, changes["visibility"], actor)
    if "pinned" in changes:
        _pinned_set(memory, changes["pinned"], actor)
    names = [name for name in ("expires_at", *validation.FACT_TIMES) if name in changes]
    times_set(memory, {name: changes[name] for name in names}, actor)
