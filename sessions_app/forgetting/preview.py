"""Preview a forgetting: carry it out in a transaction that is rolled back.

No model is called and no file is touched. If the preview would take too long or would have to wait
for another process, only the chosen objects themselves are counted.
"""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models import Q, QuerySet

from memories_app.models import Memory
from memoryproject.foundation.audit.audit_events import SYSTEM
from sessions_app.conversations.epochs import Held, ScopeBusyError, Scopes, forgetting_try
from sessions_app.conversations.preview_recorder import MAX_SHOWN, ChangeKind, PreviewRecorder
from sessions_app.forgetting.deletion_plan import MODELS, NothingToForgetError
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.forgetting.probe import Prober
from sessions_app.forgetting.sweep import ForgetDependencies
from sessions_app.models import ChatSession, ForgottenKind, Message, Turn
from sessions_app.transcript_files.backups import Backups

logger = logging.getLogger(__name__)

# While the preview runs, nobody can store an answer in its chats.
MAX_SECONDS = 8.0
MAX_WAIT_SECONDS = 2.0
BETWEEN_TRIES = 0.05
# Larger selections are counted without a trial run.
MAX_OBJECTS = 60
MAX_MESSAGES = 3_000

Chosen = tuple[str, UUID]


@dataclass
class Preview:
    """The result of a preview.

    ``tables`` counts the rows that are deleted or changed, by table, as the receipts will count
    them. ``recorder`` holds the texts. ``there`` is the number of chosen objects that exist.
    ``tried`` is False if only the objects themselves were counted.
    """

    tables: Counter[str] = field(default_factory=Counter)
    recorder: PreviewRecorder = field(default_factory=lambda: PreviewRecorder(MAX_SHOWN))
    there: int = 0
    tried: bool = True


class _TooLongError(Exception):
    """The time limit was exceeded."""


def preview_make(*, chosen: Sequence[Chosen], dependencies: ForgetDependencies) -> Preview:
    """Preview the forgetting; count only if a trial would block others for too long."""
    messages = _messages_within(chosen).order_by()[: MAX_MESSAGES + 1]
    if len(chosen) > MAX_OBJECTS or messages.count() > MAX_MESSAGES:
        return _count_only(chosen)
    try:
        return _try_out(chosen, dependencies)
    except (_TooLongError, ScopeBusyError, OperationalError) as reason:
        logger.info("A forgetting is counted, not tried out: %s.", type(reason).__name__)
        return _count_only(chosen)


def _try_out(chosen: Sequence[Chosen], dependencies: ForgetDependencies) -> Preview:
    preview = Preview()
    backups = dependencies.transcripts
    untouched = backups and Backups(backups.root, is_preview=True)
    dependencies = replace(dependencies, recorder=preview.recorder, transcripts=untouched)
    until = time.monotonic() + MAX_SECONDS
    with transaction.atomic():
        _limit_waiting()
        for kind, key in chosen:
            if time.monotonic() > until:
                raise _TooLongError
            _try_object(kind, key, dependencies, preview)
        transaction.set_rollback(True)
    return preview


def _limit_waiting() -> None:
    """Limit the time of each statement and of each wait for a lock in this transaction."""
    with connection.cursor() as cursor:
        for name, seconds in (
            ("statement_timeout", MAX_SECONDS),
            ("lock_timeout", MAX_WAIT_SECONDS),
        ):
            cursor.execute("SELECT set_config(%s, %s, true)", [name, f"{int(seconds * 1000)}ms"])


def _try_object(kind: str, key: UUID, dependencies: ForgetDependencies, preview: Preview) -> None:
    try:
        receipt = object_forget(
            kind=kind,
            object_id=key,
            dependencies=dependencies,
            actor=SYSTEM,
            prober=Prober(),
            begin=_lock_in_time,
        )
    except NothingToForgetError:
        return
    preview.there += 1
    preview.tables.update(receipt.swept)


def _lock_in_time(scopes: Scopes) -> Held:
    """Retry to take the locks for a limited time.

    Waiting for the next lock while holding others could end in a deadlock. Raises ScopeBusyError.
    """
    until = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        try:
            with transaction.atomic():
                return forgetting_try(scopes)
        except ScopeBusyError:
            if time.monotonic() > until:
                raise
            time.sleep(BETWEEN_TRIES)


def _by_kind(chosen: Sequence[Chosen]) -> dict[str, list[UUID]]:
    keys: dict[str, list[UUID]] = {kind: [] for kind in ForgottenKind.values}
    for kind, key in chosen:
        keys[kind].append(key)
    return keys


def _messages_within(chosen: Sequence[Chosen]) -> QuerySet[Message]:
    """Return the messages that are in the chosen objects."""
    keys = _by_kind(chosen)
    sessions = [*keys[str(ForgottenKind.SESSION)], *keys[str(ForgottenKind.MESSAGES)]]
    return Message.objects.filter(
        Q(chat__in=keys[str(ForgottenKind.CHAT)])
        | Q(session__in=sessions)
        | Q(pk__in=keys[str(ForgottenKind.MESSAGE)])
    )


def _count_only(chosen: Sequence[Chosen]) -> Preview:
    """Count the chosen objects and their contents, without searching elsewhere."""
    keys, preview = _by_kind(chosen), Preview(tried=False)
    rows = {kind: MODELS[kind]._default_manager.filter(pk__in=keys[kind]) for kind in MODELS}
    preview.there = sum(each.count() for each in rows.values())
    chats, sessions = keys[str(ForgottenKind.CHAT)], keys[str(ForgottenKind.SESSION)]
    documents = rows[str(ForgottenKind.DOCUMENT)]
    inside: tuple[QuerySet[Any], ...] = (
        rows[str(ForgottenKind.CHAT)],
        documents,
        ChatSession.objects.filter(Q(pk__in=sessions) | Q(chat__in=chats)),
        Turn.objects.filter(Q(session__in=sessions) | Q(chat__in=chats)),
    )
    for counted in inside:
        preview.tables[counted.model._meta.db_table] += counted.count()
    memories = Memory.objects.filter(
        Q(pk__in=keys[str(ForgottenKind.MEMORY)]) | Q(chat_id__in=chats)
    )
    _count(preview, memories.only("pk", "content"), ChangeKind.MEMORY)
    messages = _messages_within(chosen).only("pk", "content").order_by("received_at")
    _count(preview, messages, ChangeKind.MESSAGE)
    for document in documents:
        preview.recorder.record(ChangeKind.DOCUMENT, document.pk, document.name)
    preview.tables += Counter()
    return preview


def _count(preview: Preview, rows: QuerySet[Memory] | QuerySet[Message], kind: ChangeKind) -> None:
    count = rows.count()
    shown = rows[:MAX_SHOWN]
    for row in shown:
        preview.recorder.record(kind, row.pk, row.content)
    preview.recorder.add_count(kind, max(0, count - len(shown)))
    preview.tables[rows.model._meta.db_table] += count
