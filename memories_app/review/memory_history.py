"""A memory's past and neighbours: revisions, sources, similar ones, contradictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from pgvector.django import CosineDistance

from memories_app.facts.text_diff import Piece, shape_of, word_diff
from memories_app.models import (
    EmbeddingModel,
    EmbeddingState,
    Memory,
    MemoryEmbedding,
    MemoryRevision,
    MemoryStatus,
    MergeProposal,
    ProposalKind,
    ProposalState,
)
from memories_app.review import decide_proposals, filters
from memories_app.store.duplicate_lookup import alike_key
from memories_app.vector_search import nearest_keys
from memories_app.visibility import is_current
from memoryproject.foundation.admin_kit.display import shown_link
from memoryproject.foundation.audit.audit_events import ACTOR_KINDS, action_shown, people_shown
from memoryproject.foundation.audit.models import AuditEvent

MAX_COUNT = 50
MAX_OLDER = 20
MAX_EVENTS = 10

# Links to messages in their chats, by message id.
Places = Mapping[UUID, str]


def memory_address(memory_id: UUID) -> str:
    return reverse("admin:memories_app_memory_change", args=[memory_id])


def memory_link(memory: Memory | None) -> str:
    """Return a link with the beginning of the memory and its status; "–" without a memory."""
    if memory is None:
        return "–"
    status = filters.STATUSES.get(memory.status, memory.status)
    return shown_link(memory_address(memory.pk), f"{memory.content[:60]} ({status})")


@dataclass(frozen=True)
class Change:
    """A revision as a difference. ``labels`` are (name, before, after)."""

    number: int
    pieces: Sequence[Piece]
    labels: Sequence[tuple[str, str, str]]
    reason: str
    who: str
    at: datetime


def changes_of(memory: Memory) -> list[Change]:
    """Return the changes, newest first, each from one content to the next."""
    revisions = list(memory.revisions.order_by("-number")[:MAX_COUNT])
    after: Memory | MemoryRevision = memory
    changes = []
    for revision in revisions:
        differs = revision.content != after.content
        changes.append(
            Change(
                number=revision.number,
                pieces=word_diff(revision.content, after.content) if differs else (),
                labels=_labels(revision, after),
                reason=filters.revision_label(revision.reason),
                who=revision.changed_by_name or revision.changed_by_kind,
                at=revision.changed_at,
            )
        )
        after = revision
    return changes


def _labels(before: MemoryRevision, after: Memory | MemoryRevision) -> list[tuple[str, str, str]]:
    def visible(value: str) -> str:
        return str(filters.VISIBILITIES.get(value, value))

    changes = [
        (_("visible to"), visible(before.visibility), visible(after.visibility)),
        (_("type"), filters.type_label(before.type), filters.type_label(after.type)),
        (_("category"), before.category, after.category),
        (_("tags"), ", ".join(before.tags), ", ".join(after.tags)),
    ]
    return [(name, was or "–", now or "–") for name, was, now in changes if was != now]


def sources_of(memory: Memory, places: Places) -> list[dict[str, Any]]:
    """Return the sources of a memory, newest first, each with a link to its message."""
    return [
        {
            "at": telling.told_at,
            "source": filters.source_label(telling.source),
            "message_id": telling.source_message_id,
            "address": places.get(telling.source_message_id) if telling.source_message_id else None,
        }
        for telling in memory.tellings.order_by("-told_at", "-id")[:MAX_COUNT]
    ]


def mentioning_messages(memory: Memory) -> set[UUID]:
    """Return the ids of the messages that mentioned the memory."""
    ids = memory.tellings.exclude(source_message_id=None).order_by("-told_at", "-id")
    found = set(ids.values_list("source_message_id", flat=True)[:MAX_COUNT])
    return found | ({memory.source_message_id} if memory.source_message_id else set())


def similar_rows(memory: Memory) -> list[dict[str, Any]]:
    """Return the similar memories, each with the stamp that a decision about both must match."""
    return [
        {
            **vars(near),
            "address": memory_address(near.memory.pk),
            "shared": round(near.shared * 100),
            "seen": decide_proposals.contents_stamp([memory, near.memory]),
            "pieces": word_diff(near.memory.content, memory.content),
        }
        for near in similar_memories_find(memory)
    ]


def contradictions_of(memory: Memory) -> dict[str, Any]:
    """Return the memories that superseded it and those that it superseded.

    Staff may have kept an older one instead of a newer one: each is said to be what it is.
    """
    older = memory.supersedes.order_by("-superseded_at", "memory_id").defer("terms", "likeness")
    newer = memory.superseded_by
    return {
        "newer": newer,
        "newer_address": None if newer is None else memory_address(newer.pk),
        "newer_holds": newer is not None and newer.status == MemoryStatus.ACTIVE,
        "is_kept": newer is not None and _said(newer) < _said(memory),
        "older": [
            (one, memory_address(one.pk), _said(one) > _said(memory)) for one in older[:MAX_OLDER]
        ],
    }


def _said(memory: Memory) -> tuple[datetime, datetime]:
    return memory.said_at, memory.created_at


def open_proposals(memory: Memory) -> list[str]:
    """Return the links to the memory's open proposals."""
    parts = memory.proposals.filter(proposal__state=ProposalState.OPEN).order_by("proposal_id")
    return [
        reverse("admin:memories_app_mergeproposal_change", args=[key])
        for key in parts.values_list("proposal_id", flat=True)
    ]


