"""Looks for what was forgotten, by its own text, as anybody would."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.integrations.embedders.base import Calibration, Embedder, EmbedderError
from memoryproject.integrations.embedders.covered import covered_vectors
from memoryproject.lib.fragments import MARK, Fragments
from memoryproject.lib.stored_errors import ErrorText
from sessions_app.models import (
    Message,
    MessageEmbedding,
    Note,
    OutboundPart,
    SummarizationMetadata,
)
from sessions_app.models.messages import Role
from sessions_app.recall import MEMORIES, MESSAGES, Hit, Viewer, recall
from sessions_app.services.forget.doomed import Doomed

T = TypeVar("T")

# So many are asked for by their own text, as anybody would. Of more a sample must do, spread
# over all of them: a question takes a tenth of a second while nobody can store anything. The
# rows themselves are counted, and answers and summaries read through for any part of any text,
# one and all.
MOST_ASKED = 20
TOP_K = 10
ROWS_AT_ONCE = 500


class StillFoundError(Exception):
    """The probe found what was to be forgotten. The text says where, not what."""


class Prober:
    """Made before the transaction: no provider is asked for a vector while it is open."""

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        self._asked = spread(list(dict.fromkeys(text for text in texts if text.strip())))
        self._embedder = _Prepared(self._asked, embedder)

    def look(self, *, doomed: Doomed, texts: Fragments) -> None:
        """Raises StillFoundError."""
        self._count_rows(doomed)
        self._read_through(doomed, texts)
        gone = doomed.memories | doomed.messages
        for text in self._asked:
            for viewer in [Viewer("staff"), *(Viewer("client", chat) for chat in doomed.chats)]:
                sources = [MEMORIES] if viewer.chat_id is None else [MESSAGES]
                found = recall(
                    query=text,
                    viewer=viewer,
                    embedder=self._embedder,
                    top_k=TOP_K,
                    min_similarity=0.0,
                    sources=sources,
                )
                for hit in found.hits:
                    if hit.id in gone or _is_ours(hit, texts):
                        raise StillFoundError(_still("found", hit.source, hit.id))

    def look_at(self, *, answers: Collection[UUID], words: Fragments) -> None:
        """As ``look``, for facts of one word, in the answers that had them in reach. Raises
        StillFoundError."""
        if not words:
            return
        told = Message.objects.filter(pk__in=list(answers)).values_list("pk", "content")
        for key, text in told:
            if _tells(words, text):
                raise StillFoundError(_still("told", "message", key))

    def _count_rows(self, doomed: Doomed) -> None:
        left = {
            "memories": Memory.objects.filter(pk__in=doomed.memories),
            "memory_vectors": MemoryEmbedding.objects.filter(memory__in=doomed.memories),
            "message_vectors": MessageEmbedding.objects.filter(message__in=doomed.messages),
            "messages": Message.objects.filter(pk__in=doomed.messages, turn__isnull=True),
        }
        for name, rows in left.items():
            if rows.exists():
                raise StillFoundError(ErrorText("still_rows", what=ErrorText(f"kind_{name}")))

    def _read_through(self, doomed: Doomed, texts: Fragments) -> None:
        """Everything of ours that was made in these chats since, against all texts at once."""
        for name, key, told in _made_since(doomed):
            if _tells(texts, told):
                raise StillFoundError(_still("told", name, key))


def _still(how: str, kind: str, key: object) -> ErrorText:
    return ErrorText(f"still_{how}", what=ErrorText(f"kind_{kind}"), id=key)


def spread(all_of_them: Sequence[T]) -> list[T]:
    """At most ``MOST_ASKED`` of them, from first to last."""
    if len(all_of_them) <= MOST_ASKED:
        return list(all_of_them)
    return [all_of_them[place * len(all_of_them) // MOST_ASKED] for place in range(MOST_ASKED)]


def _made_since(doomed: Doomed) -> Iterator[tuple[str, object, str]]:
    """Answers, summaries and what was sent of them, each with what it is and its key."""
    if doomed.since is None:
        return
    chats, since = list(doomed.chats), doomed.since
    ours = Message.objects.filter(chat_id__in=chats, received_at__gte=since)
    made: dict[str, tuple[QuerySet[Model], tuple[str, ...]]] = {
        "message": (ours.filter(role__in=[Role.ASSISTANT, Role.SUMMARY]), ("content",)),
        "summary": (
            SummarizationMetadata.objects.filter(session__chat_id__in=chats, created_at__gte=since),
            ("digest", "chapter"),
        ),
        "part": (
            OutboundPart.objects.filter(turn__chat_id__in=chats, turn__created_at__gte=since),
            ("content",),
        ),
        "note": (Note.objects.filter(chat__in=chats), ("text",)),
    }
    for name, (rows, fields) in made.items():
        for key, *told in rows.order_by().values_list("pk", *fields).iterator(ROWS_AT_ONCE):
            yield from ((name, key, text) for text in told)


def _tells(texts: Fragments, told: str) -> bool:
    """Whether there is more of it than the marks where it stood."""
    return any(texts.are_in(part) for part in told.split(MARK))


def _is_ours(hit: Hit, texts: Fragments) -> bool:
    """Whether an answer of ours still tells it; what people say on their own stays."""
    if hit.source != "message" or hit.metadata.get("role") == str(Role.USER):
        return False
    return _tells(texts, hit.content)


class _Prepared:
    """An embedder that knows the vectors of a few texts, and nothing else."""

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        self.model_id = embedder.model_id
        self.calibration: Calibration = embedder.calibration
        self._vectors: dict[str, list[float]] = {}
        try:
            self.dimensions = embedder.dimensions
            vectors = covered_vectors(embedder, texts)
        except EmbedderError:
            # Without vectors it is looked for by words.
            self.dimensions = 1
            return
        known = zip(texts, vectors, strict=True)
        self._vectors = {text: vector for text, vector in known if vector is not None}

    def coverage(self, text: str) -> float:
        """See Embedder.coverage."""
        return 1.0 if text in self._vectors else 0.0

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed."""
        return [self._vectors[text] for text in texts]
