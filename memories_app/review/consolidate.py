"""Find memories that state much the same, and propose to merge them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import mul
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memories_app.facts.text_diff import Shape, shape_of
from memories_app.models import (
    ALONE,
    Memory,
    MemoryEmbedding,
    MemoryStatus,
    MergeProposal,
    ProposalKind,
    ProposalMemory,
    ProposalState,
)
from memories_app.store import duplicate_lookup, memory_fields
from memories_app.visibility import is_current

# The minimum share of common words for a proposal.
MIN_SHARED = 0.6
# If the embedder covers both texts, their cosine must reach this minimum, too.
MIN_COSINE = 0.8
# A word that occurs in this many memories of a scope doesn't distinguish them.
MAX_WITH_WORD = 200
# At most so many of the newest memories of a scope are compared with each other.
MAX_IN_SCOPE = 20_000
MAX_TOGETHER = 10


@dataclass(frozen=True)
class Compared:
    """A memory with only the fields that a comparison needs."""

    memory_id: UUID
    shape: Shape


def memories_propose_merges(
    *, model_id: str, progress: Callable[[int, int], object] = lambda done, total: None
) -> int:
    """Propose to merge similar memories, scope by scope; return the number of new proposals.

    Nothing is merged. Pinned memories and those with an open proposal are skipped, and
    dismissed proposals are not made again.
    """
    current = Memory.objects.filter(
        is_current(timezone.now()), status=MemoryStatus.ACTIVE, pinned=False
    ).exclude(fact_key__startswith=ALONE)
    scopes = list(current.order_by("scope").values_list("scope", flat=True).distinct())
    made = 0
    for done, scope in enumerate(scopes, start=1):
        in_proposals = ProposalMemory.objects.filter(proposal__state=ProposalState.OPEN)
        newest = current.filter(scope=scope).exclude(pk__in=in_proposals.values("memory"))
        rows = newest.order_by("-created_at").values_list("pk", "content")[:MAX_IN_SCOPE]
        compared = [Compared(pk, shape_of(content)) for pk, content in rows.iterator()]
        for alike in _groups(_similar_pairs(compared, model_id)):
            made += _propose(alike) is not None
        progress(done, len(scopes))
    return made


def _similar_pairs(
    compared: Sequence[Compared], model_id: str
) -> Iterator[tuple[UUID, UUID, float]]:
    """Yield pairs of similar memories, with their similarity."""
    by_word: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(compared):
        for word in one.shape.words:
            by_word[word].append(place)
    candidates: set[tuple[int, int]] = set()
    for places in by_word.values():
        if len(places) <= MAX_WITH_WORD:
            candidates.update(combinations(places, 2))
    shared = [
        (first, second, share)
        for first, second in candidates
        if (share := compared[first].shape.shared(compared[second].shape)) >= MIN_SHARED
    ]
    for start in range(0, len(shared), 500):
        part = [
            (compared[first].memory_id, compared[second].memory_id, share)
            for first, second, share in shared[start : start + 500]
        ]
        yield from _confirmed_by_vectors(part, model_id)


def _confirmed_by_vectors(
    pairs: Sequence[tuple[UUID, UUID, float]], model_id: str
) -> Iterator[tuple[UUID, UUID, float]]:
    ids = {memory_id for one, other, _ in pairs for memory_id in (one, other)}
    rows = MemoryEmbedding.objects.filter(model=model_id, memory__in=ids)
    vectors = dict(rows.values_list("memory", "vector"))
    for one, other, share in pairs:
        if one in vectors and other in vectors:
            cosine = sum(map(mul, vectors[one], vectors[other]))
            if cosine < MIN_COSINE:
                continue
        yield one, other, share


def _groups(pairs: Iterator[tuple[UUID, UUID, float]]) -> Iterator[tuple[list[UUID], float]]:
    """Return groups whose members are all similar, each with its lowest share of common words.

    A memory is in at most one group.
    """
    group_of: dict[UUID, int] = {}
    groups: dict[int, tuple[list[UUID], float]] = {}
    for one, other, share in sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])):
        group_of_one, group_of_other = group_of.get(one), group_of.get(other)
        if group_of_one is not None and group_of_other is not None:
            continue
        group = group_of_other if group_of_one is None else group_of_one
        if group is None:
            group = len(groups)
            groups[group] = ([], share)
            added = [one, other]
        else:
            added = [other if one in group_of else one]
        members, least = groups[group]
        if len(members) + len(added) > MAX_TOGETHER:
            continue
        members.extend(added)
        group_of.update(dict.fromkeys(added, group))
        groups[group] = (members, min(least, share))
    yield from groups.values()


def _propose(alike: tuple[list[UUID], float]) -> MergeProposal | None:
    """Propose to keep the memory with the most content."""
    ids, share = alike
    with transaction.atomic():
        memory_fields.scopes_lock(Memory.objects.filter(pk__in=ids).values_list("scope", flat=True))
        found = Memory.objects.filter(pk__in=ids, status=MemoryStatus.ACTIVE)
        memories = sorted(
            found, key=lambda memory: (-len(memory.content), -memory.told_count, memory.pk)
        )
        if len(memories) < 2:
            return None
        return duplicate_lookup.proposal_add(
            kind=ProposalKind.MERGE,
            memories=memories,
            content=memories[0].content,
            similarity=round(share, 4),
        )
