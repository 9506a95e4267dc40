"""Forget the objects that staff chose, one after the other, in a worker.

Each object is forgotten in one transaction with the note of its outcome. If a worker is killed, the
object is either forgotten with its receipt or untouched, and the next worker continues there.
"""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.leases import Lease, LeaseLostError
from sessions_app.conversations.epochs import Held, ScopeBusyError, Scopes, forgetting_try
from sessions_app.conversations.preview_recorder import MAX_SHOWN, ChangeKind, PreviewRecorder
from sessions_app.forgetting import deletion_plan, forget_objects, probe, sweep
from sessions_app.forgetting.deletion_plan import MODELS, NothingToForgetError
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.forgetting.sweep import ForgetDependencies
from sessions_app.models import (
    ChatAddress,
    ChatSession,
    ForgetItem,
    ForgetReceipt,
    ForgetRun,
    ForgottenKind,
    Message,
    Turn,
)
from sessions_app.models.receipts import OPEN_RUNS, TROUBLES, ItemState, RunState
from sessions_app.transcript_files.backups import Backups

logger = logging.getLogger(__name__)

# After this time a worker yields to other tasks, and the run is enqueued again.
AT_ONCE_SECONDS = 60.0
# An object is given up after this many workers died on it.
MAX_ATTEMPTS = 3
# The lifetime of drafts that were never confirmed.
DRAFTS_KEPT = timedelta(days=1)
MAX_ITEMS = 10_000
DIED = ErrorText("worker_died")

Chosen = tuple[str, UUID]
Enqueue = Callable[[UUID], None]


class TooManyError(ValueError):
    """More than ``MAX_ITEMS`` were chosen."""


def run_draft(*, chosen: Iterable[Chosen], asked_by: str) -> ForgetRun:
    """Store a draft of the chosen objects, each as (kind, id).

    Nothing is forgotten until the draft is confirmed. Raises TooManyError, and ValueError if
    nothing is chosen.
    """
    items = list(dict.fromkeys(chosen))
    if not items:
        raise ValueError("Nothing is chosen.")
    if len(items) > MAX_ITEMS:
        raise TooManyError(f"{len(items)} are chosen; at most {MAX_ITEMS} are forgotten at once.")
    traces = _traces([key for kind, key in items if kind == str(ForgottenKind.CHAT)])
    with transaction.atomic():
        run = ForgetRun.objects.create(asked_by=asked_by, total=len(items))
        ForgetItem.objects.bulk_create(
            [
                ForgetItem(run=run, number=number, kind=kind, object_id=key, trace=traces.get(key))
                for number, (kind, key) in enumerate(items, start=1)
            ],
            batch_size=1_000,
        )
    return run


def chats_of(chosen: Iterable[Chosen]) -> set[UUID]:
    """Return the chats of the chosen objects."""
    keys: dict[str, list[UUID]] = defaultdict(list)
    for kind, key in chosen:
        keys[kind].append(key)
    chats = set(keys[str(ForgottenKind.CHAT)])
    for kind in map(str, (ForgottenKind.MESSAGE, ForgottenKind.SESSION, ForgottenKind.MEMORY)):
        rows = deletion_plan.MODELS[kind]._default_manager.filter(pk__in=keys[kind])
        chats |= set(rows.exclude(chat_id=None).values_list("chat_id", flat=True))
    return chats


def _traces(chat_ids: list[UUID]) -> dict[UUID, int]:
    rows = ChatAddress.objects.filter(chat__in=chat_ids).order_by("-id")
    return dict(rows.values_list("chat_id", "id"))


def run_confirm(
    *, run_id: UUID, actor: Actor, enqueue: Enqueue, requester: str = "", request_number: str = ""
) -> bool:
    """Confirm a run and start it; return False if it was confirmed before.

    It is carried out once, however often the button is pressed. ``requester`` and
    ``request_number``: see Requested.
    """
    with transaction.atomic():
        drafts = ForgetRun.objects.filter(pk=run_id, state=RunState.DRAFT)
        if not drafts.update(
            state=RunState.WAITING,
            confirmed_at=timezone.now(),
            requester=requester,
            request_number=request_number,
        ):
            return False
        audit_record(
            "forget.confirm",
            actor,
            "forget run",
            run_id,
            things=ForgetItem.objects.filter(run=run_id).count(),
        )
        # If the queue is down, nothing is lost: the periodic sweep finds waiting runs.
        transaction.on_commit(lambda: enqueue(run_id), robust=True)
    return True


