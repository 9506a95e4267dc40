"""The queue of background jobs: waiting, running and failed jobs, and what they are called."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext
from django_q.models import Failure, OrmQ, Schedule, Success, Task
from django_q.signing import SignedPackage

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.tables import read_table
from memoryproject.staff_site import server_state
from sessions_app.models import Chat, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.schedules import PLANNED
from sessions_app.turns.facade import answer_soon, heartbeats

_WORDS = read_table(__file__, "job_words.yaml")

FRAME = re.compile(
    r'File "[^"]*?((?:memoryproject|sessions_app|memories_app|cards_app)/[\w/]+\.py)", line (\d+)'
)
CLASS_NAME = re.compile(r"[A-Za-z_]\w{0,80}")
NO_FUNCTION = re.compile(r"Function [\w.]+ is not defined")


@dataclass(frozen=True)
class Fault:
    """An error.

    ``text``: in words. ``name``: the kind of error. ``place``: the last line of our code in the
    traceback, such as sessions_app/tasks.py:42.
    """

    text: str
    name: str
    place: str


def kind_of(function: str) -> str:
    """Return what a job does, in words; the function's name if it has no description."""
    return str(_WORDS["jobs"].get(function, function))


def fault_of(result: object) -> Fault:
    """Return the fault from django-q2's result of a failed job: the error's text and traceback."""
    text = result if isinstance(result, str) else ""
    trace = text.rpartition("Traceback (most recent call last):")[2]
    if not trace or trace == text:
        return Fault(words_for(""), "", "")
    name = _class_of(trace)
    frames = FRAME.findall(trace)
    place = f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
    words = _("There is no such job in this version.") if NO_FUNCTION.search(trace) else ""
    return Fault(words or words_for(name), name, place)


def _class_of(trace: str) -> str:
    """Return the error's class: from the first line after the frames that isn't indented."""
    for line in trace.splitlines()[1:]:
        if line and not line[0].isspace():
            name = line.partition(":")[0].strip().rpartition(".")[2]
            return name if CLASS_NAME.fullmatch(name) else ""
    return ""


def words_for(name: str) -> str:
    """Return the meaning of a kind of error."""
    if name in _WORDS["errors"]:
        return str(_WORDS["errors"][name])
    return _("A fault in the program.") if name else _("It is not known why.")


# Replies that weren't delivered. The texts of conversations are on pages where reading is audited.


STUCK = "stuck"
STUCK_AFTER = timedelta(minutes=5)
ENDED = (TurnState.FAILED, TurnState.UNCONFIRMED, TurnState.MISSED)
OPEN = (*WAITING_STATES, TurnState.SENDING)
TURN_KINDS = (str(TurnState.FAILED), str(TurnState.UNCONFIRMED), str(TurnState.MISSED), STUCK)
# The limit up to which a page counts.
MAX_COUNTED = 1_000
FAULT = re.compile(r"([A-Za-z_]\w{0,80}): ")
HTTP = re.compile(r"HTTP (\d{3})")
# Meta's code for a closed window, as it appears in its messages.
WINDOW = "(#131047)"


def turns_of(kind: str) -> QuerySet[Turn]:
    """Return the turns of a kind, newest first; those of all kinds for an empty one."""
    if kind == STUCK:
        which = _stuck(timezone.now())
    elif kind:
        which = Q(state=kind)
    else:
        # By their keys: this way each half uses its own index.
        stuck = Turn.objects.filter(_stuck(timezone.now())).order_by().values_list("pk", flat=True)
        which = Q(state__in=ENDED) | Q(pk__in=list(stuck[:MAX_COUNTED]))
    found = Turn.objects.filter(which).select_related("chat").order_by("-id")
    return found.defer("unstored_text", "unstored_reply")


def _stuck(now: datetime) -> Q:
    """Match turns that began or waited long ago and aren't postponed."""
    old = now - STUCK_AFTER
    put_off = Q(not_before__isnull=True) | Q(not_before__lt=old)
    waits = Q(state__in=WAITING_STATES) | Q(state=TurnState.SENDING)
    return waits & Q(created_at__lt=old) & put_off


def counts() -> dict[str, int]:
    """Return the number of turns of each kind, up to MAX_COUNTED."""
    return {kind: turns_of(kind)[:MAX_COUNTED].count() for kind in TURN_KINDS}


def dead_turn(turn: Turn) -> dict[str, Any]:
    """Return an undelivered reply with its kind of TURN_KINDS, and whether a worker has it now."""
    ended = turn.state in ENDED
    return {
        "turn": turn,
        "kind": turn.state if ended else STUCK,
        "reason": reason_of(turn),
        "held": not ended and turn.is_held(timezone.now()),
    }


