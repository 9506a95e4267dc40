"""Group failed answers by their cause, and retry or resolve a whole group."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memoryproject.foundation.errors.stored_errors import ErrorText
from sessions_app.turns.answer_review import failures_open

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
