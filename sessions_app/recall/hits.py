"""Who recalls, what is returned, and which of two facts that disagree stands first."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from memories_app.facts.validation import OPEN, PROMISE
from memoryproject.foundation.retrieval.subqueries import asks_for_all, only_asks
from memoryproject.foundation.text import characters, phone_numbers
from sessions_app.models.chats import GODFATHER
from sessions_app.models.messages import Role

MAX_NEIGHBOUR_LENGTH = 200

MEMORIES = "memories"
MESSAGES = "messages"


@dataclass(frozen=True)
class Viewer:
    """The viewer of a recall.

    ``chat_id`` None and role "staff": all memories, no messages.
    """

    user_role: str
    chat_id: UUID | None = None

    def rights(self) -> dict[str, Any]:
        """Return the arguments of ``memories_visible``."""
        return {
            "is_owner": self.user_role == GODFATHER,
            "is_staff": self.user_role == "staff",
            "chat_id": self.chat_id,
        }


@dataclass(frozen=True)
class Hit:
    """A recalled text.

    ``similarity`` is the cosine, a memory's with the question as it is embedded for facts; None if
    the embedder doesn't cover the text. ``score`` is the fused relevance in [0, 1]. The metadata
    of a memory that the owner recalls names the client whose it is, as CLIENT_NAME. A message's
    metadata holds its position and, shortened, the messages "before" and "after" it.
    """

    source: str
    id: UUID
    content: str
    score: float
    similarity: float | None
    created_at: datetime
    metadata: dict[str, Any] = field(default_factory=dict)


def hit_record(hit: Hit) -> dict[str, Any]:
    """Return the hit for the replay record."""
    return {
        "source": hit.source,
        "id": str(hit.id),
        "content": hit.content,
        "score": round(hit.score, 4),
        "similarity": None if hit.similarity is None else round(hit.similarity, 4),
        "created_at": hit.created_at.isoformat(),
        **hit.metadata,
    }


# The ways to search messages.
WORDS, MEANING, BOTH = WAYS = ("words", "meaning", "both")


@dataclass(frozen=True)
class MessageHit:
    """A message that was found. ``similarity``: the raw cosine; None without a vector."""

    id: UUID
    score: float
    similarity: float | None


@dataclass(frozen=True)
class RecallResult:
    """The hits, best first. ``degraded``: a part of memory could not be searched."""

    hits: list[Hit]
    degraded: bool = False


@dataclass(frozen=True)
class LeftOut:
    """The messages of a chat that were said before a prompt's, and that the prompt doesn't hold.

    They are those of sessions older than ``session_id`` (``later`` are the others), and those of
    this session up to the place ``until``; but not ``first_id``.
    """

    session_id: UUID
    until: int
    first_id: UUID
    later: QuerySet[Any]


# Facts in time: which recalled memories hold, and which of two that disagree stands first.

# In the metadata of a memory: times as ISO texts, and the ids of newer ones that may replace it.
SAID_AT, VALID_FROM, VALID_UNTIL, SAID_BY = "said_at", "valid_from", "valid_until", "said_by"
NEWER = "newer"
# In the metadata of a text below the threshold that is only the nearest to the question.
NEAREST = "nearest"
# What tells less is put so far behind what answers.
BEHIND = 1e-4
# Below it a text has nothing to do with the question.
NEAREST_SIMILARITY = 0.05
# A question for all of something ("which cities has Dana been to?") gets so many times as many.
FOR_ALL = 3


def number_for(query: str, usual: int) -> int:
    """Return how many texts are recalled for a prompt: more for a question for several things."""
    return usual * FOR_ALL if asks_for_all(query) else usual


@dataclass(frozen=True)
class FactTimes:
    """When a fact was said, and when it holds."""

    said_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None

    @classmethod
    def of(cls, metadata: dict[str, Any]) -> "FactTimes":
        """Return the times in the metadata of a hit, or of a replay's entry."""
        given = (metadata.get(name) for name in (SAID_AT, VALID_FROM, VALID_UNTIL))
        return cls(*(datetime.fromisoformat(text) if text else None for text in given))

    def as_metadata(self) -> dict[str, str]:
        times = {
            SAID_AT: self.said_at, VALID_FROM: self.valid_from, VALID_UNTIL: self.valid_until
        }  # fmt: skip
        return {name: at.isoformat() for name, at in times.items() if at is not None}

    def has_ended(self, at: datetime) -> bool:
        return self.valid_until is not None and self.valid_until < at


def current_first(hits: Iterator[Hit], at: datetime, *, sure: float) -> Iterator[Hit]:
    """Yield the memories that hold, or will; those that have ended only if there is no other.

    One with a score below ``sure`` is perhaps about something else: it hides none above it.
    """
    ended = []
    best: bool | None = None
    for hit in hits:
        if FactTimes.of(hit.metadata).has_ended(at):
            ended.append(hit)
        else:
            best = best or hit.score >= sure
            yield hit
    yield from (hit for hit in ended if best is None or (hit.score >= sure) > best)


