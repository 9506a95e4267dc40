"""Make jobs, do them in steps that may be cut off anywhere, and end them."""

import gzip
import io
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories_app.models import Memory
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.leases import RELEASED, Lease, LeaseLostError
from memoryproject.foundation.process.jobs import enqueue
from memoryproject.foundation.rest_kit.authentication import Caller
from sessions_app.conversations import epochs
from sessions_app.embedding.facade import configured, embedder, reembed, target
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.facade import NothingToForgetError, object_forget
from sessions_app.memories.transfer import MAX_ERRORS, lines_of, memories_import, memory_lines
from sessions_app.models import ForgetReceipt, Job, JobKind, JobPart, JobState
from sessions_app.models.jobs import OPEN_STATES
from sessions_app.presentation.access import memories_in_reach

logger = logging.getLogger(__name__)

# A worker does other work, too, after so long; the job goes on where it was.
BUDGET_SECONDS = 60.0
LINES_A_PART = 500
NOTHING_IMPORTED: dict[str, Any] = {"created": 0, "duplicates": 0, "errors": []}
MAX_ATTEMPTS = 5
# Between attempts of a job that fails without getting on.
WAIT = timedelta(minutes=1)
RESULT_KEPT, JOB_KEPT = timedelta(days=1), timedelta(days=30)


class _TimeIsUp(Exception):
    """The worker's time for the job is used up."""


