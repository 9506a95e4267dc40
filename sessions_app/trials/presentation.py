"""The page on which staff try an answer again and compare the results. Nothing is sent."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _, ngettext

from memories_app.facts.text_diff import SAME, Piece, word_diff
from memoryproject.foundation.admin_kit.display import small_cost_shown
from memoryproject.foundation.admin_kit.staff_pages import is_live, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_read_record
from memoryproject.foundation.errors.stored_errors import translate_error
from sessions_app.limits.dependencies import build_usage_limits, is_owners
from sessions_app.models import AnswerTrial, Turn, TurnReplay
from sessions_app.models.trials import TrialMemories, TrialPrompt, TrialState
from sessions_app.trials import given_texts, run_trial
from sessions_app.trials.dependencies import trial_ask, trial_models
from sessions_app.turns import presentation as answers
from sessions_app.turns.facade import pictures_gone, pictures_named

PAGE = "admin/sessions_app/turn/trials.html"
NAME = "sessions_app_turn_trials"
# A trial asks the model again, as a retry does.
RIGHTS = ("sessions_app.view_turn", "sessions_app.rerun_turn")
SEE, ADD = "memories_app.view_memory", "memories_app.add_memory"


def trials_page(request: HttpRequest, turn_id: int) -> HttpResponse:
    """Show the answer and its trials side by side on GET; ask for a trial on POST.

    To the page's own refreshing, only whether a trial is being made.
    """
    rights_required(request, *RIGHTS)
    turns = Turn.objects.select_related("chat", "session", "message", "reply", "replay")
    turn = get_object_or_404(turns, pk=turn_id)
    if request.method == "POST":
        return _start(request, turn)
    if is_live(request):
        return JsonResponse({"open": turn.trials.filter(state=TrialState.WAITING).exists()})
    return _page(request, turn)


def _start(request: HttpRequest, turn: Turn) -> HttpResponse:
    trial_id, wanted = wanted_posted(request)
    if not request.user.has_perm(SEE):
        # Else a posted id would show a memory that the form didn't offer.
        wanted = with_recalled_only(wanted, turn)
    try:
        trial_ask(request, turn, wanted, trial_id=trial_id)
    except given_texts.TrialBusyError as busy:
        messages.warning(request, translate_error(busy.args[0]))
    except given_texts.TrialRefusedError as refused:
        return _page(request, turn, wanted, translate_error(refused.args[0]))
    except Turn.DoesNotExist as gone:
        raise Http404("It was erased at this moment.") from gone
    return HttpResponseRedirect(reverse(f"admin:{NAME}", args=[turn.pk]))


def _page(
    request: HttpRequest, turn: Turn, typed: run_trial.TrialWanted | None = None, error: str = ""
) -> HttpResponse:
    staff_read_record(request, "turn", turn.pk, chat_id=turn.chat_id, trials=True)
    may_see = request.user.has_perm(SEE)
    context = {
        "original": turn,
        "question": answers.question_of(turn),
        "comparison": comparison_of(turn),
        "form": trial_form(turn, may_see_memories=may_see, typed=typed),
        "error": error,
        "most": run_trial.MAX_TRIALS,
        "may_see_memories": may_see,
        "may_add": request.user.has_perm(ADD),
        "is_owners": is_owners(turn.chat),
    }
    return staff_page(request, PAGE, _("Try again and compare"), context, of=Turn)


# Gather what stands side by side: the answer, and its trials.


# Texts that have less in common are only shown: marks on every word tell nothing.
MIN_ALIKE = 0.25


@dataclass(frozen=True)
class Compared:
    """The differences of a new text from an old one.

    ``unlike``: they have so little in common that the new text stands unmarked.
    """

    pieces: Sequence[Piece]
    unlike: bool = False

    @property
    def is_same(self) -> bool:
        return not self.unlike and all(each.kind == SAME for each in self.pieces)


def compared(old: str, new: str) -> Compared:
    """Return the new text in pieces, with what it adds to the old one and what it lacks."""
    if old.split() == new.split():
        return Compared([Piece(SAME, new)])
    pieces = word_diff(old, new)
    shared = sum(len(each.text) for each in pieces if each.kind == SAME)
    if old and new and 2 * shared < MIN_ALIKE * (len(old) + len(new)):
        return Compared([Piece(SAME, new)], unlike=True)
    return Compared(pieces)


ONLY_HERE, MISSING = "added", "missing"


def comparison_of(turn: Turn) -> dict[str, Any]:
    """Return the columns, the answer first; the number of queries doesn't grow with the trials.

    ``is_open``: a trial is being made.
    """
    trials = list(turn.trials.select_related("user"))
    then = given_texts.entries_then(TurnReplay.of(turn))
    lists = [then, *(_entries(trial) for trial in trials)]
    rows = iter(answers.recalled_rows([entry for entries in lists for entry in entries]))
    shown = [
        [replace(next(rows), place=place) for place, _entry in enumerate(entries, start=1)]
        for entries in lists
    ]
    original = _original(turn, shown[0])
    columns = [
        _trial(trial, number, given, shown[0], original["plain"], _instructions_then(turn))
        for number, (trial, given) in enumerate(zip(trials, shown[1:], strict=True), start=1)
    ]
    is_open = any(trial.state == TrialState.WAITING for trial in trials)
    return {"columns": [original, *columns], "is_open": is_open}


def _original(turn: Turn, given: Sequence[answers.RecalledRow]) -> dict[str, Any]:
    replay = TurnReplay.of(turn)
    answer = answers.answer_of(turn)
    text = answer.text if answer else ""
    return {
        "title": _("The answer"),
        "state": TrialState.DONE,
        "model": replay.model,
        "cost": _cost(replay.model, replay.prompt_tokens, replay.completion_tokens),
        **_facts(replay, text, text, replay.timings.get("model_ms")),
        **_given([(row, "") for row in given]),
    }


def _trial(
    trial: AnswerTrial,
    number: int,
    given: Sequence[answers.RecalledRow],
    then: Sequence[answers.RecalledRow],
    answer: str,
    instructions: str,
) -> dict[str, Any]:
    """Return the column of a trial.

    ``instructions`` is None where they are those of the answer. ``wanted``: the model that was
    asked for, where the server names another.
    """
    before, here = {row.key for row in then}, {row.key for row in given}
    rows = [(row, "" if row.key in before else ONLY_HERE) for row in given]
    is_done = trial.state == TrialState.DONE
    rows += [(row, MISSING) for row in then if is_done and row.key not in here]
    changed = is_done and trial.system_text != instructions
    return {
        "title": _("Trial %(n)d") % {"n": number},
        "state": trial.state,
        "model": trial.answered_by or trial.model,
        "wanted": trial.model if trial.answered_by not in ("", trial.model) else "",
        "cost": _cost(trial.answered_by, trial.prompt_tokens, trial.completion_tokens, trial.model),
        "instructions": compared(instructions, trial.system_text) if changed else None,
        "trial": trial,
        **_facts(trial, answer, trial.text, trial.took_ms),
        **_given(rows),
    }


def _facts(
    record: TurnReplay | AnswerTrial, answer: str, text: str, took: float | None
) -> dict[str, Any]:
    """Return what both have: the text, with its differences from the answer, tokens and time."""
    return {
        "text": compared(answer, text),
        "plain": text,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "took": answers.duration(took) if isinstance(took, int | float) else "",
    }


def _given(rows: Sequence[tuple[answers.RecalledRow, str]]) -> dict[str, Any]:
    """Return the texts that a model was given, or lacked, each with what that changes."""
    words = {ONLY_HERE: _("only here"), MISSING: _("not given here")}
    given = [{"row": row, "change": change, "words": words.get(change, "")} for row, change in rows]
    return {"given": given, "number_given": sum(change != MISSING for _row, change in rows)}


def _entries(trial: AnswerTrial) -> list[dict[str, Any]]:
    return [entry for entry in trial.recalled if isinstance(entry, dict)]


def _instructions_then(turn: Turn) -> str:
    try:
        return given_texts.prompt_apart(TurnReplay.of(turn).prompt).instructions
    except given_texts.TrialRefusedError:
        return ""


def _cost(model: str, prompt: int | None, completion: int | None, wanted: str = "") -> str:
    """Return the cost by today's prices, or "" where there is no price."""
    if prompt is None:
        return ""
    limits = build_usage_limits()
    limits = replace(limits, model=wanted) if wanted else limits
    cost = limits.cost_of(model, prompt, completion or 0)
    return "" if cost is None else small_cost_shown(cost)


