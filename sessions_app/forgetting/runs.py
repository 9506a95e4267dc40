"""Forget the objects that staff chose, one after the other, in a worker.

Each object is forgotten in one transaction with the note of its outcome. If a worker is killed, the
object is either forgotten with its receipt or untouched, and the next worker continues there.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.leases import Lease, LeaseLostError
from sessions_app.forgetting import deletion_plan, forget_objects, sweep
from sessions_app.models import ChatAddress, ForgetItem, ForgetReceipt, ForgetRun, ForgottenKind
from sessions_app.models.receipts import OPEN_RUNS, TROUBLES, ItemState, RunState

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
