"""Find the memories that new ones duplicate or contradict, and propose decisions to staff."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import mul
from uuid import UUID

from django.db.models.expressions import RawSQL
from django.utils import timezone

from memories_app import vector_search, visibility
from memories_app.facts import facts, renewals
from memories_app.facts.validation import NewMemory
from memories_app.facts.validity import Validity
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
from memoryproject.foundation.integrations.embedders.base import Calibration
from memoryproject.foundation.process.narrowing import present

# A thousand texts have thousands of keys, and the planner often has old figures about the table: by
# these it would read the whole scope, and compare each row with each key. So it sees neither the
# keys nor the scope where it chooses how to find the rows.
_MEMORIES = Memory._meta.db_table
_SAME_KEY = f"""
    SELECT same.memory_id FROM unnest(%s::varchar[]) AS wanted(key), LATERAL (
        SELECT memory_id FROM {_MEMORIES} WHERE fact_key = wanted.key AND scope = ANY(%s::text[])
        AND document_id IS NULL AND status {{status}} OFFSET 0) AS same
"""  # noqa: S608 constants only
_ALIKE = f"""
SELECT unnest(ARRAY(
    WITH alike AS MATERIALIZED (
        SELECT memory_id, scope, status, document_id FROM {_MEMORIES}
        WHERE likeness && ARRAY(SELECT unnest(%s::varchar[]))
    )
    SELECT memory_id FROM alike WHERE document_id IS NULL
        AND scope = ANY(%s::text[]) AND status = ANY(%s::varchar[])
    UNION {_SAME_KEY.format(status="= 'active'")} {{more}}
))
"""  # noqa: S608 constants only
_ACTIVE = _ALIKE.format(more="")
# Few memories are proposed, and they have an index of their own.
_WITH_PROPOSED = _ALIKE.format(more="UNION" + _SAME_KEY.format(status="= 'proposed'"))


@dataclass
class Contradicted:
    """Older memories that say otherwise.

    ``replaced``: those whose place the new one takes. ``ending``: those whose place it takes when
    it begins to hold. ``unsure``: those that may be true beside it.
    """

    replaced: list[Memory] = field(default_factory=list)
    ending: list[Memory] = field(default_factory=list)
    unsure: list[Memory] = field(default_factory=list)


@dataclass(frozen=True)
class Claim:
    """A new statement: what it says, since when, and when it holds."""

    likeness: facts.Likeness
    said_at: datetime
    validity: Validity
    subject: str = ""
    chat_id: UUID | None = None
    speakers: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, new: NewMemory, likeness: facts.Likeness, said_at: datetime, validity: Validity
    ) -> "Claim":
        """Return what a new memory states."""
        speakers = frozenset(facts.subject_keys("", new.speaker))
        return cls(likeness, said_at, validity, new.subject, new.chat_id, speakers)

    def is_anothers(self, older: Memory, likeness: facts.Likeness) -> bool:
        """Return whether an older memory is about another person, who said it of themselves."""
        if not (self.likeness.first_person or likeness.first_person):
            return False
        chats = {self.chat_id, older.chat_id} - {None}
        return len(chats) > 1 or facts.speakers_in(older.likeness) != self.speakers

    def sort_in(
        self, found: Contradicted, older: Memory, verdict: facts.Verdict, now: datetime
    ) -> None:
        """Put an older memory where it belongs.

        What holds for a time takes no place: the older one holds again afterwards. What has an end
        of its own needs no other.
        """
        begins = self.validity.begins
        if verdict is facts.Verdict.BESIDE or self.validity.ends or older.valid_until:
            return
        if verdict is facts.Verdict.UNSURE or older.said_at > self.said_at:
            found.unsure.append(older)
        elif begins and begins > now and not (older.valid_from and older.valid_from >= begins):
            found.ending.append(older)
        else:
            found.replaced.append(older)


def last_before(memory: Memory) -> datetime:
    """Return the last moment before a memory begins to hold."""
    return present(memory.valid_from) - timedelta(seconds=1)


class KnownFacts:
    """Active memories of some scopes, indexed by the facts that they state.

    Load it while the scopes are locked; ``add`` keeps it current during the decisions.
    """

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self._by_key: dict[tuple[str, str], list[Memory]] = defaultdict(list)
        for memory in memories:
            self.add(memory, memory.scope)

    @classmethod
    def load(
        cls,
        *,
        scopes: Iterable[str],
        likenesses: Iterable[facts.Likeness],
        fact_keys: Iterable[str],
        subjects: Iterable[str] = (),
        statuses: Collection[str] = (MemoryStatus.ACTIVE,),
    ) -> "KnownFacts":
        """Load the memories that share a key with any of the texts."""
        keys = {key for likeness in likenesses for key in likeness.keys}
        keys |= {key for subject in subjects for key in facts.subject_keys(subject)}
        likeness_keys = sorted(keys)
        wanted = sorted(set(scopes))
        same_key = [sorted(set(fact_keys)), wanted]
        parameters = [likeness_keys, wanted, [str(each) for each in statuses], *same_key]
        alike = RawSQL(_ACTIVE, parameters)  # noqa: S611 constants only
        if MemoryStatus.PROPOSED in statuses:
            alike = RawSQL(_WITH_PROPOSED, [*parameters, *same_key])  # noqa: S611 constants only
        found = Memory.objects.filter(pk__in=alike)
        return cls(found.order_by("created_at", "memory_id").defer("terms"))

    def add(self, memory: Memory, scope: str) -> None:
        """Add a memory. ``scope`` is given because the database sets it on stored rows only."""
        for key in (memory.fact_key, *memory.likeness):
            self._by_key[scope, key].append(memory)

    def same(
        self, scope: str, fact_key: str, likeness: facts.Likeness, *, proposed: bool = False
    ) -> Memory | None:
        """Return the memory that states this fact. ``proposed``: include proposed ones."""
        found = self.all_same(scope, fact_key, likeness, proposed=proposed)
        return found[0] if found else None

    def all_same(
        self, scope: str, fact_key: str, likeness: facts.Likeness, *, proposed: bool = False
    ) -> list[Memory]:
        """Return all memories that state this fact, those with an equal text first."""
        statuses = {str(MemoryStatus.ACTIVE), *([str(MemoryStatus.PROPOSED)] if proposed else [])}
        return [
            memory
            for key in (fact_key, f"s{likeness.sense}")
            for memory in self._by_key.get((scope, key), ())
            if memory.status in statuses
        ]

    def contradicted(self, scope: str, claim: Claim, now: datetime) -> Contradicted:
        """Return the unexpired memories that say otherwise, by what becomes of them.

        Those about the same subject say otherwise whatever they say.
        """
        about = facts.subject_keys(claim.subject)
        found = {
            memory.pk: memory
            for key in (*claim.likeness.keys, *about)
            for memory in self._by_key[scope, key]
            if memory.status == MemoryStatus.ACTIVE
            and not (memory.expires_at and memory.expires_at <= now)
        }
        result = Contradicted()
        for memory in found.values():
            verdict = facts.Verdict.REPLACES
            if not any(key in memory.likeness for key in about):
                likeness = facts.likeness_of(memory.content)
                verdict = facts.verdict_on(newer=claim.likeness, older=likeness)
                if claim.is_anothers(memory, likeness):
                    continue
            claim.sort_in(result, memory, verdict, now)
        if claim.likeness.renewed and len(result.replaced) > 1:
            # "My appointment was moved": which of the two?
            return Contradicted(unsure=[*result.replaced, *result.unsure])
        return result


# Propose decisions about similar memories to staff.


def alike_key(kind: str, memory_ids: Sequence[UUID]) -> str:
    """Return a key for a proposal about these memories, independent of their order."""
    text = " ".join([kind, *sorted(map(str, memory_ids))])
    return hashlib.sha256(text.encode()).hexdigest()


def replacement_propose(*, newer: Memory, older: Memory) -> None:
    """Propose that ``newer`` supersedes ``older``, which is pinned or may be true beside it."""
    proposal_add(
        kind=ProposalKind.REPLACE, memories=[newer, older], content=newer.content, similarity=1.0
    )


def proposal_add(
    *, kind: str, memories: Sequence[Memory], content: str, similarity: float
) -> MergeProposal | None:
    """Create a proposal about these memories; the memory that stays comes first.

    Return None if there was a proposal about them before, whatever its decision.
    """
    key = alike_key(kind, [memory.pk for memory in memories])
    proposal, made = MergeProposal.objects.get_or_create(
        alike_key=key, defaults={"kind": kind, "content": content, "similarity": similarity}
    )
    if not made:
        return None
    _parts_add(proposal, memories)
    return proposal


def proposal_reopen(memories: Sequence[Memory]) -> MergeProposal:
    """Return the proposal to merge these memories, open and locked, even if it was decided before.

    It is used when staff ask for the proposal themselves. Call it in a transaction.
    """
    kind, content = ProposalKind.MERGE, memories[0].content
    proposal = proposal_add(kind=kind, memories=memories, content=content, similarity=1.0)
    if proposal is not None:
        return proposal
    key = alike_key(kind, [memory.pk for memory in memories])
    known = MergeProposal.objects.select_for_update(no_key=True).get(alike_key=key)
    known.state, known.content = ProposalState.OPEN, content
    known.decided_at, known.decided_by, known.reason = None, "", ""
    known.save()
    known.parts.all().delete()
    _parts_add(known, memories)
    return known


def _parts_add(proposal: MergeProposal, memories: Sequence[Memory]) -> None:
    ProposalMemory.objects.bulk_create(
        ProposalMemory(proposal=proposal, memory=memory, number=number)
        for number, memory in enumerate(memories, start=1)
    )


# Find the memory whose value a newer one renews, by their meaning.


# Of a larger batch only so many are compared: each needs a search.
MAX_COMPARED = 20
# Of each, so many that are near.
MAX_NEAR = 5
MIN_PROBABILITY = 0.8


def renewed_by(
    memory: Memory,
    claim: Claim,
    vector: Sequence[float],
    model_id: str,
    calibration: Calibration | None,
) -> Contradicted:
    """Return the memory in whose place a new one stands that says that its value is new.

    Those of which this is less certain may be true beside it: the nearest one, if it is very near,
    and those whose end it may tell. ``calibration``: None if it doesn't say that its value is new.
    """
    others = Memory.objects.filter(
        visibility.is_current(timezone.now()),
        visibility=memory.visibility,
        chat_id=memory.chat_id,
        status=MemoryStatus.ACTIVE,
        document__isnull=True,
        said_at__lte=memory.said_at,
    ).exclude(fact_key__startswith=ALONE)
    near = vector_search.nearest_keys(scope=others, model=model_id, vector=vector, limit=MAX_NEAR)
    rows = MemoryEmbedding.objects.filter(model=model_id, memory__in=near).select_related("memory")
    by_key = {row.memory_id: row for row in rows}
    found = Contradicted()
    for place, older in enumerate(by_key[key].memory for key in near if key in by_key):
        verdict = facts.Verdict.BESIDE
        if calibration and renewals.renews(memory.content, older.content):
            verdict = facts.Verdict.REPLACES
        elif renewals.may_end(memory.content, older.content):
            verdict = facts.Verdict.UNSURE
        elif calibration and place == 0 and renewals.may_renew(memory.content, older.content):
            cosine = sum(map(mul, vector, by_key[older.pk].vector))
            odds = math.exp(calibration.slope * (cosine - calibration.midpoint))
            verdict = facts.Verdict.UNSURE if odds / (1 + odds) >= MIN_PROBABILITY else verdict
        if claim.is_anothers(older, facts.likeness_of(older.content)):
            continue
        if verdict is facts.Verdict.REPLACES and older.valid_until and claim.validity == Validity():
            # "The meeting is tomorrow" ends by itself, but is wrong once it was moved.
            found.replaced.append(older)
        else:
            claim.sort_in(found, older, verdict, timezone.now())
    renewed = [*found.replaced, *found.ending]
    if len(renewed) > 1:
        # "My appointment was moved": which of the two?
        return Contradicted(unsure=renewed)
    return Contradicted(found.replaced, found.ending) if renewed else found