def by_chat(turns: list[dict[str, Any]]) -> list[tuple[Chat, list[dict[str, Any]]]]:
    """Group one page's turns by chat. The chat of the newest turn comes first."""
    found: dict[UUID, list[dict[str, Any]]] = {}
    for each in turns:
        found.setdefault(each["turn"].chat_id, []).append(each)
    return [(group[0]["turn"].chat, group) for group in found.values()]


def reason_of(turn: Turn) -> str:
    """Return the reason, without any text of the conversation."""
    if turn.error and turn.state not in (TurnState.MISSED, TurnState.UNCONFIRMED):
        return error_words(turn.error)
    reasons = _WORDS["reasons"]
    return str(reasons[turn.state]) if turn.state in reasons else words_for("")


def error_words(error: str) -> str:
    """Return a turn's error: the provider's HTTP status in words, or the kind of fault."""
    status = HTTP.match(error)
    if WINDOW in error:
        return _("The person has not written for more than 24 hours: WhatsApp allows no answer.")
    if status and status[1] in ("401", "403"):
        text = _("The provider did not accept our credentials (HTTP %(status)s).")
        return text % {"status": status[1]}
    if status:
        return _("The provider refused the answer (HTTP %(status)s).") % {"status": status[1]}
    if error.startswith("the provider can't be reached"):
        return _("The provider could not be reached.")
    if error.startswith("The disk is full"):
        return _("The disk is full.")
    fault = FAULT.match(error)
    return words_for(fault[1]) if fault else _("The answer could not be sent.")


# The queue of background jobs: waiting, running and failed jobs, workers and schedules.


# Each job is unpacked to see its kind. Of a longer queue only the oldest jobs are read.
MAX_UNPACKED = 200
MAX_FINISHED = 20


@dataclass(frozen=True)
class Kind:
    """Jobs of one kind; ``oldest``: the time at which the first of them was enqueued."""

    name: str
    count: int
    oldest: datetime


def queue_state() -> dict[str, Any]:
    """Return the queue's state for the pages.

    ``depth``: the number of waiting jobs, None if the broker can't be reached; it never raises and
    never waits long. ``waiting`` and ``running`` are by kind, and empty with Redis, which doesn't
    report them; ``unpacked``: the number of waiting jobs that were read. ``answering``: the
    programs that answer. ``clusters``: the groups of worker processes, each with its state in
    words, and whether it takes jobs. ``stalled``: one of the two programs doesn't run.
    """
    now = timezone.now()
    try:
        depth: int | None = server_state.queue_depth()
        there = sorted(server_state.clusters(), key=lambda stat: stat.host)
    except server_state.BrokerGoneError:
        depth, there = None, []
    jobs = OrmQ.objects.none() if server_state.is_redis() else OrmQ.objects.order_by("id")
    # A job's lock is the time at which it was enqueued, until a worker takes it: then it is the
    # time until which nobody else may.
    queued, taken = jobs.filter(lock__lte=now), jobs.filter(lock__gt=now)
    waiting = [_unpacked(row.payload, row.lock or now) for row in queued[:MAX_UNPACKED]]
    running = [_unpacked(row.payload, now) for row in taken[:MAX_UNPACKED]]
    answering = heartbeats(now)
    return {
        "depth": depth,
        "is_redis": server_state.is_redis(),
        "waiting": _by_kind(waiting),
        "running": _by_kind(running),
        "unpacked": len(waiting),
        "oldest": min((since for _kind, since in waiting), default=None),
        "answering": answering,
        "clusters": [
            (
                stat,
                str(_WORDS["workers"].get(state := server_state.state_of(stat), state)),
                server_state.takes_jobs(stat),
            )
            for stat in there
        ],
        "stalled": not answering or not any(map(server_state.takes_jobs, there)),
        "finished": _finished(),
    }


def _unpacked(payload: str, since: datetime) -> tuple[str, datetime]:
    try:
        job = SignedPackage.loads(payload)
    except Exception:
        return "", since
    return str(job.get("func", "")), job.get("started") or since


def _by_kind(jobs: list[tuple[str, datetime]]) -> list[Kind]:
    found: dict[str, list[datetime]] = {}
    for function, since in jobs:
        found.setdefault(function, []).append(since)
    kinds = [Kind(kind_of(name), len(times), min(times)) for name, times in found.items()]
    return sorted(kinds, key=lambda kind: (kind.oldest, kind.name))


def _finished() -> list[Kind]:
    """Return the recently finished jobs by kind.

    The schedule *Drop finished jobs* keeps the newest.
    """
    counted = (
        Success.objects.order_by()
        .values_list("func")
        .annotate(Count("id"))
        .order_by("-id__count", "func")[:MAX_FINISHED]
    )
    newest = dict(
        Success.objects.order_by("func", "-stopped").distinct("func").values_list("func", "stopped")
    )
    return [Kind(kind_of(name), count, newest[name]) for name, count in counted if name in newest]


