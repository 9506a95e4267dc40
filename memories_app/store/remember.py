"""Store memories: deduplicate facts, and let newer facts supersede older ones."""

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memories_app import errors, visibility
from memories_app.facts.facts import fact_key, likeness_of
from memories_app.facts.validation import NewMemory, problems_of
from memories_app.models import Memory, MemorySource
from memories_app.store.deduplicate import DUPLICATE, Prepared, Remembered, Storing
from memories_app.store.duplicate_lookup import Claim, Contradicted, KnownFacts
from memories_app.store.memory_fields import fact_key_of, validity_given
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.integrations.embedders.base import Embedder, embed_awaited
from memoryproject.foundation.process.tracing import memory_span, note_records

logger = logging.getLogger(__name__)

MAX_AT_ONCE = 1_000
ID_TRIES = 3


def memory_remember(
    new: NewMemory,
    *,
    embedder: Embedder,
    actor: Actor = SYSTEM,
    before_storing: Callable[[], None] | None = None,
    new_id: Callable[[], UUID] = uuid.uuid4,
) -> Remembered:
    """Store a memory. For before_storing see ``memories_remember``.

    The same source message always gives the same memory. A known fact is recorded as mentioned
    again instead of stored twice.

    Raises MemoryValidationError, EmbedderError when no vector can be made, DatabaseError when
    nothing can be stored; in all cases nothing is stored.
    """
    (remembered,) = memories_remember(
        memories=[new], embedder=embedder, actor=actor, new_id=new_id, before_storing=before_storing
    )
    return remembered


@memory_span("create_memory")
def memories_remember(
    *,
    memories: Sequence[NewMemory],
    embedder: Embedder,
    actor: Actor = SYSTEM,
    before_storing: Callable[[], None] | None = None,
    new_id: Callable[[], UUID] = uuid.uuid4,
) -> list[Remembered]:
    """Store up to 1,000 memories, all of them or none; return the results in the same order.

    A worker makes the vectors of many: see ``embed_awaited``.

    before_storing: called in the transaction that stores the memories, even if none is new. If
    it raises an error, nothing is stored. Raises MemoryValidationError with every problem of
    every memory, EmbedderError, DatabaseError.
    """
    note_records(len(memories))
    if len(memories) > MAX_AT_ONCE:
        text = _("are %(count)s, at most %(most)s at once")
        detail = text % {"count": len(memories), "most": MAX_AT_ONCE}
        raise errors.MemoryValidationError([errors.Problem("memories", detail)])
    problems = [
        problem for place, new in enumerate(memories) for problem in problems_of(new, place)
    ]
    if problems:
        raise errors.MemoryValidationError(problems, many=len(memories) > 1)
    keys = [fact_key_of(new) for new in memories]
    duplicates = _duplicate_of(memories, keys)
    fresh = [place for place in range(len(memories)) if place not in duplicates]
    # Before the transaction, so that none is open while a provider is called.
    vectors = embed_awaited(embedder, [memories[place].content for place in fresh])
    prepared = [
        Prepared.of(memories[place], keys[place], vector)
        for place, vector in zip(fresh, vectors, strict=True)
    ]
    stored = []
    if prepared or before_storing:
        stored = _store(prepared, embedder, actor, new_id, before_storing)
    answers = dict(zip(fresh, stored, strict=True))
    return [
        answers.get(place) or Remembered(duplicates[place], DUPLICATE)
        for place in range(len(memories))
    ]


def _store(
    prepared: Sequence[Prepared],
    embedder: Embedder,
    actor: Actor,
    new_id: Callable[[], UUID],
    before_storing: Callable[[], None] | None,
) -> list[Remembered]:
    """Store the memories; retry with new ids if one is taken by chance (ERR-MEMORY-005)."""
    for attempt in range(1, ID_TRIES + 1):
        try:
            with transaction.atomic():
                if before_storing is not None:
                    before_storing()
                stored = Storing(embedder, actor, new_id).store(prepared)
        except IntegrityError as error:
            if "memories_app_memory_pkey" not in str(error):
                raise
            if attempt == ID_TRIES:
                logger.critical("No free id was found for a memory in %d tries.", ID_TRIES)
                raise
            continue
        for one in stored:
            memory = one.memory
            logger.info(
                "Memory %s: %s (%s).", memory.memory_id, one.status, memory.content_hash[:12]
            )
        return stored
    raise AssertionError("not reached")


def _duplicate_of(memories: Sequence[NewMemory], keys: Sequence[str]) -> dict[int, Memory]:
    """Return by place the memory that this message created before. A command creates only one."""
    ids = {new.source_message_id for new in memories if new.source_message_id is not None}
    if not ids:
        return {}
    found: dict[tuple[str, UUID | None, str], Memory] = {}
    tellings = MemorySource.objects.filter(source_message_id__in=ids).select_related("memory")
    for telling in tellings:
        memory = telling.memory
        command = telling.source == "command"
        key = "" if command else memory.fact_key
        found[telling.source, telling.source_message_id, key] = memory
    duplicates = {}
    for place, (new, key) in enumerate(zip(memories, keys, strict=True)):
        wanted = (new.source, new.source_message_id, "" if new.source == "command" else key)
        if wanted in found:
            duplicates[place] = found[wanted]
    return duplicates


# Say what storing memories would do, without storing them.


@dataclass(frozen=True)
class Foreseen:
    """The outcome that storing a memory would have.

    ``same``: the memory that states it already and counts. ``replaced``: those whose place it
    would take. ``pinned``: those that say otherwise, and about which staff would be asked.
    """

    same: Memory | None = None
    replaced: tuple[Memory, ...] = ()
    pinned: tuple[Memory, ...] = ()


def memories_foresee(memories: Sequence[NewMemory], *, now: datetime) -> list[Foreseen]:
    """Return for each memory what storing it would do, in a constant number of queries.

    Each is looked at on its own: what one of them says about another isn't seen.
    """
    scopes = [visibility.scope_of(new.visibility, new.chat_id) for new in memories]
    likenesses = [likeness_of(new.content) for new in memories]
    keys = [fact_key(new.content) for new in memories]
    known = KnownFacts.load(
        scopes=scopes,
        likenesses=likenesses,
        fact_keys=keys,
        subjects=[new.subject for new in memories],
    )
    foreseen = []
    for new, scope, likeness, key in zip(memories, scopes, likenesses, keys, strict=True):
        same = known.same(scope, key, likeness)
        # Storing what has ended puts it in force again.
        if same is not None and not (same.expires_at and same.expires_at <= now):
            foreseen.append(Foreseen(same=same))
            continue
        said_at = new.said_at or now
        claim = Claim.of(new, likeness, said_at, validity_given(new, said_at))
        found = Contradicted() if same else known.contradicted(scope, claim, now)
        older = [*found.replaced, *found.ending]
        foreseen.append(
            Foreseen(
                replaced=tuple(each for each in older if not each.pinned),
                pinned=tuple(each for each in older if each.pinned),
            )
        )
    return foreseen