# The form that asks for a trial: what it offers, and what was posted.


def trial_form(
    turn: Turn, *, may_see_memories: bool, typed: run_trial.TrialWanted | None
) -> dict[str, Any]:
    """Return the form as it begins, or as it was typed.

    ``refused``: why the answer can't be tried again, in stored form. ``pictures``: what a trial
    wouldn't be shown of the answer's pictures. ``trial_id`` is new with each form, so that a form
    that is sent twice makes one trial.
    """
    models = trial_models()
    wanted = typed or run_trial.TrialWanted(model=next(iter(models), ""))
    try:
        run_trial.trial_check(turn=turn, models=models)
    except given_texts.TrialRefusedError as refused:
        return {"refused": refused.args[0]}
    if not wanted.system_text:
        stored = given_texts.prompt_apart(TurnReplay.of(turn).prompt)
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
        "most": run_trial.MAX_INSTRUCTIONS,
    }


def _unseen(turn: Turn) -> str:
    """Return what a trial wouldn't be shown of the answer's pictures; "" if it sees them all."""
    prompt = TurnReplay.of(turn).prompt
    if not pictures_named(prompt):
        return ""
    if not settings.MODEL_SEES_PICTURES:
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


def wanted_posted(request: HttpRequest) -> tuple[UUID, run_trial.TrialWanted]:
    """Return what was posted. Raises BadRequest for what no form sends."""
    try:
        trial_id = UUID(request.POST.get("trial", ""))
    except ValueError as error:
        raise BadRequest("trial: the id of the form") from error
    ids = request.POST.getlist("text")
    if len(ids) > given_texts.MAX_CHOSEN or any(len(each) > 64 for each in ids):
        raise BadRequest("text: ids of texts")
    return trial_id, run_trial.TrialWanted(
        model=request.POST.get("model", ""),
        memories=request.POST.get("memories", ""),
        instructions=request.POST.get("instructions", ""),
        system_text=request.POST.get("system_text", "").replace("\r\n", "\n"),
        chosen=ids,
    )


