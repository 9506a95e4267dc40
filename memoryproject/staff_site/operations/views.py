"""The pages of operations: each view reads, or does one action and redirects."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.paginator import Page
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django_q.models import Failure

from memoryproject.foundation.admin_kit.list_csv import BoundedPaginator
from memoryproject.foundation.admin_kit.staff_pages import rights_required
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.staff_site.alerts import alerts_open
from memoryproject.staff_site.operations.job_words import (
    MAX_COUNTED,
    TURN_KINDS,
    by_chat,
    counts,
    dead_turn,
    fault_of,
    kind_of,
    turns_of,
)
from memoryproject.staff_site.operations.provider_test import (
    RIGHT,
    operations_page,
    provider_page,
    providers_there,
)
from memoryproject.staff_site.operations.queue import (
    job_drop,
    job_retry,
    queue_state,
    schedule_run,
    schedules_shown,
    turn_take_up,
)
from memoryproject.staff_site.operations.settings_in_force import settings_in_force
from memoryproject.staff_site.server_state import BrokerGoneError, parts
from sessions_app.embedding.facade import texts_waiting
from sessions_app.inbound.facade import unprocessed_count
from sessions_app.media.dependencies import build_media_quota
from sessions_app.media.facade import bytes_used, largest_chats
from sessions_app.models import Turn

PER_PAGE = 50
# The share of the storage of files from which on it is shown as scarce.
SCARCE = 0.9
RERUN = "sessions_app.rerun_turn"
CHATS = ("sessions_app.view_chat", "sessions_app.view_message")


@require_safe
def overview_page(request: HttpRequest) -> HttpResponseBase:
    """Show the state of the server on one page; each figure links to its page."""
    schedules, providers = schedules_shown(), providers_there()
    files, quota = bytes_used(), build_media_quota()
    context = {
        "parts": parts(),
        "alerts": alerts_open(),
        "problems": settings_in_force().count,
        "queue": queue_state(),
        "without_vector": texts_waiting(),
        "failed": Failure.objects.count(),
        "late": [row for row in schedules.rows if row.late],
        "schedules": schedules,
        "dead": counts(),
        "unprocessed": unprocessed_count(),
        "providers": providers,
        "configured": any(each.configured for each in providers),
        "files": files,
        "quota": quota,
        "files_scarce": bool(quota.total_bytes) and files > quota.total_bytes * SCARCE,
        "largest": largest_chats(),
        "may_chats": request.user.has_perms(CHATS),
    }
    return operations_page(request, "overview", title=_("Operations"), context=context)


@require_safe
def settings_page(request: HttpRequest) -> HttpResponseBase:
    context = {"found": settings_in_force()}
    return operations_page(request, "settings", title=_("Current settings"), context=context)


@require_safe
def queue_page(request: HttpRequest) -> HttpResponseBase:
    failures = Failure.objects.defer("args", "kwargs").order_by("-stopped", "id")
    rows = _page_of(request, failures)
    context = {
        "queue": queue_state(),
        "rows": rows,
        "failed": [(task, kind_of(task.func), fault_of(task.result)) for task in rows],
        "now": timezone.now(),
    }
    return operations_page(request, "queue", title=_("Queue"), context=context)


@require_POST
def job_action(request: HttpRequest, key: str, verb: str) -> HttpResponse:
    """Retry a failed job, or remove it."""
    verbs = {"retry": job_retry, "drop": job_drop}
    if verb not in verbs or not key.isalnum():
        raise Http404
    if not verbs[verb](key=key, actor=staff_actor(request)):
        messages.warning(request, _("This job is gone: somebody was faster."))
    elif verb == "retry":
        messages.success(request, _("The job is in the queue again."))
    else:
        messages.success(request, _("The failed job was removed."))
    return redirect("admin:operations_queue")


@require_safe
def schedules_page(request: HttpRequest) -> HttpResponseBase:
    context = {"found": schedules_shown(), "now": timezone.now()}
    return operations_page(request, "schedules", title=_("Schedules"), context=context)


@require_POST
def schedule_action(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Run a schedule's job now."""
    schedule = schedule_run(schedule_id=schedule_id, actor=staff_actor(request))
    if schedule is None:
        raise Http404
    text = _("“%(name)s” is in the queue. Load this page again to see how it went.")
    messages.success(request, text % {"name": schedule.name})
    return redirect("admin:operations_schedules")


@require_safe
def turns_page(request: HttpRequest) -> HttpResponseBase:
    kind = request.GET.get("kind", "")
    if kind not in TURN_KINDS:
        kind = ""
    rows = _page_of(request, turns_of(kind))
    context = {
        "kind": kind,
        "counts": counts(),
        "most": MAX_COUNTED,
        "rows": rows,
        "chats": by_chat([dead_turn(turn) for turn in rows]),
        "may_rerun": request.user.has_perm(RERUN),
        "may_replay": request.user.has_perm("sessions_app.view_turn"),
        "may_chats": request.user.has_perms(CHATS),
        "now": timezone.now(),
    }
    return operations_page(request, "turns", title=_("Unsent answers"), context=context)


@require_POST
def turn_action(request: HttpRequest, turn_id: int) -> HttpResponse:
    """Let a worker process a stuck turn."""
    rights_required(request, RERUN)
    turn = get_object_or_404(Turn, pk=turn_id)
    if turn_take_up(turn=turn, actor=staff_actor(request)):
        messages.success(request, _("A worker takes it up now."))
    else:
        messages.warning(request, _("Nothing was done: this answer is not stuck, or not any more."))
    return redirect("admin:operations_turns")


def _page_of(request: HttpRequest, rows: Any) -> Page[Any]:
    """Return the requested page, or the nearest one for an invalid number."""
    return BoundedPaginator(rows, PER_PAGE).get_page(request.GET.get("page"))


# The URLs below /admin/operations/, for the admin site.

View = Callable[..., HttpResponseBase]

PAGES: tuple[tuple[str, View, str], ...] = (
    ("", overview_page, "operations"),
    ("settings/", settings_page, "operations_settings"),
    ("queue/", queue_page, "operations_queue"),
    ("queue/<str:key>/<str:verb>/", job_action, "operations_job"),
    ("schedules/", schedules_page, "operations_schedules"),
    ("schedules/<int:schedule_id>/run/", schedule_action, "operations_schedule_run"),
    ("turns/", turns_page, "operations_turns"),
    ("turns/<int:turn_id>/take-up/", turn_action, "operations_turn_take_up"),
    ("provider/", provider_page, "operations_provider"),
)


def operations_urls(site: AdminSite) -> list[URLPattern]:
    """Return the URLs, for logged-in staff with the operations permission."""
    return [
        path(
            f"operations/{address}",
            site.admin_view(_for_operators(view, tab=address.partition("/")[0])),
            name=name,
        )
        for address, view, name in PAGES
    ]


def _for_operators(view: View, *, tab: str) -> View:
    """Return the view with a 403 for others, and a message on its page where the queue is gone."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        rights_required(request, RIGHT)
        try:
            return view(request, *args, **kwargs)
        except BrokerGoneError:
            text = _(
                "The queue can't be reached, so nothing was done. See Q_BROKER in the settings."
            )
            messages.error(request, text)
            return redirect(f"admin:operations_{tab}")

    return guarded
