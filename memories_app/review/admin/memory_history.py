"""The history of a memory: revisions as differences, sources, similar memories, contradictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from memories_app.facts.text_diff import Piece, word_diff
from memories_app.models import Memory, MemoryRevision, MemoryStatus, ProposalState
from memories_app.review.admin.state_labels import (
    REVISION_REASONS,
    STATUSES,
    VISIBILITIES,
    source_label,
    type_label,
)
from memories_app.review.decide_proposals import contents_stamp
from memories_app.review.similar_memories import similar_memories_find
from memoryproject.foundation.admin_kit.display import shown_link
from memoryproject.foundation.audit.filters import ACTOR_KINDS
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.words import action_shown

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
    status = STATUSES.get(memory.status, memory.status)
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
                reason=str(REVISION_REASONS.get(revision.reason, revision.reason)),
                who=revision.changed_by_name or revision.changed_by_kind,
                at=revision.changed_at,
            )
        )
        after = revision
    return changes


def _labels(before: MemoryRevision, after: Memory | MemoryRevision) -> list[tuple[str, str, str]]:
    def visible(value: str) -> str:
        return str(VISIBILITIES.get(value, value))

    changes = [
        (_("visible to"), visible(before.visibility), visible(after.visibility)),
        (_("type"), type_label(before.type), type_label(after.type)),
        (_("category"), before.category, after.category),
        (_("tags"), ", ".join(before.tags), ", ".join(after.tags)),
    ]
    return [(name, was or "–", now or "–") for name, was, now in changes if was != now]


def sources_of(memory: Memory, places: Places) -> list[dict[str, Any]]:
    """Return the sources of a memory, newest first, each with a link to its message."""
    return [
        {
            "at": telling.told_at,
            "source": source_label(telling.source),
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
            "memory": near.memory,
            "address": memory_address(near.memory.pk),
            "similarity": near.similarity,
            "shared": round(near.shared * 100),
            "kept_apart": near.kept_apart,
            "seen": contents_stamp([memory, near.memory]),
            "pieces": word_diff(near.memory.content, memory.content),
        }
        for near in similar_memories_find(memory)
    ]


def contradictions_of(memory: Memory) -> dict[str, Any]:
    """Return the memories that superseded it and those that it superseded."""
    older = memory.supersedes.order_by("-superseded_at", "memory_id").defer("terms", "likeness")
    newer = memory.superseded_by
    return {
        "newer": newer,
        "newer_address": None if newer is None else memory_address(newer.pk),
        "newer_holds": newer is not None and newer.status == MemoryStatus.ACTIVE,
        "older": [(one, memory_address(one.pk)) for one in older[:MAX_OLDER]],
    }


def open_proposals(memory: Memory) -> list[str]:
    """Return the links to the memory's open proposals."""
    parts = memory.proposals.filter(proposal__state=ProposalState.OPEN).order_by("proposal_id")
    return [
        reverse("admin:memories_app_mergeproposal_change", args=[key])
        for key in parts.values_list("proposal_id", flat=True)
    ]


@dataclass(frozen=True)
class ShownEvent:
    """An event of the audit log about a memory, in words."""

    what: str
    who: str
    at: datetime
    address: str


def events_of(memory: Memory) -> list[ShownEvent]:
    """Return the newest events of the audit log about the memory."""
    newest = AuditEvent.objects.filter(object_id=str(memory.pk)).order_by("-id")[:MAX_EVENTS]
    return [
        ShownEvent(
            what=action_shown(event.action),
            who=event.actor or str(ACTOR_KINDS.get(event.actor_kind, event.actor_kind)),
            at=event.at,
            address=reverse("admin:audit_auditevent_change", args=[event.pk]),
        )
        for event in newest
    ]
