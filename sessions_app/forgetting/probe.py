"""Look for what was erased by its own text and in what derived from it, and record both.

The sweep and the probe share one definition of a trace: the probe reads again where the sweep
removed something. Where it found nothing, that reading is the proof; both are in one transaction.
What is left is named in the receipt, for staff to finish.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db.models import Model, Q, QuerySet
from django_q.models import OrmQ, Task

from memories_app.memory_documents.document_rows import document_rows_left
from memories_app.models import Memory, MemoryDocument, MemoryDocumentVersion
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.integrations.embedders.base import DEFAULT_CALIBRATION, AbsentEmbedder
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from memoryproject.foundation.retrieval.query import with_words
from sessions_app import models
from sessions_app.forgetting.deletion_plan import DeletionPlan
from sessions_app.forgetting.redact_answers import AnswerRedaction
from sessions_app.forgetting.redact_records import UnscopedTraces, kept_texts
from sessions_app.forgetting.registry import statistics_renew, swept_columns
from sessions_app.forgetting.sweep import Sweep
from sessions_app.models import CheckQuestion, ForgottenKind, InboundDelivery, Message, Note
from sessions_app.recall.facade import MEMORIES, MESSAGES, Viewer, newest_messages_found, recall

# What the probe found, beside the word in the receipt.
ABSENT, FOUND = "absent", "found"

# The recall needs no vector, because it returns all that is left, whatever its similarity.
NO_VECTORS = AbsentEmbedder("", 1, DEFAULT_CALIBRATION, "the probe searches by words")
RECALLED_COLUMNS = [
    f"{table}.{column}"
    for table in ("memories_app_memory", "sessions_app_message")
    for column in ("content", "terms")
]

KINDS: dict[type[Model], str] = {
    Message: "message",
    Note: "note",
    Task: "task",
    OrmQ: "job",
    LogEntry: "log entry",
    Session: "login",
    IdempotentAnswer: "answer",
    InboundDelivery: "delivery",
    CheckQuestion: "question",
}

# The tables whose swept columns are read row by row.
_READ: list[type[Model]] = [*KINDS, models.Turn, models.TurnReplay, models.OutboundPart]
READ_TABLES = {model._meta.db_table for model in _READ}
# This many texts are searched by their own words, as any user could. A larger number is sampled
# evenly, because all writes in these chats wait meanwhile. The derived records are compared with
# every text.
MAX_PROBES = 20

TOP_K = 10

T = TypeVar("T")


class ProbeRecord:
    """The steps of a probe, by what they searched, and what it found: kinds and ids.

    Of each step the record has the number of ``queries`` made, the number of ``rows`` examined,
    and the columns and statistics that were ``looked_at``.
    """

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self.left: list[dict[str, str]] = []

    def count(
        self, name: str, *, queries: int = 0, rows: int = 0, names: Iterable[str] = ()
    ) -> None:
        """Add to one step."""
        self._counts[name].update(queries=queries, rows=rows)
        self._names[name].update(names)

    def found(self, what: str, key: object) -> None:
        """Record that a trace is left in this row."""
        entry = {"what": what, "id": str(key)}
        if entry not in self.left:
            self.left.append(entry)

    def as_dict(self) -> dict[str, object]:
        """Return the steps in the form that the receipt stores."""
        return {
            name: {**counts, "looked_at": sorted(self._names[name])}
            for name, counts in sorted(self._counts.items())
        }


class Prober:
    """The probe of one forgetting.

    ``record`` has what was searched, and what was found.
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._queries = spread(list(dict.fromkeys(text for text in texts if text.strip())))
        self.record = ProbeRecord()

    def probe_chats(
        self, sweep: Sweep, redactions: Iterable[AnswerRedaction], quoting: Collection[UUID]
    ) -> None:
        """Search for what was erased, and read again what derived from it in its chats.

        ``quoting``: the chats in which quotations were removed.
        """
        plan, self.record = sweep.plan, ProbeRecord()
        # Staff find memories, and people the messages of their chats.
        viewers = [Viewer("staff")] if plan.memories else []
        viewers += [Viewer("client", chat) for chat in plan.chats if plan.messages]
        for text in self._queries:
            for viewer in viewers:
                self._recall(text, viewer, plan)
            self._search(text, plan)
        if self._queries:
            self.record.count("recall", names=RECALLED_COLUMNS)
        names = {".".join(each) for each in swept_columns() if each[0] in READ_TABLES}
        self.record.count("columns", names=names)
        for redaction in redactions:
            for what, key, is_left in redaction.left():
                self._read(what, key, is_left=is_left)
        for chat_id in quoting:
            for kept in kept_texts(sweep, chat_id):
                self._read(KINDS[kept.model], kept.key, is_left=True)

    def probe_memory_documents(self, document_ids: Collection[UUID]) -> None:
        """Check that no row of these memory documents and their versions is left."""
        names = [
            f"{model._meta.db_table}.{column}"
            for model, column in ((MemoryDocument, "id"), (MemoryDocumentVersion, "document_id"))
        ]
        for key in document_ids:
            self.record.count("columns", queries=len(names), names=names)
            if document_rows_left(key):
                self._read("memory document", key, is_left=True)

    def probe_unscoped(self, sweep: Sweep, read: int | None) -> None:
        """Search the records that belong to no chat, and the values of PostgreSQL's statistics.

        ``read``: in so many of these records the sweep found nothing; None if it removed something.
        """
        if read is None:
            traces = UnscopedTraces(sweep)
            for trace in traces.find():
                self.record.found(KINDS[trace.model], trace.key)
            read = traces.read
        self.record.count("columns", queries=5, rows=read)
        if not sweep.texts:
            return
        sampled, stale = statistics_renew(sweep.texts)
        names = {f"{table}.{column}" for table, column, _ in sampled}
        self.record.count("statistics", queries=1, rows=len(sampled), names=names)
        for table, column in sorted(stale):
            self.record.found("statistics", f"{table}.{column}")

    def _read(self, what: str, key: object, *, is_left: bool) -> None:
        self.record.count("columns", queries=1, rows=1)
        if is_left:
            self.record.found(what, key)

    def _recall(self, text: str, viewer: Viewer, plan: DeletionPlan) -> None:
        """Recall from what was erased alone: so whatever is left is found, at any rank."""
        found = recall(
            query=text,
            viewer=viewer,
            embedder=NO_VECTORS,
            top_k=TOP_K,
            min_similarity=0.0,
            sources=[MEMORIES] if viewer.chat_id is None else [MESSAGES],
            memories_where=Q(pk__in=plan.memories),
            messages_where=Q(pk__in=plan.messages),
            repeats=True,
        )
        self.record.count("recall", queries=1, rows=len(found.hits))
        for hit in found.hits:
            self.record.found(hit.source, hit.id)

    def _search(self, text: str, plan: DeletionPlan) -> None:
        """Search by words, as staff do, in what was erased."""
        memories = with_words(memories_for_staff().filter(pk__in=plan.memories), text)
        keys = list(memories.values_list("pk", flat=True)[:TOP_K])
        erased = Message.objects.filter(pk__in=plan.messages)
        messages = newest_messages_found(erased, text, 0, TOP_K) if plan.messages else []
        self.record.count("staff search", queries=2, rows=len(keys) + len(messages))
        for what, found in (("memory", keys), ("message", [each.pk for each in messages])):
            for key in found:
                self.record.found(what, key)


