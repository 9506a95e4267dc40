"""Look for what was forgotten by its own text, and record what was asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from memories_app.memory_documents.facade import document_rows_left
from memories_app.models import Memory, MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.embedders.base import (
    Calibration,
    Embedder,
    EmbedderError,
)
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.retrieval.fragments import MARK, Fragments
from sessions_app.forgetting.deletion_plan import DeletionPlan
from sessions_app.forgetting.probe_sources import (
    RECALLED_TABLES,
    Column,
    chat_columns,
    indexes_of,
    memories_found,
    messages_found,
    unscoped_columns,
)
from sessions_app.forgetting.redact_unscoped import statistics_stale, statistics_values
from sessions_app.models import ForgottenKind, Message
from sessions_app.models.messages import Role
from sessions_app.recall.facade import MEMORIES, MESSAGES, Hit, Viewer, recall


@dataclass
class ProbeStep:
    """One step of a probe.

    ``queries`` is the number of queries made and ``rows`` the number of rows examined. ``names``
    are the columns, indexes and statistics that were checked.
    """

    queries: int = 0
    rows: int = 0
    names: set[str] = field(default_factory=set)


class ProbeRecord:
    """The steps of a probe, by what they searched."""

    def __init__(self) -> None:
        self._steps: defaultdict[str, ProbeStep] = defaultdict(ProbeStep)

    def count(
        self, name: str, *, queries: int = 0, rows: int = 0, names: Iterable[str] = ()
    ) -> None:
        """Add to one step."""
        step = self._steps[name]
        step.queries += queries
        step.rows += rows
        step.names.update(names)

    def as_dict(self) -> dict[str, object]:
        """Return the record in the form that the receipt stores."""
        return {
            name: {"queries": step.queries, "rows": step.rows, "looked_at": sorted(step.names)}
            for name, step in sorted(self._steps.items())
        }


T = TypeVar("T")

# This many texts are searched by their own words, as any user could. A larger number is sampled
# evenly, because a query takes a tenth of a second and blocks all writes in these chats. The
# derived records are compared with every text.
MAX_PROBES = 20

TOP_K = 10


class StillFoundError(Exception):
    """The probe found a text that should be forgotten.

    The error says where, not what; ``details`` is the record of the probe until then.
    """

    def __init__(self, text: str, details: Mapping[str, object] | None = None) -> None:
        super().__init__(text)
        self.details = dict(details or {})


class Prober:
    """The probe of one forgetting.

    It is built before the transaction, so that no provider is asked for a vector while it is open.
    Every step raises StillFoundError; ``record`` counts what was searched.
    """

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        self._queries = spread(list(dict.fromkeys(text for text in texts if text.strip())))
        self._embedder = _Prepared(self._queries, embedder)
        self.record = ProbeRecord()

    def probe_chats(self, *, plan: DeletionPlan, texts: Fragments) -> None:
        """Read everything derived in these chats since then, and search for the texts."""
        self.record = ProbeRecord()
        if plan.since is not None:
            self._search_columns(chat_columns(list(plan.chats), plan.since), texts)
        deleted = plan.memories | plan.messages
        for text in self._queries:
            for viewer in [Viewer("staff"), *(Viewer("client", chat) for chat in plan.chats)]:
                self._recall(text, viewer, deleted, texts)
            self._search(text, plan, texts)
        if self._queries:
            self.record.count("recall", names=indexes_of(RECALLED_TABLES))

    def probe_memory_documents(self, document_ids: Collection[UUID]) -> None:
        """Check that no row of these memory documents and their versions is left."""
        for key in document_ids:
            names = [
                f"{model._meta.db_table}.{column}"
                for model, column in (
                    (MemoryDocument, "id"),
                    (MemoryDocumentVersion, "document_id"),
                )
            ]
            rows = document_rows_left(key)
            self.record.count("columns", queries=len(names), rows=rows, names=names)
            if rows:
                raise self._found(_still("found", "memory document", key))

    def probe_answers(self, *, answers: Collection[UUID], words: Fragments) -> None:
        """Search for one-word facts in the answers that had them in reach."""
        if not words:
            return
        messages = Message.objects.filter(pk__in=list(answers))
        self._search_columns([Column("message", messages, "content")], words)

    def probe_unscoped(self, *, texts: Fragments, since: datetime | None) -> None:
        """Search the records that belong to no chat, and PostgreSQL's statistics."""
        if not texts:
            return
        self._search_columns(unscoped_columns(since), texts)
        values = statistics_values()
        names = {f"{table}.{column}" for table, column, _ in values}
        self.record.count("statistics", queries=1, rows=len(values), names=names)
        for table, column in sorted(statistics_stale(values, texts)):
            raise self._found(ErrorText("still_told_in_statistics", table=table, column=column))

    def _recall(
        self, text: str, viewer: Viewer, deleted: Collection[UUID], texts: Fragments
    ) -> None:
        found = recall(
            query=text,
            viewer=viewer,
            embedder=self._embedder,
            top_k=TOP_K,
            min_similarity=0.0,
            sources=[MEMORIES] if viewer.chat_id is None else [MESSAGES],
            repeats=True,
        )
        self.record.count("recall", queries=1, rows=len(found.hits))
        for hit in found.hits:
            if hit.id in deleted or _answer_holds(hit, texts):
                raise self._found(_still("found", hit.source, hit.id))

    def _search(self, text: str, plan: DeletionPlan, texts: Fragments) -> None:
        """Search by words, as staff do."""
        memories = memories_found(text, most=TOP_K)
        messages = messages_found(text, plan.chats, most=TOP_K)
        self.record.count("staff search", queries=2, rows=len(memories) + len(messages))
        for key in memories:
            if key in plan.memories:
                raise self._found(_still("found", "memory", key))
        for message in messages:
            repeats = message.role != Role.USER and _holds_text(texts, message.content)
            if repeats or message.pk in plan.messages:
                raise self._found(_still("found", "message", message.pk))

    def _search_columns(self, columns: Iterable[Column], texts: Fragments) -> None:
        """Compare every row with all texts at once."""
        for column in columns:
            self.record.count("columns", queries=1, names=[column.name])
            for key, value in column.rows():
                self.record.count("columns", rows=1)
                if _holds_text(texts, value):
                    raise self._found(_still("told", column.what, key))

    def _found(self, text: str) -> StillFoundError:
        return StillFoundError(text, self.record.as_dict())


