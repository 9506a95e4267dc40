"""Staff rate answers, and resolve those that are to be reviewed."""

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import (
    Actor,
    Event,
    audit_record,
    audit_record_many,
)
from memoryproject.foundation.errors.stored_errors import ErrorText
from sessions_app.inbox.needs import BAD, FAILED, UNKNOWN, has_failed, is_seen, is_unknown
from sessions_app.models import AnswerRating, AnswerResolved, Turn
from sessions_app.turns.question_set import question_follow


def answer_rate(
    *, turn_id: int, user: User | None, is_good: bool, reason: str, actor: Actor
) -> AnswerRating:
    """Store a staff member's opinion of an answer, in place of an earlier one.

    ``user`` None: that of a program, which is known by the actor's name. A bad answer is to be
    reviewed until somebody resolves it; a good one is in the question set. Raises
    Turn.DoesNotExist.
    """
    with transaction.atomic():
        turn = Turn.objects.select_for_update(no_key=True).get(pk=turn_id)
        name = user.get_username() if user else actor.name
        rating, _created = AnswerRating.objects.update_or_create(
            turn=turn,
            user=user,
            **({} if user else {"user_name": name}),
            defaults={
                "user_name": name,
                "is_good": is_good,
                "reason": "" if is_good else reason,
                "is_open": not is_good,
                "rated_at": timezone.now(),
            },
        )
        turn_audit("answer.rate", turn, actor, good=is_good, reason=rating.reason)
        question_follow(turn)
    return rating


def rating_remove(*, turn_id: int, user: User, actor: Actor) -> bool:
    """Delete one's own opinion of an answer; return whether there was one.

    Raises Turn.DoesNotExist.
    """
    with transaction.atomic():
        turn = Turn.objects.select_for_update(no_key=True).get(pk=turn_id)
        gone, _rows = AnswerRating.objects.filter(turn=turn, user=user).delete()
        if gone:
            turn_audit("answer.unrate", turn, actor)
            question_follow(turn)
    return bool(gone)


def answers_resolve(
    *, turn_ids: Collection[int], user: User, actor: Actor, **details: object
) -> int:
    """Mark answers as resolved; return how many there were. ``details``: for the audit log.

    A later bad rating or failure opens them again.
    """
    with transaction.atomic():
        found = Turn.objects.select_for_update(no_key=True).filter(pk__in=turn_ids)
        turns = list(found.order_by("pk").only("turn_id", "chat_id"))
        AnswerRating.objects.filter(turn__in=turns, is_open=True).update(is_open=False)
        now = timezone.now()
        AnswerResolved.objects.bulk_create(
            (AnswerResolved(turn=turn, resolved_by=user, resolved_at=now) for turn in turns),
            update_conflicts=True,
            unique_fields=["turn"],
            update_fields=["resolved_by", "resolved_at"],
        )
        audit_record_many(
            events=[
                Event("answer.resolve", actor, "turn", turn.turn_id, "", details, turn.chat_id)
                for turn in turns
            ]
        )
    return len(turns)


def answer_unresolve(*, turn_id: int, user: User, ratings: Collection[int], actor: Actor) -> bool:
    """Undo ``answers_resolve`` of this user, just after it; what a colleague resolved since stays.

    ``ratings``: those that it closed. Returns whether it is undone.
    """
    with transaction.atomic():
        turn = Turn.objects.select_for_update(no_key=True).filter(pk=turn_id).first()
        if not AnswerResolved.objects.filter(turn=turn, resolved_by=user).delete()[0] or not turn:
            return False
        AnswerRating.objects.filter(turn=turn, pk__in=ratings, is_good=False).update(is_open=True)
        turn_audit("answer.unresolve", turn, actor)
    return True


def failures_open() -> QuerySet[Turn]:
    """Return the failed answers that nobody has rated or resolved since they failed."""
    return Turn.objects.filter(has_failed(), ~is_seen())


def review_reasons(turn_id: int) -> Sequence[str]:
    """Return why an answer is to be reviewed: BAD, FAILED, UNKNOWN; empty if it isn't."""
    if AnswerRating.objects.filter(turn=turn_id, is_open=True).exists():
        return [BAD]
    turn = Turn.objects.filter(~is_seen(), pk=turn_id)
    return [
        name
        for name, which in ((FAILED, has_failed()), (UNKNOWN, is_unknown()))
        if turn.filter(which).exists()
    ]


def turn_audit(action: str, turn: Turn, actor: Actor, **details: Any) -> None:
    """Record in the audit log what somebody did to an answer."""
    audit_record(action, actor, "turn", turn.turn_id, **details, chat_id=turn.chat_id)


# Group failed answers by their cause, and retry or resolve a whole group.


# A longer list is grouped in part: its newest answers.
MAX_FAILURES = 1_000
# One click does so many; the page says how many are left.
MAX_AT_ONCE = 200
# Of an error that has no code, the beginning counts.
BEGINNING = 120
# Parameters that belong to the cause; others name a time, a person or a text.
OF_THE_CAUSE = ("status", "kind", "code", "name", "names", "provider")


@dataclass(frozen=True)
class Cause:
    """Failed answers with the same error and model, which nobody has reviewed.

    ``key`` names the cause in addresses. ``error``: that of the newest one. ``ids``: newest first.
    ``first`` and ``last``: when the oldest and the newest of them came in.
    """

    key: str
    error: str
    model: str
    ids: Sequence[int]
    first: datetime
    last: datetime

    @property
    def count(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class GroupResult:
    """The numbers of answers that an action changed and left alone, and of those left to do."""

    done: int
    left_alone: int
    left: int


def causes_of_failures() -> list[Cause]:
    """Return the causes, that of the most answers first; one query."""
    groups: dict[str, list[tuple[int, str, str, datetime]]] = {}
    rows = failures_open().order_by("-pk").values_list("pk", "error", "replay__model", "created_at")
    for pk, error, model, created_at in rows[:MAX_FAILURES]:
        row = (pk, error, model or "", created_at)
        groups.setdefault(_key(error, model or ""), []).append(row)
    causes = [
        Cause(
            key=key,
            error=group[0][1],
            model=group[0][2],
            ids=[pk for pk, _error, _model, _at in group],
            first=group[-1][3],
            last=group[0][3],
        )
        for key, group in groups.items()
    ]
    return sorted(causes, key=lambda cause: (-cause.count, -cause.ids[0]))


def group_act(
    *, key: str, until: int, act: Callable[[int], bool], most: int = MAX_AT_ONCE
) -> GroupResult:
    """Call ``act`` with the id of each answer of a cause, the oldest first, until ``most`` changed.

    ``until``: the newest answer that staff had before them; one that failed since is left alone.
    ``act`` returns whether it changed anything. What it leaves alone doesn't count: else old
    answers that can't be retried any more would keep the others from their turn.
    """
    causes = {cause.key: cause for cause in causes_of_failures()}
    ids = sorted(pk for pk in causes[key].ids if pk <= until) if key in causes else []
    done = tried = 0
    for pk in ids:
        if done == most:
            break
        tried += 1
        done += act(pk)
    return GroupResult(done, tried - done, len(ids) - tried)


def _key(error: str, model: str) -> str:
    if isinstance(error, ErrorText):
        params = {name: error.params[name] for name in OF_THE_CAUSE if name in error.params}
        cause = [error.code, {name: str(value) for name, value in params.items()}]
    else:
        cause = [error[:BEGINNING]]
    text = json.dumps([*cause, model], sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