def spread(all_of_them: Sequence[T]) -> list[T]:
    """Return at most ``MAX_PROBES`` items, spread evenly from first to last."""
    if len(all_of_them) <= MAX_PROBES:
        return list(all_of_them)
    return [all_of_them[place * len(all_of_them) // MAX_PROBES] for place in range(MAX_PROBES)]


def build_prober(kind: str, object_id: UUID, together: Collection[UUID] = ()) -> Prober:
    """Build the prober while the object exists. ``together``: see ``object_forget``."""
    rows: dict[str, QuerySet[Any]] = {
        str(ForgottenKind.MEMORY): Memory.objects.filter(pk__in=[object_id, *together]),
        str(ForgottenKind.MESSAGE): Message.objects.filter(pk=object_id),
        str(ForgottenKind.DOCUMENT): Memory.objects.filter(document=object_id).order_by("position"),
        str(ForgottenKind.CHAT): Memory.objects.filter(chat_id=object_id).order_by(
            "created_at", "memory_id"
        ),
    }
    if kind == str(ForgottenKind.MEMORY_DOCUMENT):
        # Recall and staff's search never show it.
        return Prober()
    messages = Message.objects.filter(session=object_id).exclude(content="").order_by("order_num")
    return Prober(_sample(rows.get(kind, messages)))


def _sample(rows: QuerySet[Any]) -> list[str]:
    """Return a sample of the contents, spread from first to last."""
    first = list(rows.values_list("content", flat=True)[: MAX_PROBES + 1])
    if len(first) <= MAX_PROBES:
        return first
    keys = spread(list(rows.values_list("pk", flat=True)))
    return list(rows.filter(pk__in=keys).values_list("content", flat=True))
