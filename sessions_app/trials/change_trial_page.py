"""Show staff what a change would change, before they save it: what is recalled, and on demand what
a model answers. Nothing is sent, and nothing is stored but the trials of the model."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import UUID

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from memories_app.errors import MemoryOperationError
from memories_app.facts.validation import NewMemory
from memories_app.models import Memory, Visibility
from memories_app.store.change import memory_patch
from memories_app.store.remember import memories_remember
from memoryproject.environment import Environment
from memoryproject.foundation.admin_kit.display import small_cost_shown
from memoryproject.foundation.admin_kit.staff_pages import is_live, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor, staff_read_record
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.text.uuids import uuid_or_none
from memoryproject.settings_table import OWN_SETTINGS
from sessions_app.limits.dependencies import build_usage_limits, is_owners
from sessions_app.models import AssistantProfile, Chat, Turn, TurnReplay
from sessions_app.models.trials import TrialMemories, TrialPrompt
from sessions_app.recall.facade import Hit, hit_record
from sessions_app.trials.dependencies import trial_ask, trial_models
from sessions_app.trials.given_texts import TrialRefusedError, instructions_by, prompt_apart
from sessions_app.trials.run_trial import TrialWanted
from sessions_app.turns.change_trial import ChangeTrial, Difference, change_try, turns_to_try
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.presentation import ADD, CHANGE, CLIENT, answer_of, reason

READS = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.view_turn")
ASKS = "sessions_app.rerun_turn"
PAGE = "admin/sessions_app/turn/change_trial.html"
MODEL = "OPENAI_MODEL"
# The settings that decide what is recalled, with their names among the rules of an answer.
RECALL_SETTINGS = {"RECALL_TOP_K": "top_k", "RECALL_MIN_SIMILARITY": "min_similarity"}
TRIED_SETTINGS = {*RECALL_SETTINGS, MODEL}
# A model is asked for so many of the questions.
MAX_ANSWERS = 10
# How a model is asked with a change.
Wanted: TypeAlias = Callable[[Difference], TrialWanted]
# What a form says of the trial, not of the change.
OF_TRIAL = {"csrfmiddlewaretoken", "ask"}


def change_trial_page(request: HttpRequest) -> HttpResponse:
    """Try the posted ``content``: of ``?memory=``, or as a new memory.

    A new one is tried as everyone's, or with ``for=client`` as that of the client of ``?turn=``.
    """
    rights_required(request, *READS)
    text = request.POST.get("content", "").replace("\r\n", "\n").strip()
    problem, trial, save = "", ChangeTrial(0, []), ""
    try:
        change, chat, save = _change(request, text)
        trial = change_try(
            change, content=text, turns=turns_to_try(chat), dependencies=build_turn_dependencies()
        )
    except (MemoryOperationError, EmbedderError) as error:
        problem = reason(error)
    return _shown(request, trial, _with_recalled, save, problem)


def setting_try(request: HttpRequest, name: str, text: str) -> HttpResponse:
    """Try a text of one of TRIED_SETTINGS: what is recalled, or what the model answers."""
    rights_required(request, *READS)
    if name == MODEL:
        wanted = TrialWanted(text)
        return _shown(request, _same_recall(), lambda _each: wanted, request.path, model=text)
    env = Environment(values={name: text})
    rules = {RECALL_SETTINGS[name]: env.read(name, OWN_SETTINGS[name])}
    trial = change_try(
        lambda _embedder: None,
        content="",
        turns=[] if env.errors else turns_to_try(None),
        dependencies=build_turn_dependencies(),
        changed=rules,
    )
    return _shown(request, trial, _with_recalled, request.path, " ".join(map(str, env.errors)))


def profile_try(request: HttpRequest, profile: AssistantProfile) -> HttpResponse:
    """Try the prompts of an unsaved profile, of which there is one."""
    rights_required(request, *READS)
    dependencies = build_turn_dependencies()

    def wanted(each: Difference) -> TrialWanted:
        stored = prompt_apart(TurnReplay.of(each.turn).prompt)
        text = instructions_by(profile, each.turn, stored, dependencies)
        return TrialWanted(_model(), instructions=TrialPrompt.EDITED, system_text=text)

    save = reverse("admin:sessions_app_assistantprofile_change", args=[1])
    return _shown(request, _same_recall(), wanted, save)


def _same_recall() -> ChangeTrial:
    turns = turns_to_try(None)[:MAX_ANSWERS]
    return ChangeTrial(len(turns), [Difference(turn, (), ()) for turn in turns], recalls=False)


def _model() -> str:
    return next(iter(trial_models()), "")


def _with_recalled(each: Difference) -> TrialWanted:
    given = [hit_record(hit) for hit in each.after]
    return TrialWanted(_model(), memories=TrialMemories.CHANGED, given=given)


def _shown(
    request: HttpRequest,
    trial: ChangeTrial,
    wanted: Wanted,
    save: str,
    problem: str = "",
    model: str = "",
) -> HttpResponse:
    """Show the differences, with the model's answers if ``ask`` names a trial of them.

    ``save``: the address to which the form is posted to make the change. ``model``: the name of
    another than that of the answers.
    """
    ask, compared = uuid_or_none(request.POST.get("ask", "")), trial.differences[:MAX_ANSWERS]
    if ask:
        rights_required(request, ASKS)
    made = {each.turn.pk: _asked(request, ask, each, wanted) for each in compared} if ask else {}
    rows: list[dict[str, Any]] = []
    for each in trial.differences:
        sides = {"before": _rows(each.before, each.after), "after": _rows(each.after, each.before)}
        rows.append({"turn": each.turn, **sides, **made.get(each.turn.pk, {})})
    for chat_id in {each.turn.chat_id for each in trial.differences}:
        staff_read_record(request, "chat", chat_id, chat_id=chat_id)
    model = model or _model()
    typed = [(key, request.POST.getlist(key)) for key in request.POST if key not in OF_TRIAL]
    context = {"trial": trial, "rows": rows, "problem": problem, "save": save, "typed": typed}
    context |= {"asked": ask, "ask": uuid.uuid4(), "count": len(compared)}
    context |= {"model": model, "cost": _cost(compared, model)}
    if is_live(request):
        return TemplateResponse(request, "admin/sessions_app/turn/change_trial_list.html", context)
    return staff_page(request, PAGE, _("What would change"), context, of=Turn)


def _asked(request: HttpRequest, ask: UUID, each: Difference, wanted: Wanted) -> dict[str, Any]:
    """Ask the model for an answer with the change, or return the trial if it was asked before."""
    try:
        trial_id = uuid.uuid5(ask, str(each.turn.pk))
        trial = trial_ask(request, each.turn, wanted(each), trial_id=trial_id)
    except (TrialRefusedError, Turn.DoesNotExist) as refused:
        return {"refused": translate_error(refused.args[0])}
    return {"answer": answer_of(each.turn), "made": trial}


def _cost(compared: Iterable[Difference], model: str) -> str:
    """Return about what the answers cost, by the tokens of those that were sent; "" if unknown."""
    limits, cost = replace(build_usage_limits(), model=model), 0.0
    for then in (TurnReplay.of(each.turn) for each in compared):
        cost += limits.cost_of(model, then.prompt_tokens or 0, then.completion_tokens or 0) or 0
    return small_cost_shown(cost) if cost else ""


def _change(
    request: HttpRequest, text: str
) -> tuple[Callable[[Embedder], object], UUID | None, str]:
    """Return the change that was posted, whose memory it is about, and the address that saves."""
    actor, turn = staff_actor(request), request.GET.get("turn", "")
    if key := uuid_or_none(request.GET.get("memory", "")):
        rights_required(request, CHANGE)
        memory = get_object_or_404(Memory, pk=key)
        changes = {"content": text}
        if request.POST.get("visibility") in Visibility.values:
            changes["visibility"] = request.POST["visibility"]
        return (
            lambda embedder: memory_patch(
                memory_id=memory.pk, changes=changes, actor=actor, embedder=embedder
            ),
            memory.chat_id,
            reverse("admin:memories_app_memory_change", args=[key]),
        )
    rights_required(request, ADD)
    chat, visibility = _audience(request)
    chat_id = chat.pk if chat else None
    new = NewMemory(content=text, visibility=visibility, chat_id=chat_id, source="staff")
    return (
        lambda embedder: memories_remember(memories=[new], embedder=embedder, actor=actor),
        chat_id,
        reverse("admin:sessions_app_turn_teach", args=[int(turn)]) if turn.isdecimal() else "",
    )


def _audience(request: HttpRequest) -> tuple[Chat | None, str]:
    if request.POST.get("for") != CLIENT:
        return None, str(Visibility.PUBLIC)
    turn_id = request.GET.get("turn", "")
    if not turn_id.isdecimal():
        raise BadRequest("turn: the number of an answer")
    chat = get_object_or_404(Turn.objects.select_related("chat"), pk=int(turn_id)).chat
    return chat, str(Visibility.OWNER if is_owners(chat) else Visibility.CHAT)


def _rows(hits: Sequence[Hit], others: Sequence[Hit]) -> list[dict[str, Any]]:
    known = {(hit.id, hit.content) for hit in others}
    return [
        {"hit": hit, "only_here": (hit.id, hit.content) not in known, "score": round(hit.score, 2)}
        for hit in hits
    ]