def newest_first(hits: Sequence[Hit], read: Callable[[Sequence[UUID]], Iterable[Hit]]) -> list[Hit]:
    """Return the hits with each memory behind the newer one that may replace it.

    The newer one is as relevant as the older one. ``read``: reads those that weren't found.
    """
    found = {hit.id: hit for hit in hits}
    missing = {key for hit in hits for key in hit.metadata.get(NEWER, ()) if key not in found}
    if missing:
        found |= {hit.id: hit for hit in read(sorted(missing))}
    ordered: dict[UUID, Hit] = {}

    def add(hit: Hit, score: float) -> None:
        if hit.id in ordered:
            return
        for key in hit.metadata.get(NEWER, ()):
            if key in found and key != hit.id:
                add(found[key], max(score, found[key].score))
        ordered.setdefault(hit.id, replace(hit, score=score))

    for hit in hits:
        add(hit, hit.score)
    return [_without_newer(hit) for hit in ordered.values()]


def as_nearest(hit: Hit) -> Hit:
    return replace(hit, metadata={**hit.metadata, NEAREST: True})


def is_sure(hit: Hit) -> bool:
    """Return whether the hit is above the threshold of its recall."""
    return NEAREST not in hit.metadata


def behind(hits: Sequence[Hit], least: float, *, is_named: bool) -> list[Hit]:
    """Return the hits, messages that only ask behind the memories with at least this score.

    Where somebody is asked about by name, so is what was answered before.
    """
    sure = [hit.score for hit in hits if hit.source == "memory" and hit.score >= least]
    last = min(sure, default=1.0 + BEHIND) - BEHIND

    def tells_less(hit: Hit) -> bool:
        is_answer = is_named and hit.metadata["role"] == Role.ASSISTANT
        return hit.score > last and (is_answer or only_asks(hit.content))

    return [
        replace(hit, score=last) if hit.source == "message" and tells_less(hit) else hit
        for hit in hits
    ]


def place_of(hit: Hit) -> tuple[float, bool, datetime]:
    """Return the place of a hit among others: behind the newer one that may replace it."""
    return -hit.score, NEWER in hit.metadata, hit.created_at


def _without_newer(hit: Hit) -> Hit:
    """Return a hit as it is recorded: ``newer`` says whether one stands before it."""
    kept = {name: value for name, value in hit.metadata.items() if name != NEWER}
    return replace(hit, metadata={**kept, NEWER: True} if hit.metadata.get(NEWER) else kept)


# Name the client whose memory the owner is shown: in records, and in labels of prompts. Pure.


# Who said it, where it isn't a client with a name: the person in the chat, or staff.
THEM, STAFF = "this person", "staff"
# The name in the metadata of a memory that came from another chat than the owner's own, or of who
# said it in a group. That of a message has its writer's in a group.
CLIENT_NAME, SENDER_NAME = "client_name", "sender_name"
# How a prompt introduces a memory, and one with such a name, which follows.
MEMORY = "memory"
CLIENTS_MEMORY = f"{MEMORY} of "
MAX_NAME_LENGTH = 60
# People choose their names: none may pretend to end the label in which it stands.
_MARKS = re.compile(r"[()<>\[\]]")


def name_in_label(name: str) -> str:
    """Return the name of a chat's person as it stands in the label of a memory."""
    words = " ".join(_MARKS.sub(" ", phone_numbers.number_shown(name)).split())
    return characters.cut_at_word(words, MAX_NAME_LENGTH) or "a client"


def with_name(text: str, about: Mapping[str, Any]) -> str:
    """Return a text after the name in its metadata, or in its entry of a replay, if any."""
    name = about.get(CLIENT_NAME) or about.get(SENDER_NAME)
    return f"{name}: {text}" if name else text


def memory_about(
    kind: str,
    *,
    client: str,
    source: str,
    is_own: bool,
    times: FactTimes,
    newer: Sequence[UUID],
    promise: Any = None,
) -> dict[str, Any]:
    """Return the metadata of a recalled memory.

    ``client``: the name to show, or "". ``is_own``: it came from the viewer's own chat. ``newer``:
    those that may replace it. ``promise``: the stored state of a promise of the business.
    """
    about: dict[str, Any] = {"type": kind, **times.as_metadata()}
    if kind == PROMISE:
        given = promise if isinstance(promise, dict) else {}
        about[PROMISE] = {"state": given.get("state", OPEN), "due": given.get("due")}
    if client:
        about[CLIENT_NAME] = name_in_label(client)
    elif kind != PROMISE and (is_own or source == STAFF):
        about[SAID_BY] = THEM if is_own else STAFF
    if newer:
        about[NEWER] = newer
    return about