def with_recalled_only(wanted: run_trial.TrialWanted, turn: Turn) -> run_trial.TrialWanted:
    """Return what is wanted with those ticks alone that name a text that was recalled."""
    known = {str(entry.get("id")) for entry in TurnReplay.of(turn).recalled}
    return replace(wanted, chosen=[key for key in wanted.chosen if key in known])


def _ticks(
    turn: Turn, typed: run_trial.TrialWanted | None, *, may_see_memories: bool
) -> list[dict[str, Any]]:
    """Return the texts that were recalled, and the nearest memories that weren't used.

    ``note`` says where each comes from.
    """
    replay = TurnReplay.of(turn)
    entries = [
        each for each in replay.recalled if each.get("source") in given_texts.RECALLED_SOURCES
    ]
    given = {str(entry["id"]) for entry in given_texts.entries_then(replay)}
    found = [
        (row, _("recalled then") if row.key in given else _("found no room then"))
        for row in answers.recalled_rows(entries)
        if not row.is_gone
    ]
    if may_see_memories:
        found += [
            (each["row"], each["words"]) for each in answers.near_misses(turn).get("found", ())
        ]
    chosen = set(typed.chosen) if typed else given
    return [{"row": row, "note": note, "ticked": row.key in chosen} for row, note in found]