def job_make(*, kind: str, caller: Caller, lines: Iterable[bytes] = (), **params: Any) -> Job:
    """Store a job, and queue it after the commit. ``lines``: what an import brings in."""
    actor = caller.actor
    bound = sorted(map(str, caller.chat_ids)) if caller.chat_ids is not None else None
    with transaction.atomic():
        job = Job.objects.create(
            kind=kind,
            caller=caller.key,
            actor_kind=actor.kind,
            actor_name=actor.name,
            params={**params, "bound": bound},
        )
        if kind == JobKind.IMPORT:
            walk, job.total = iter(lines), 0
            while part := list(islice(walk, LINES_A_PART)):
                _part_store(job, job.total // LINES_A_PART, part)
                job.total += len(part)
        elif kind == JobKind.EXPORT:
            job.total = _exported(job).count()
            _export_audit(job)
        job.save(update_fields=["total"])
        enqueue_job(job.pk)
    return job


def enqueue_job(job_id: UUID) -> None:
    """Queue this job for a worker."""
    enqueue("sessions_app.tasks.run_job", str(job_id), task_name=f"job {job_id}")


Step = Callable[[Lease[Job], float], bool]


def job_run(
    job_id: UUID, *, seconds: float = BUDGET_SECONDS, steps: Mapping[str, Step] | None = None
) -> str:
    """Do a job, or as much of it as ``seconds`` allow; return its state then.

    ``steps``: by the kind of a job, what does a part of it before a moment of the clock, and
    returns whether that was the last one.
    """
    now = timezone.now()
    waiting = Job.objects.filter(state__in=OPEN_STATES, due_at__lte=now)
    job = waiting.filter(pk=job_id).first()
    token = waiting.claim(job, now=now, state=JobState.RUNNING) if job else None
    if job is None or token is None:
        return ""
    lease = Lease(job, token)
    until = time.monotonic() + seconds
    try:
        while not (steps or _STEPS)[job.kind](lease, until):
            if time.monotonic() >= until:
                raise _TimeIsUp
        lease.release(state=JobState.DONE, finished_at=timezone.now(), error="")
    except LeaseLostError as lost:
        logger.info("%s", lost)
    except (_TimeIsUp, epochs.ForgottenMeanwhileError):
        lease.release()
        enqueue_job(job_id)
    except NothingToForgetError:
        # Somebody else has erased the chat meanwhile.
        ended = {"finished_at": timezone.now(), "error": ErrorText("job_no_chat")}
        lease.release(state=JobState.FAILED, **ended)
    except Exception as error:
        logger.exception("Job %s failed.", job)
        _failed(lease, error)
    return Job.objects.filter(pk=job_id).values_list("state", flat=True).first() or ""


def job_cancel(job: Job) -> bool:
    """Cancel a job; what it has done stays. Return whether it could be.

    It can't when it has ended, or is an erasure that has begun.
    """
    can_end = Q(state=JobState.QUEUED) | Q(state=JobState.RUNNING) & ~Q(kind=JobKind.ERASE)
    ended = {**RELEASED, "state": JobState.CANCELLED, "finished_at": timezone.now()}
    with transaction.atomic():
        is_cancelled = Job.objects.filter(can_end, pk=job.pk).update(**ended)
        if is_cancelled:
            JobPart.objects.filter(job=job).delete()
    return bool(is_cancelled)


def export_parts(job: Job) -> Iterator[bytes]:
    """Yield what an export has made, part by part."""
    for body in job.parts.order_by("number").values_list("body", flat=True).iterator(1):
        yield gzip.decompress(body)


def jobs_abandoned(now: datetime) -> list[UUID]:
    """Return the jobs that are due and have no living worker."""
    due = Job.objects.filter(state__in=OPEN_STATES, due_at__lte=now)
    return [job.pk for job in due.abandoned(now)]


def jobs_drop(now: datetime) -> None:
    """Delete old results, and old jobs."""
    JobPart.objects.filter(job__finished_at__lt=now - RESULT_KEPT).delete()
    Job.objects.filter(finished_at__lt=now - JOB_KEPT).delete()


def _failed(lease: Lease[Job], error: Exception) -> None:
    """Try again in a while; after some attempts without any progress the job has failed."""
    now = timezone.now()
    attempts = lease.held().values_list("attempts", flat=True).first() or 0
    text = error_text(error)
    if not getattr(text, "code", ""):
        # The text of an unknown error may quote what was stored.
        text = type(error).__name__
    if attempts + 1 < MAX_ATTEMPTS:
        wait = WAIT * (attempts + 1)
        lease.release(attempts=attempts + 1, due_at=now + wait, error=text)
    else:
        lease.release(state=JobState.FAILED, finished_at=now, error=text)


def _part_store(job: Job, number: int, lines: list[bytes]) -> None:
    # Of an overlong line there is only the start, without its end.
    text = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
    body = gzip.compress(text, compresslevel=1)
    JobPart.objects.create(job=job, number=number, lines=len(lines), body=body)


# The steps of each kind. Each returns whether nothing is left, and may be repeated after a crash.


def _import_step(lease: Lease[Job], until: float) -> bool:
    job = Job.objects.get(pk=lease.row.pk)
    part = job.parts.order_by("number").first()
    if part is None:
        if not job.total:  # An empty body has a result like any other.
            lease.renew(result=NOTHING_IMPORTED)
        return True
    lines = lines_of(io.BytesIO(gzip.decompress(part.body)))
    actor = Actor(job.actor_kind, job.actor_name)
    report = memories_import(
        lines=lines, embedder=embedder(), actor=actor, obeys_switches=True
    ).as_dict()
    before = job.result or NOTHING_IMPORTED
    errors = [{**each, "line": each["line"] + job.done} for each in report["errors"]]
    result = {
        "created": before["created"] + report["created"],
        "duplicates": before["duplicates"] + report["duplicates"],
        "errors": [*before["errors"], *errors][:MAX_ERRORS],
    }
    reached = {"done": job.done + part.lines, "result": result}
    try:
        with transaction.atomic():
            lease.renew(**reached, attempts=0)
            part.delete()
    except LeaseLostError:
        # It was cancelled meanwhile, and this part is stored all the same.
        Job.objects.filter(pk=job.pk, state=JobState.CANCELLED).update(**reached)
        raise
    return False


def _exported(job: Job) -> Any:
    bound = job.params["bound"]
    chat_ids = None if bound is None else frozenset(map(UUID, bound))
    caller = Caller(job.caller, Actor(job.actor_kind, job.actor_name), frozenset(), chat_ids)
    memories = memories_for_staff().filter(memories_in_reach(caller))
    chat_id = job.params["chat_id"]
    return memories.filter(chat_id=chat_id) if chat_id else memories


def _export_audit(job: Job) -> None:
    actor = Actor(job.actor_kind, job.actor_name)
    audit_record("export", actor, "memories", memories=job.total, **_options(job))


def _options(job: Job) -> dict[str, Any]:
    return {name: job.params[name] for name in ("embeddings", "redacted")}


def _export_step(lease: Lease[Job], until: float) -> bool:
    job = Job.objects.get(pk=lease.row.pk)
    memories = _exported(job).order_by("created_at", "memory_id")
    if place := job.params.get("after"):
        at = parse_datetime(place[0])
        memories = memories.filter(
            Q(created_at__gt=at) | Q(created_at=at, memory_id__gt=UUID(place[1]))
        )
    # What is forgotten after it was read must not be stored.
    epoch = epochs.epoch_read(epochs.Reader(job.pk, sees_all=True))
    keys = list(memories.values_list("created_at", "memory_id")[:LINES_A_PART])
    if not keys:
        return True
    part = Memory.objects.filter(pk__in=[key for _, key in keys])
    lines = [line.encode() + b"\n" for line in memory_lines(part, **_options(job))]
    reached = {**job.params, "after": [keys[-1][0].isoformat(), str(keys[-1][1])]}
    with transaction.atomic():
        epochs.epoch_check(epoch)
        lease.renew(done=F("done") + len(keys), params=reached, attempts=0)
        _part_store(job, job.parts.count(), lines)
    return False


def _reembed_step(lease: Lease[Job], until: float) -> bool:
    def progress(seen: int, lacking: int) -> None:
        total = max(lease.row.total or 0, lacking)
        lease.row.total = total
        # A later run counts only what is left.
        lease.renew(done=total - lacking + seen, total=total, attempts=0)
        if time.monotonic() >= until:
            raise _TimeIsUp

    done = reembed(target=target(configured()), progress=progress)
    lease.renew(result={"model": done.model, "before": done.before})
    return True


def _erase_step(lease: Lease[Job], until: float) -> bool:
    job = lease.row
    # A worker that was killed may have done it.
    receipt = ForgetReceipt.objects.filter(call_key=job.pk.hex).first() or object_forget(
        kind="chat",
        object_id=UUID(job.params["chat_id"]),
        dependencies=build_forget_dependencies(),
        actor=Actor(job.actor_kind, job.actor_name),
        call_key=job.pk.hex,
    )
    lease.renew(done=1, total=1, result={"receipt_id": str(receipt.receipt_id)})
    return True


_STEPS: dict[str, Step] = {
    JobKind.IMPORT: _import_step,
    JobKind.EXPORT: _export_step,
    JobKind.REEMBED: _reembed_step,
    JobKind.ERASE: _erase_step,
}
