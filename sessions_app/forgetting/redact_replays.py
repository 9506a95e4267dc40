"""Redact the texts in turns and their replays, and find the answers that had them in reach.

The trials of these answers are deleted: they are throwaways.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memoryproject.foundation.retrieval.fragments import MARK
from sessions_app.conversations.facade import ChangeKind
from sessions_app.forgetting.deletion_plan import BESIDE
from sessions_app.forgetting.sweep import ROWS_AT_ONCE, Sweep
from sessions_app.models import AnswerTrial, Turn, TurnReplay
from sessions_app.models.turns import WAITING_STATES

# The fields of a turn and its replay that hold texts.
TURN_TEXTS = ("context", "error", "unstored_text", "unstored_reply")

REPLAY_TEXTS = ("prompt", "recalled", "shown", "left_out")

TRIAL_TEXTS = ("system_text", "text", "recalled", "error")


def replays_redact(sweep: Sweep, chat_ids: Collection[UUID], since: datetime) -> set[UUID]:
    """Redact the replays of turns; return the affected answers.

    They are the answers of redacted turns, and those that had any of the objects in reach.
    """
    turns = Turn.objects.filter(chat_id__in=list(chat_ids)).filter(
        # An answer may be made long after its turn began.
        Q(created_at__gte=since) | Q(finished_at__gte=since) | Q(state__in=WAITING_STATES)
    )
    answers, of_turns = set(), set()
    fields = [*TURN_TEXTS, *(f"replay__{name}" for name in REPLAY_TEXTS)]
    found = turns.select_related("replay").only("id", "reply", *fields)
    for turn in found.iterator(ROWS_AT_ONCE):
        replay = TurnReplay.of(turn)
        in_reach = _was_in_reach(sweep, replay)
        if in_reach:
            of_turns.add(turn.pk)
            if turn.reply_id is not None:
                sweep.reached.add(turn.reply_id)
        if _redact(sweep, turn, replay, in_reach=in_reach):
            sweep.recorder.record(ChangeKind.REPLAY, turn.pk)
            sweep.count_once(Turn, turn.pk)
            of_turns.add(turn.pk)
            if turn.reply_id is not None:
                answers.add(turn.reply_id)
    _trials_delete(sweep, chat_ids, since=since, of_turns=of_turns)
    return answers | sweep.reached


def _was_in_reach(sweep: Sweep, replay: TurnReplay) -> bool:
    """Return whether the turn had any of the objects in reach.

    That is: one was recalled for it, was next to a recalled message, is on the list that its answer
    shows, or is a message whose picture the model saw.
    """
    named = {str(entry.get("id")) for entry in replay.recalled}
    named |= {
        str(entry[name].get("message_id"))
        for entry in replay.recalled
        for name in BESIDE
        if name in entry
    }
    named |= {key for entry in replay.prompt for key in entry.get("pictures", ())}
    return not sweep.ids.isdisjoint(named | set(replay.shown))


def _redact(sweep: Sweep, turn: Turn, replay: TurnReplay, *, in_reach: bool) -> bool:
    """Redact a turn and its replay; return whether there was anything to redact."""

    def cleaned(value: Any) -> Any:
        clean = sweep.texts.cleaned(value)
        return sweep.words.cleaned(clean) if in_reach and sweep.words else clean

    kept = {name: getattr(turn, name) for name in TURN_TEXTS}
    clean = {name: cleaned(value) for name, value in kept.items()}
    kept_replay = {name: getattr(replay, name) for name in REPLAY_TEXTS}
    clean_replay = {name: cleaned(value) for name, value in kept_replay.items()}
    clean_replay["recalled"] = [_redacted(sweep.ids, each) for each in clean_replay["recalled"]]
    clean_replay["prompt"] = [_unseen(sweep.ids, each) for each in clean_replay["prompt"]]
    if clean != kept:
        Turn.objects.filter(pk=turn.pk).update(**clean)
    if clean_replay != kept_replay:
        TurnReplay.objects.filter(pk=turn.pk).update(**clean_replay)
    return (clean, clean_replay) != (kept, kept_replay)


def _unseen(ids: Collection[str], entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of a prompt without the pictures of messages that go."""
    if "pictures" not in entry:
        return entry
    return {**entry, "pictures": [key for key in entry["pictures"] if key not in ids]}


def _redacted(ids: Collection[str], entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of the recalled texts without those of the objects that go."""
    if entry.get("id") in ids:
        entry = {**entry, "content": MARK}
    for name in BESIDE:
        if name in entry and entry[name].get("message_id") in ids:
            entry = {**entry, name: {**entry[name], "content": MARK}}
    return entry


def _trials_delete(
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
    if any(_names_any(sweep.ids, entry) for entry in trial.recalled if isinstance(entry, dict)):
        return True
    values: list[Any] = [getattr(trial, name) for name in TRIAL_TEXTS]
    return bool(sweep.texts.cleaned(values) != values)


def _names_any(ids: Collection[str], entry: dict[str, Any]) -> bool:
    beside = [entry[name].get("message_id") for name in BESIDE if name in entry]
    named = {str(each) for each in (entry.get("id"), entry.get("session_id"), *beside)}
    return not named.isdisjoint(ids)
