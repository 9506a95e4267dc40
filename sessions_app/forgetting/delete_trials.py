"""Delete the trials of answers that hold what is forgotten: they are throwaways."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from sessions_app.conversations.facade import ChangeKind
from sessions_app.forgetting.deletion_plan import BESIDE
from sessions_app.forgetting.sweep import ROWS_AT_ONCE, Sweep
from sessions_app.models import AnswerTrial

TRIAL_TEXTS = ("system_text", "text", "recalled", "error")


def trials_delete(
    sweep: Sweep, chat_ids: Collection[UUID], *, since: datetime, of_turns: Collection[int]
) -> None:
    """Delete the trials that hold the texts or were given the objects, and those of these turns.

    ``of_turns``: the turns whose own replays held something of it. A trial may be younger than
    what is forgotten though its answer is older.
    """
    trials = AnswerTrial.objects.filter(turn__chat_id__in=list(chat_ids)).filter(
        Q(created_at__gte=since) | Q(turn__in=list(of_turns))
    )
    gone = [
        (trial.pk, trial.turn_id)
        for trial in trials.only("turn_id", *TRIAL_TEXTS).iterator(ROWS_AT_ONCE)
        if trial.turn_id in of_turns or _tells(sweep, trial)
    ]
    for key, turn_id in gone:
        sweep.recorder.record(ChangeKind.REPLAY, turn_id)
        sweep.count_once(AnswerTrial, key)
    AnswerTrial.objects.filter(pk__in=[key for key, _turn in gone]).delete()


def _tells(sweep: Sweep, trial: AnswerTrial) -> bool:
    if any(_names(sweep.ids, entry) for entry in trial.recalled if isinstance(entry, dict)):
        return True
    values: list[Any] = [getattr(trial, name) for name in TRIAL_TEXTS]
    return bool(sweep.texts.cleaned(values) != values)


def _names(ids: Collection[str], entry: dict[str, Any]) -> bool:
    beside = [entry[name].get("message_id") for name in BESIDE if name in entry]
    named = {str(each) for each in (entry.get("id"), entry.get("session_id"), *beside)}
    return not named.isdisjoint(ids)
