"""The page of failed answers by cause, with actions on many answers at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from memoryproject.foundation.audit.audit_events import audit_record, staff_actor
from sessions_app.models import Turn
from sessions_app.turns.admin.rating_pages import RATE
from sessions_app.turns.admin.rerun_page import RIGHTS as RERUN
from sessions_app.turns.admin.rerun_page import run_again, say_run_again
from sessions_app.turns.answer_review import (
    MAX_AT_ONCE,
    MAX_FAILURES,
    GroupResult,
    answer_resolve,
    causes_of_failures,
    group_act,
)
from sessions_app.turns.dependencies import enqueue_chat
from sessions_app.turns.held_sends import held_send_now

VIEW = "sessions_app.view_turn"
RETRY, RESOLVE = "retry", "resolve"
PAGE = "admin/sessions_app/turn/failures.html"


def failure_paths(wrap: Callable[..., Any]) -> list[Any]:
    """Return the URLs of failures; ``wrap`` is the admin site's admin_view."""
    return [
        path("failures/", wrap(failures_page), name="sessions_app_turn_failures"),
        path("failures/act/", wrap(failures_act), name="sessions_app_turn_failures_act"),
        path("send-held/", wrap(held_send), name="sessions_app_turn_send_held"),
    ]


@require_safe
def failures_page(request: HttpRequest) -> HttpResponse:
    """Show the causes of the failed answers that nobody has reviewed."""
    if not request.user.has_perm(VIEW):
        raise PermissionDenied
    # An error may quote what a server said of a message.
    audit_record(
        action="conversation.read", actor=staff_actor(request), details={"list": "failures"}
    )
    causes = causes_of_failures()
    context = {
        **admin.site.each_context(request),
        "title": _("Failures by cause"),
        "opts": Turn._meta,
        "causes": causes,
        "is_part": sum(cause.count for cause in causes) == MAX_FAILURES,
        "most": MAX_FAILURES,
        "at_once": MAX_AT_ONCE,
        "may_retry": request.user.has_perms(RERUN),
        "may_resolve": request.user.has_perms([VIEW, RATE]),
    }
    return TemplateResponse(request, PAGE, context)


@require_POST
def failures_act(request: HttpRequest) -> HttpResponse:
    """Retry, or mark as reviewed, the answers of a cause that the page showed."""
    verb = request.POST.get("do", "")
    rights = {RETRY: RERUN, RESOLVE: (VIEW, RATE)}.get(verb)
    if not request.user.has_perms(rights or [VIEW, RATE]):
        raise PermissionDenied
    key, until = request.POST.get("cause", ""), request.POST.get("until", "")
    if rights is None or not (until.isascii() and until.isdecimal() and len(until) < 19):
        raise BadRequest("do: retry or resolve; until: the id of an answer")
    if verb == RETRY:
        _report_retry(
            request, group_act(key=key, until=int(until), act=lambda pk: run_again(request, pk))
        )
    else:
        _report_resolve(
            request, group_act(key=key, until=int(until), act=lambda pk: _resolve(request, pk))
        )
    return redirect("admin:sessions_app_turn_failures")


@require_POST
def held_send(request: HttpRequest) -> HttpResponse:
    """Send now what is held because a provider refused our account."""
    if not request.user.has_perms(RERUN):
        raise PermissionDenied
    sent = held_send_now(actor=staff_actor(request), enqueue=enqueue_chat)
    if sent:
        text = ngettext("%(n)d answer is sent now.", "%(n)d answers are sent now.", sent)
        messages.success(request, text % {"n": sent})
    else:
        messages.info(request, _("No answer is held any more."))
    return redirect("admin:index")


def _resolve(request: HttpRequest, turn_id: int) -> bool:
    user = cast("User", request.user)
    try:
        answer_resolve(turn_id=turn_id, user=user, actor=staff_actor(request))
    except Turn.DoesNotExist:
        return False
    return True


def _report_retry(request: HttpRequest, result: GroupResult) -> None:
    say_run_again(request, again=result.done, left=result.left_alone)
    _report_rest(request, result)


def _report_resolve(request: HttpRequest, result: GroupResult) -> None:
    if result.done:
        text = ngettext(
            "%(n)d answer is marked as reviewed.",
            "%(n)d answers are marked as reviewed.",
            result.done,
        )
        messages.success(request, text % {"n": result.done})
    _report_rest(request, result)


def _report_rest(request: HttpRequest, result: GroupResult) -> None:
    if result.left:
        text = ngettext(
            "%(n)d more answer has this cause: repeat it for the rest.",
            "%(n)d more answers have this cause: repeat it for the rest.",
            result.left,
        )
        messages.warning(request, text % {"n": result.left})
    elif not result.done and not result.left_alone:
        messages.warning(request, _("Nothing was done: a colleague was faster."))