# Scheduled jobs: what each schedule does, when it ran, and whether it is late.


def schedules_shown() -> dict[str, Any]:
    """Return all schedules, and the names of planned ones that aren't installed."""
    now = timezone.now()
    found = list(Schedule.objects.order_by("name", "id"))
    wanted = [schedule.task for schedule in found if schedule.task]
    tasks = Task.objects.filter(pk__in=wanted).defer("args", "kwargs")
    jobs = {task.id: task for task in tasks}
    names = {schedule.name for schedule in found}
    return {
        "rows": [_row(schedule, jobs.get(schedule.task), now) for schedule in found],
        "missing": [planned.name for planned in PLANNED if planned.name not in names],
    }


def _row(schedule: Schedule, job: Task | None, now: datetime) -> dict[str, Any]:
    """Return a schedule with the record of its last job, if kept, and how that failed."""
    due = schedule.next_run if schedule.repeats != 0 else None
    return {
        "schedule": schedule,
        "does": kind_of(schedule.func),
        "every": _every(schedule),
        # Records are kept of the last few hundred successful jobs only.
        "job": job,
        "fault": fault_of(job.result) if job and not job.success else None,
        "late": due is not None and now - due > server_state.LATE,
    }


def _every(schedule: Schedule) -> str:
    if schedule.schedule_type != Schedule.MINUTES:
        return str(schedule.get_schedule_type_display())
    minutes = schedule.minutes or 1
    if minutes % (24 * 60) == 0:
        days = minutes // (24 * 60)
        return ngettext("each day", "every %(n)d days", days) % {"n": days}
    if minutes % 60 == 0:
        hours = minutes // 60
        return ngettext("each hour", "every %(n)d hours", hours) % {"n": hours}
    return ngettext("each minute", "every %(n)d minutes", minutes) % {"n": minutes}


# Staff actions on background jobs: retry or remove a failed job, run a schedule now.


@transaction.atomic
def job_retry(*, key: str, actor: Actor) -> bool:
    """Put a failed job back into the queue. Return False if somebody did so already.

    Raises BrokerGoneError; then the job is still among the failed ones.
    """
    task = _take_and_record(action="job.retry", key=key, actor=actor)
    if task is None:
        return False
    options = {"hook": task.hook, "group": task.group, "task_name": task.name}
    given = {name: value for name, value in options.items() if value}
    server_state.enqueue(task.func, *(task.args or ()), q_options=given, **(task.kwargs or {}))
    return True


@transaction.atomic
def job_drop(*, key: str, actor: Actor) -> bool:
    """Remove a failed job without running it again. Return False if it is gone already."""
    return _take_and_record(action="job.drop", key=key, actor=actor) is not None


def _take_and_record(*, action: str, key: str, actor: Actor) -> Task | None:
    """Remove a job from the failed ones; None if somebody was faster."""
    # The request that deletes the row enqueues the job: a second click doesn't run it twice.
    task = Failure.objects.select_for_update().filter(pk=key).first()
    if task is None:
        return None
    Failure.objects.filter(pk=key).delete()
    details = {"task": task.func}
    audit_record(action, actor, "job", key, **details)
    return task


def schedule_run(*, schedule_id: int, actor: Actor) -> Schedule | None:
    """Enqueue a schedule's job now; its next run stays as planned.

    Returns None if there is no such schedule. Raises BrokerGoneError.
    """
    with transaction.atomic():
        schedule = Schedule.objects.select_for_update().filter(pk=schedule_id).first()
        if schedule is None:
            return None
        audit_record(
            "schedule.run", actor, "schedule", schedule.name or schedule.pk, task=schedule.func
        )
        group = {"group": schedule.name or str(schedule.pk)}
        task_id = server_state.enqueue(schedule.func, q_options=group)
        # The job's id is known only now. The row is already locked by us, so this doesn't wait.
        Schedule.objects.filter(pk=schedule.pk).update(task=task_id)
    return schedule


# Staff actions on a turn that no worker processes. Failed turns have their own page.


def turn_take_up(*, turn: Turn, actor: Actor) -> bool:
    """Let a stuck turn be answered. Return False if it is over or a worker has it."""
    if turn.state not in OPEN or turn.is_held(timezone.now()):
        return False
    # The queue comes last, as in queue_actions: an action that can't be recorded isn't done.
    with transaction.atomic():
        audit_record(
            "turn.take_up", actor, "turn", turn.turn_id, state=turn.state, chat_id=turn.chat_id
        )
        answer_soon(turn.chat_id)
    return True
