"""The page on which staff try an answer again and compare the results. Nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    JsonResponse,
)
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.live import is_live
from memoryproject.foundation.audit.audit_events import audit_record
from memoryproject.foundation.audit.staff import staff_actor
from memoryproject.foundation.errors.translate_error import translate_error
from sessions_app.limits.dependencies import is_owners
from sessions_app.models import Turn
from sessions_app.models.trials import TrialState
from sessions_app.trials.admin.comparison import comparison_of
from sessions_app.trials.admin.trial_form import (
    trial_form,
    wanted_posted,
    with_recalled_only,
)
from sessions_app.trials.dependencies import enqueue_trial, trial_models
from sessions_app.trials.errors import TrialBusyError, TrialRefusedError
from sessions_app.trials.facade import MAX_TRIALS, TrialWanted, trial_start
from sessions_app.turns.presentation import question_of, turn_crumb

PAGE = "admin/sessions_app/turn/trials.html"
NAME = "sessions_app_turn_trials"
# A trial asks the model again, as a retry does.
RIGHTS = ("sessions_app.view_turn", "sessions_app.rerun_turn")
SEE, ADD = "memories_app.view_memory", "memories_app.add_memory"


def trial_paths(wrap: Callable[..., Any]) -> list[Any]:
    """Return the URLs of trials; ``wrap`` is the admin site's admin_view."""
    return [path("<int:turn_id>/trials/", wrap(trials_page), name=NAME)]


def trials_page(request: HttpRequest, turn_id: int) -> HttpResponse:
    """Show the answer and its trials side by side on GET; ask for a trial on POST.

    To the page's own refreshing, only whether a trial is being made.
    """
    if not request.user.has_perms(RIGHTS):
        raise PermissionDenied
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
    turns = Turn.objects.select_related("chat", "session", "message", "reply", "replay")
    turn = turns.filter(pk=turn_id).first()
    if turn is None:
        raise Http404("There is no such turn, or not any more.")
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
        trial_start(
            turn_id=turn.pk,
            trial_id=trial_id,
            wanted=wanted,
            user=cast("User", request.user),
            actor=staff_actor(request),
            models=trial_models(),
            enqueue=enqueue_trial,
            now=timezone.now(),
        )
    except TrialBusyError as busy:
        messages.warning(request, translate_error(busy.args[0]))
    except TrialRefusedError as refused:
        return _page(request, turn, wanted, translate_error(refused.args[0]))
    except Turn.DoesNotExist as gone:
        raise Http404("It was erased at this moment.") from gone
    return HttpResponseRedirect(reverse(f"admin:{NAME}", args=[turn.pk]))


def _page(
    request: HttpRequest, turn: Turn, typed: TrialWanted | None = None, error: str = ""
) -> HttpResponse:
    audit_record(
        action="conversation.read",
        actor=staff_actor(request),
        object_type="turn",
        object_id=turn.pk,
        details={"trials": True},
        chat_id=turn.chat_id,
    )
    may_see = request.user.has_perm(SEE)
    context = {
        **admin.site.each_context(request),
        "title": _("Try again and compare"),
        "opts": Turn._meta,
        "original": turn,
        "crumb": turn_crumb(turn),
        "question": question_of(turn),
        "comparison": comparison_of(turn),
        "form": trial_form(turn, may_see_memories=may_see, typed=typed),
        "error": error,
        "most": MAX_TRIALS,
        "may_see_memories": may_see,
        "may_add": request.user.has_perm(ADD),
        "is_owners": is_owners(turn.chat),
    }
    return TemplateResponse(request, PAGE, context)
