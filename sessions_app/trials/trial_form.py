"""The form that asks for a trial: what it offers, and what was posted."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.core.exceptions import BadRequest
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sessions_app.models import Turn, TurnReplay
from sessions_app.models.trials import TrialMemories, TrialPrompt
from sessions_app.trials.dependencies import sees_pictures, trial_models
from sessions_app.trials.given_texts import (
    MAX_CHOSEN,
    RECALLED_SOURCES,
    TrialRefusedError,
    entries_then,
    prompt_apart,
)
from sessions_app.trials.run_trial import MAX_INSTRUCTIONS, TrialWanted, trial_check
from sessions_app.turns.facade import pictures_gone, pictures_named
from sessions_app.turns.presentation import near_misses, recalled_rows


def trial_form(turn: Turn, *, may_see_memories: bool, typed: TrialWanted | None) -> dict[str, Any]:
    """Return the form as it begins, or as it was typed.

    ``refused``: why the answer can't be tried again, in stored form. ``pictures``: what a trial
    wouldn't be shown of the answer's pictures. ``trial_id`` is new with each form, so that a form
    that is sent twice makes one trial.
    """
    models = trial_models()
    wanted = typed or TrialWanted(model=next(iter(models), ""))
    try:
        trial_check(turn=turn, models=models)
    except TrialRefusedError as refused:
        return {"refused": refused.args[0]}
    if not wanted.system_text:
        stored = prompt_apart(TurnReplay.of(turn).prompt)
        wanted = replace(wanted, system_text=stored.instructions)
    memories = {
        TrialMemories.THEN: _("As recalled then"),
        TrialMemories.NOW: _("As recalled now"),
        TrialMemories.NONE: _("Without memories"),
        TrialMemories.CHOSEN: _("Those that are ticked below"),
    }
    instructions = {
        TrialPrompt.THEN: _("As then"),
        TrialPrompt.NOW: _("By the assistant's profile as it is now"),
        TrialPrompt.EDITED: _("As edited below, for this trial only"),
    }
    return {
        "trial_id": uuid.uuid4(),
        "wanted": wanted,
        "models": models,
        "memories": [(str(value), text) for value, text in memories.items()],
        "instructions": [(str(value), text) for value, text in instructions.items()],
        "ticks": _ticks(turn, typed, may_see_memories=may_see_memories),
        "pictures": _unseen(turn),
        "most": MAX_INSTRUCTIONS,
    }


def _unseen(turn: Turn) -> str:
    """Return what a trial wouldn't be shown of the answer's pictures; "" if it sees them all."""
    prompt = TurnReplay.of(turn).prompt
    if not pictures_named(prompt):
        return ""
    if not sees_pictures():
        return _(
            "Models are shown no pictures now (MODEL_SEES_PICTURES is off), so that a trial "
            "answers without those that the answer saw."
        )
    if not (gone := pictures_gone(prompt)):
        return ""
    text = ngettext(
        "%(n)d picture that the answer saw is no longer kept, so that a trial answers without it.",
        "%(n)d pictures that the answer saw are no longer kept, so that a trial answers without "
        "them.",
        gone,
    )
    return text % {"n": gone}


def wanted_posted(request: HttpRequest) -> tuple[UUID, TrialWanted]:
    """Return what was posted. Raises BadRequest for what no form sends."""
    try:
        trial_id = UUID(request.POST.get("trial", ""))
    except ValueError as error:
        raise BadRequest("trial: the id of the form") from error
    ids = request.POST.getlist("text")
    if len(ids) > MAX_CHOSEN or any(len(each) > 64 for each in ids):
        raise BadRequest("text: ids of texts")
    return trial_id, TrialWanted(
        model=request.POST.get("model", ""),
        memories=request.POST.get("memories", ""),
        instructions=request.POST.get("instructions", ""),
        system_text=request.POST.get("system_text", "").replace("\r\n", "\n"),
        chosen=ids,
    )


def with_recalled_only(wanted: TrialWanted, turn: Turn) -> TrialWanted:
    """Return what is wanted with those ticks alone that name a text that was recalled."""
    known = {str(entry.get("id")) for entry in TurnReplay.of(turn).recalled}
    return replace(wanted, chosen=[key for key in wanted.chosen if key in known])


def _ticks(
    turn: Turn, typed: TrialWanted | None, *, may_see_memories: bool
) -> list[dict[str, Any]]:
    """Return the texts that were recalled, and the nearest memories that weren't used.

    ``note`` says where each comes from.
    """
    replay = TurnReplay.of(turn)
    entries = [each for each in replay.recalled if each.get("source") in RECALLED_SOURCES]
    given = {str(entry["id"]) for entry in entries_then(replay)}
    found = [
        (row, _("recalled then") if row.key in given else _("found no room then"))
        for row in recalled_rows(entries)
        if not row.is_gone
    ]
    if may_see_memories:
        found += [(each["row"], each["words"]) for each in near_misses(turn).get("found", ())]
    chosen = set(typed.chosen) if typed else given
    return [{"row": row, "note": note, "ticked": row.key in chosen} for row, note in found]