def run_work(
    *,
    run_id: UUID,
    dependencies: sweep.ForgetDependencies,
    enqueue: Enqueue,
    seconds: float = AT_ONCE_SECONDS,
) -> int:
    """Work on a run for a limited time; return how many objects were finished.

    The rest is enqueued again. It can be called at any time, and by several workers at once.
    """
    runs = ForgetRun.objects.filter(state__in=OPEN_RUNS)
    run = runs.filter(pk=run_id).first()
    token = run and runs.claim(run, state=RunState.RUNNING)
    if run is None or token is None:
        return 0
    lease = Lease(run, token)
    finished = 0
    until = time.monotonic() + seconds
    try:
        while (item := _next(run_id)) is not None:
            if finished and time.monotonic() > until:
                break
            lease.renew()
            _forget_item(item, lease, dependencies)
            finished += 1
    except LeaseLostError as lost:
        logger.warning("%s", lost)
        return finished
    if _next(run_id) is None:
        lease.release(state=RunState.DONE, finished_at=timezone.now())
    elif lease.release():
        enqueue(run_id)
    return finished


def _next(run_id: UUID) -> ForgetItem | None:
    waiting = ForgetItem.objects.filter(run=run_id, state=ItemState.WAITING)
    return waiting.order_by("number").first()


def _forget_item(
    item: ForgetItem, lease: Lease[ForgetRun], dependencies: sweep.ForgetDependencies
) -> None:
    """Forget one object and store the outcome. Raises LeaseLostError."""
    if item.attempts >= MAX_ATTEMPTS:
        _finish_item(item, lease, str(ItemState.FAILED), error=DIED)
        return
    # In a transaction of its own: the count must survive if this worker dies on the object.
    ForgetItem.objects.filter(pk=item.pk).update(attempts=F("attempts") + 1)
    try:
        with transaction.atomic():
            run = lease.lock()
            receipt = _forget_object(item, run, dependencies)
            _finish_item(item, lease, str(ItemState.FORGOTTEN), receipt=receipt)
    except deletion_plan.NothingToForgetError:
        # Another object or another person removed it first, or its chat was merged into a chat
        # that nobody reviewed before confirming.
        moved_to = moved_to_chat(item)
        state = ItemState.GONE if moved_to is None else ItemState.MOVED
        _finish_item(item, lease, str(state), moved_to=moved_to)
    except LeaseLostError:
        raise
    except (DatabaseError, ArithmeticError, LookupError, TypeError, ValueError, OSError) as error:
        # The error's text may quote the text to forget, so only its type is stored.
        logger.error("%s %s was not forgotten: %s", item.kind, item.object_id, type(error).__name__)
        _finish_item(item, lease, str(ItemState.FAILED), error=type(error).__name__)


def _forget_object(
    item: ForgetItem, run: ForgetRun, dependencies: sweep.ForgetDependencies
) -> ForgetReceipt:
    receipt = forget_objects.object_forget(
        kind=item.kind,
        object_id=item.object_id,
        dependencies=dependencies,
        actor=Actor("staff", name=run.asked_by),
    )
    if run.requester or run.request_number:
        receipt.requester, receipt.request_number = run.requester, run.request_number
        receipt.save(update_fields=["requester", "request_number"])
    return receipt


def moved_to_chat(item: ForgetItem) -> UUID | None:
    """Return the chat into which the item's chat was merged."""
    if item.trace is None:
        return None
    links = ChatAddress.objects.filter(pk=item.trace).exclude(chat=item.object_id)
    return links.values_list("chat_id", flat=True).first()


def _finish_item(item: ForgetItem, lease: Lease[ForgetRun], state: str, **changes: object) -> None:
    """Store the outcome of an item once. Raises LeaseLostError."""
    with transaction.atomic():
        lease.lock()
        waiting = ForgetItem.objects.filter(pk=item.pk, state=ItemState.WAITING)
        if waiting.update(state=state, **changes):
            failed = 1 if state in TROUBLES else 0
            ForgetRun.objects.filter(pk=lease.row.pk).update(
                done=F("done") + 1, failed=F("failed") + failed
            )


def drafts_drop(now: datetime) -> None:
    """Remove expired drafts that were never confirmed."""
    ForgetRun.objects.filter(state=RunState.DRAFT, created_at__lt=now - DRAFTS_KEPT).delete()


def runs_abandoned(now: datetime) -> list[UUID]:
    """Return the waiting runs that no worker holds."""
    open_runs = ForgetRun.objects.filter(state__in=OPEN_RUNS).order_by("confirmed_at")
    return [run.pk for run in open_runs.abandoned(now)]


# Preview a forgetting: carry it out in a transaction that is rolled back.

logger = logging.getLogger(__name__)

# While the preview runs, nobody can store an answer in its chats.
MAX_SECONDS = 8.0
MAX_WAIT_SECONDS = 2.0
BETWEEN_TRIES = 0.05
# Larger selections are counted without a trial run.
MAX_OBJECTS = 60
MAX_MESSAGES = 3_000


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
            prober=probe.Prober(),
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
