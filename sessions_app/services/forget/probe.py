"""Looks for what was forgotten, by its own text, as anybody would."""

from __future__ import annotations

from collections.abc import Sequence

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.integrations.embedders.base import Calibration, Embedder, EmbedderError
from memoryproject.integrations.embedders.covered import covered_vectors
from memoryproject.lib.fragments import Fragments
from sessions_app.models import Message, MessageEmbedding
from sessions_app.models.messages import Role
from sessions_app.recall import MEMORIES, MESSAGES, Hit, Viewer, recall
from sessions_app.services.forget.doomed import Doomed

# Each is asked for by its own text; of a session's thousand messages a sample must do, the
# rows themselves are counted one and all.
MOST_ASKED = 20
TOP_K = 10


class StillFoundError(Exception):
    """The probe found what was to be forgotten. The text says where, not what."""


class Prober:
    """Made before the transaction: no provider is asked for a vector while it is open."""

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        self._asked = list(dict.fromkeys(text for text in texts if text.strip()))[:MOST_ASKED]
        self._embedder = _Prepared(self._asked, embedder)

    def look(self, *, doomed: Doomed, texts: Fragments) -> None:
        """Raises StillFoundError."""
        self._count_rows(doomed)
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
                        raise StillFoundError(f"It is still found in {hit.source} {hit.id}.")

    def _count_rows(self, doomed: Doomed) -> None:
        left = {
            "memories": Memory.objects.filter(pk__in=doomed.memories),
            "their vectors": MemoryEmbedding.objects.filter(memory__in=doomed.memories),
            "vectors of messages": MessageEmbedding.objects.filter(message__in=doomed.messages),
            "messages": Message.objects.filter(pk__in=doomed.messages, turn__isnull=True),
        }
        for name, rows in left.items():
            if rows.exists():
                raise StillFoundError(f"There are still rows of {name}.")


def _is_ours(hit: Hit, texts: Fragments) -> bool:
    """Whether an answer of ours still tells it; what people say on their own stays."""
    if hit.source != "message" or hit.metadata.get("role") == str(Role.USER):
        return False
    return texts.are_in(hit.content)


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