def events_of(memory: Memory, *, with_names: bool) -> list[dict[str, Any]]:
    """Return the newest events of the audit log about the memory, in words.

    ``with_names``: of people in place of their pseudonyms, as in the log itself.
    """
    newest = AuditEvent.objects.filter(object_id=str(memory.pk)).order_by("-id")[:MAX_EVENTS]
    people = people_shown(event.actor for event in newest) if with_names else {}
    names = {pseudonym: person.name for pseudonym, person in people.items()}
    return [
        {
            "what": action_shown(event.action),
            "who": names.get(event.actor, event.actor)
            or ACTOR_KINDS.get(event.actor_kind, event.actor_kind),
            "at": event.at,
            "address": reverse("admin:audit_auditevent_change", args=[event.pk]),
        }
        for event in newest
    ]


# Similar memories.


# The number of candidates by vector, and by words.
LOOKED_AT = 20
MAX_SIMILAR = 5
# A shown memory reaches one of these thresholds.
SIMILAR_COSINE = 0.6
SIMILAR_SHARE = 0.4


@dataclass(frozen=True)
class SimilarMemory:
    """A similar memory. ``similarity`` is the cosine, None if one of both has no vector.

    ``shared``: the share of common content words. ``kept_apart``: staff decided that it is
    another fact.
    """

    memory: Memory
    similarity: float | None
    shared: float
    kept_apart: bool = False


def similar_memories_find(memory: Memory) -> list[SimilarMemory]:
    """Return active memories, the most similar first; none for an inactive memory.

    The number of queries is constant.
    """
    if memory.status != MemoryStatus.ACTIVE:
        return []
    others = Memory.objects.filter(
        is_current(timezone.now()), scope=memory.scope, status=MemoryStatus.ACTIVE
    ).exclude(pk=memory.pk)
    model = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    rows = MemoryEmbedding.objects.filter(model=model.model_id if model else "")
    own = rows.filter(memory=memory).values_list("vector", flat=True).first()
    keys: list[UUID] = list(
        others.filter(likeness__overlap=memory.likeness).values_list("pk", flat=True)[:LOOKED_AT]
    )
    distances: dict[UUID, float] = {}
    if own is not None and model is not None:
        vector = list(own)
        keys += nearest_keys(scope=others, model=model.model_id, vector=vector, limit=LOOKED_AT)
        near = rows.filter(memory__in=keys)
        distances = dict(near.values_list("memory_id", CosineDistance("vector", vector)))
    return _ranked(memory, others, keys, distances)[:MAX_SIMILAR]


def _ranked(
    memory: Memory, others: QuerySet[Memory], keys: Sequence[UUID], distances: dict[UUID, float]
) -> list[SimilarMemory]:
    shape = shape_of(memory.content)
    found = list(others.filter(pk__in=keys).defer("terms", "likeness"))
    apart = _kept_apart(memory, found)
    near = [
        SimilarMemory(
            other,
            1 - distances[other.pk] if other.pk in distances else None,
            shape.shared(shape_of(other.content)),
            other.pk in apart,
        )
        for other in found
    ]
    shown = [
        one
        for one in near
        if (one.similarity or 0) >= SIMILAR_COSINE or one.shared >= SIMILAR_SHARE
    ]
    return sorted(shown, key=lambda one: (-(one.shared + (one.similarity or 0)), one.memory.pk))


def _kept_apart(memory: Memory, others: Sequence[Memory]) -> set[UUID]:
    by_key = {alike_key(ProposalKind.MERGE, [memory.pk, other.pk]): other.pk for other in others}
    dismissed = MergeProposal.objects.filter(
        alike_key__in=list(by_key), state=ProposalState.DISMISSED
    )
    return {by_key[key] for key in dismissed.values_list("alike_key", flat=True)}
