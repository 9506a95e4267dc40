"""What a forgetting would take: found out by forgetting, in a transaction that is taken back.

No model is asked and no file is touched. What would take too long, or would have to wait for
somebody else, isn't tried out: then only the things themselves are counted.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet

from memories_app.models import Memory, SourceDocument
from memoryproject.foundation.audit.events import SYSTEM
from sessions_app.conversations.facade import (
    MAX_SHOWN,
    Held,
    PreviewRecorder,
    ScopeBusyError,
    Scopes,
    What,
    forgetting_try,
)
from sessions_app.forgetting.execute import ForgetDependencies
from sessions_app.forgetting.forget import object_forget_within
from sessions_app.forgetting.plans import NothingToForgetError
from sessions_app.forgetting.probe import Prober, StillFoundError
from sessions_app.models import Chat, ChatSession, ForgottenKind, Message, Turn
from sessions_app.transcript_files.facade import Backups, UntouchedBackups

logger = logging.getLogger(__name__)

# While it is tried out nobody can store an answer in the chats that it concerns.
MAX_SECONDS = 8.0
MAX_WAIT_SECONDS = 2.0
BETWEEN_TRIES = 0.05
# More than these aren't tried out at all.
MAX_OBJECTS = 60
MAX_MESSAGES = 3_000

Chosen = tuple[str, UUID]


@dataclass
class Preview:
    """``tables``: the rows that go or change, by table, as the receipts will count them.
    ``witness``: the texts. ``there`` of the chosen things are there; ``found`` would still be
    found afterwards and so stay as they are. ``tried`` is False where only the things
    themselves were counted."""

    tables: Counter[str] = field(default_factory=Counter)
    witness: PreviewRecorder = field(default_factory=lambda: PreviewRecorder(MAX_SHOWN))
    there: int = 0
    found: int = 0
    tried: bool = True


class _TooLongError(Exception):
    """The time is up."""


def preview_make(*, chosen: Sequence[Chosen], dependencies: ForgetDependencies) -> Preview:
    """Try it out; where that would hold up others for too long, count."""
    if len(chosen) > MAX_OBJECTS or _messages_of(chosen) > MAX_MESSAGES:
        return _counted(chosen)
    try:
        return _tried(chosen, dependencies)
    except (_TooLongError, ScopeBusyError, OperationalError) as reason:
        logger.info("A forgetting is counted, not tried out: %s.", type(reason).__name__)
        return _counted(chosen)


def _tried(chosen: Sequence[Chosen], dependencies: ForgetDependencies) -> Preview:
    preview = Preview()
    untouched: Backups | None = None
    if dependencies.transcripts is not None:
        untouched = UntouchedBackups(dependencies.transcripts.root)
    dependencies = replace(dependencies, witness=preview.witness, transcripts=untouched)
    until = time.monotonic() + MAX_SECONDS
    with transaction.atomic():
        _limit()
        for kind, key in chosen:
            if time.monotonic() > until:
                raise _TooLongError
            _try(kind, key, dependencies, preview)
        transaction.set_rollback(True)
    return preview


def _limit() -> None:
    """For this transaction: neither a statement nor the wait for a lock takes long."""
    with connection.cursor() as cursor:
        for name, seconds in (
            ("statement_timeout", MAX_SECONDS),
            ("lock_timeout", MAX_WAIT_SECONDS),
        ):
            cursor.execute("SELECT set_config(%s, %s, true)", [name, f"{int(seconds * 1000)}ms"])


def _try(kind: str, key: UUID, dependencies: ForgetDependencies, preview: Preview) -> None:
    # Nobody is asked for a vector: the rows and texts are looked through all the same.
    prober = Prober([], dependencies.embedder)
    try:
        receipt = object_forget_within(
            kind=kind,
            object_id=key,
            dependencies=dependencies,
            actor=SYSTEM,
            prober=prober,
            begin=_soon,
        )
    except NothingToForgetError:
        return
    except StillFoundError:
        preview.there += 1
        preview.found += 1
        return
    preview.there += 1
    preview.tables.update(receipt.swept)


def _soon(scopes: Scopes) -> Held:
    """Try for the locks, again and again for a while: who holds those of one thing and waited
    for those of the next could wait in a circle. Raises ScopeBusyError."""
    until = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        try:
            with transaction.atomic():
                return forgetting_try(scopes)
        except ScopeBusyError:
            if time.monotonic() > until:
                raise
            time.sleep(BETWEEN_TRIES)


def _messages_of(chosen: Sequence[Chosen]) -> int:
    """How many messages go, up to a few more than are tried out."""
    count = 0
    for said in _said(chosen):
        count += said.order_by()[: MAX_MESSAGES + 1].count()
        if count > MAX_MESSAGES:
            break
    return count


def _said(chosen: Sequence[Chosen]) -> list[QuerySet[Message]]:
    """The messages that are in what is chosen."""
    keys = _by_kind(chosen)
    sessions = [*keys[str(ForgottenKind.SESSION)], *keys[str(ForgottenKind.MESSAGES)]]
    return [
        Message.objects.filter(chat__in=keys[str(ForgottenKind.CHAT)]),
        Message.objects.filter(session__in=sessions),
        Message.objects.filter(pk__in=keys[str(ForgottenKind.MESSAGE)]),
    ]


def _by_kind(chosen: Sequence[Chosen]) -> dict[str, list[UUID]]:
    keys: dict[str, list[UUID]] = {kind: [] for kind in ForgottenKind.values}
    for kind, key in chosen:
        keys[kind].append(key)
    return keys


def _counted(chosen: Sequence[Chosen]) -> Preview:
    """The things themselves and what is in them, without looking for it anywhere else."""
    keys, preview = _by_kind(chosen), Preview(tried=False)
    chats = keys[str(ForgottenKind.CHAT)]
    memories = Memory.objects.filter(pk__in=keys[str(ForgottenKind.MEMORY)])
    documents = SourceDocument.objects.filter(pk__in=keys[str(ForgottenKind.DOCUMENT)])
    sessions = ChatSession.objects.filter(pk__in=keys[str(ForgottenKind.SESSION)])
    preview.there = sum(
        rows.count() for rows in (memories, documents, sessions, Chat.objects.filter(pk__in=chats))
    )
    preview.there += Message.objects.filter(pk__in=keys[str(ForgottenKind.MESSAGE)]).count()
    _count(preview, memories.only("pk", "content"), What.MEMORY)
    _count(preview, Memory.objects.filter(chat_id__in=chats).only("pk", "content"), What.MEMORY)
    for said in _said(chosen):
        _count(preview, said.only("pk", "content").order_by("received_at"), What.MESSAGE)
    others: list[QuerySet[Chat] | QuerySet[ChatSession] | QuerySet[Turn]] = [
        Chat.objects.filter(pk__in=chats),
        sessions,
        ChatSession.objects.filter(chat__in=chats),
        Turn.objects.filter(chat__in=chats),
        Turn.objects.filter(session__in=sessions),
    ]
    for rows in others:
        preview.tables[rows.model._meta.db_table] += rows.count()
    for document in documents:
        preview.witness.saw(What.DOCUMENT, document.pk, document.name)
        preview.tables[SourceDocument._meta.db_table] += 1
    preview.tables += Counter()
    return preview


def _count(preview: Preview, rows: QuerySet[Memory] | QuerySet[Message], what: What) -> None:
    count = rows.count()
    shown = rows[:MAX_SHOWN]
    for row in shown:
        preview.witness.saw(what, row.pk, row.content)
    preview.witness.saw_more(what, max(0, count - len(shown)))
    preview.tables[rows.model._meta.db_table] += count