def _still(how: str, what: str, key: object) -> ErrorText:
    kind = ErrorText(f"kind_{what.replace(' ', '_')}")
    return ErrorText(f"still_{how}", what=kind, id=key)


def spread(all_of_them: Sequence[T]) -> list[T]:
    """Return at most ``MAX_PROBES`` items, spread evenly from first to last."""
    if len(all_of_them) <= MAX_PROBES:
        return list(all_of_them)
    return [all_of_them[place * len(all_of_them) // MAX_PROBES] for place in range(MAX_PROBES)]


def _holds_text(texts: Fragments, value: Any) -> bool:
    """Return whether any text occurs outside of the redaction marks."""
    if isinstance(value, dict):
        return any(_holds_text(texts, part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple):
        return any(_holds_text(texts, part) for part in value)
    return isinstance(value, str) and any(texts.are_in(part) for part in value.split(MARK))


def _answer_holds(hit: Hit, texts: Fragments) -> bool:
    """Return whether an answer of ours still repeats a text; people's own messages stay."""
    if hit.source != "message" or hit.metadata.get("role") == str(Role.USER):
        return False
    return _holds_text(texts, hit.content)


class _Prepared:
    """An embedder that knows only the vectors of a few texts."""

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        self.model_id = embedder.model_id
        self.calibration: Calibration = embedder.calibration
        self._vectors: dict[str, list[float]] = {}
        try:
            self.dimensions = embedder.dimensions
            vectors = embed_covered(embedder, texts)
        except EmbedderError:
            # Without vectors, recall searches by words.
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


def build_prober(*, kind: str, object_id: UUID, embedder: Embedder) -> Prober:
    """Build the prober before the transaction, because an embedder may use the network."""
    rows: dict[str, QuerySet[Any]] = {
        str(ForgottenKind.MEMORY): Memory.objects.filter(pk=object_id),
        str(ForgottenKind.MESSAGE): Message.objects.filter(pk=object_id),
        str(ForgottenKind.DOCUMENT): Memory.objects.filter(document=object_id).order_by("position"),
        str(ForgottenKind.CHAT): Memory.objects.filter(chat_id=object_id).order_by(
            "created_at", "memory_id"
        ),
    }
    if kind == str(ForgottenKind.MEMORY_DOCUMENT):
        # Recall and staff's search never show it.
        return Prober([], embedder)
    messages = Message.objects.filter(session=object_id).exclude(content="").order_by("order_num")
    return Prober(_sample(rows.get(kind, messages)), embedder)


def _sample(rows: QuerySet[Any]) -> list[str]:
    """Return a sample of the contents, spread from first to last."""
    keys = spread(list(rows.values_list("pk", flat=True)))
    return list(rows.filter(pk__in=keys).values_list("content", flat=True))
