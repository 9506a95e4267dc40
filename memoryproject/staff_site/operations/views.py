"""The pages of operations: each view reads, or does one action and redirects."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.admin import site
from django.core.paginator import Page
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django_q.models import Failure

from memoryproject.foundation.admin_kit import list_csv, staff_pages
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.integrations.whatsapp.registry import provider_states
from memoryproject.staff_site import alerts, navigation, server_state
from memoryproject.staff_site.operations import queue
from memoryproject.staff_site.operations.change_setting import change_setting_page
from memoryproject.staff_site.operations.models_page import models_action, models_page
from memoryproject.staff_site.operations.provider_test import RIGHT, operations_page, provider_page
from memoryproject.staff_site.operations.settings_in_force import settings_in_force
from sessions_app.embedding.facade import texts_waiting
from sessions_app.inbound.facade import unprocessed_count
from sessions_app.media import dependencies, fetch
from sessions_app.models import Turn

PER_PAGE = 50
# The share of the storage of files from which on it is shown as scarce.
SCARCE = 0.9
RERUN = "sessions_app.rerun_turn"
CHATS = ("sessions_app.view_chat", "sessions_app.view_message")


def overview_page(request: HttpRequest) -> HttpResponseBase:
    """Show the state of the server on one page; each figure links to its page."""
    schedules, providers = queue.schedules_shown(), provider_states()
    files, quota = fetch.bytes_used(), dependencies.build_media_quota()
    context = {
        "parts": [*server_state.parts(), *server_state.replica_part()],
        "alerts": alerts.alerts_open(),
        "problems": settings_in_force()["count"],
        "queue": queue.queue_state(),
        "without_vector": texts_waiting(),
        "failed": Failure.objects.count(),
        "late": [row for row in schedules["rows"] if row["late"]],
        "schedules": schedules,
        "dead": queue.counts(),
        "unprocessed": unprocessed_count(),
        "providers": providers,
        "configured": any(each.configured for each in providers),
        "files": files,
        "quota": quota,
        "files_scarce": bool(quota.total_bytes) and files > quota.total_bytes * SCARCE,
        "largest": fetch.largest_chats(),
        "may_chats": request.user.has_perms(CHATS),
        "raw_tables": navigation.raw_tables(site.get_app_list(request)),
    }
    return operations_page(request, "overview", title=_("Operations"), context=context)


def settings_page(request: HttpRequest) -> HttpResponseBase:
    context = {"found": settings_in_force()}
    return operations_page(request, "settings", title=_("Current settings"), context=context)


def queue_page(request: HttpRequest) -> HttpResponseBase:
    failures = Failure.objects.defer("args", "kwargs").order_by("-stopped", "id")
    rows = _page_of(request, failures)
    context = {
        "queue": queue.queue_state(),
        "rows": rows,
        "failed": [(task, queue.kind_of(task.func), queue.fault_of(task.result)) for task in rows],
        "now": timezone.now(),
    }
    return operations_page(request, "queue", title=_("Queue"), context=context)


def job_action(request: HttpRequest, key: str, verb: str) -> HttpResponse:
    """Retry a failed job, or remove it."""
    verbs = {"retry": queue.job_retry, "drop": queue.job_drop}
    if verb not in verbs or not key.isalnum():
        raise Http404
    if not verbs[verb](key=key, actor=staff_actor(request)):
        messages.warning(request, _("This job is gone: somebody was faster."))
    elif verb == "retry":
        messages.success(request, _("The job is in the queue again."))
    else:
        messages.success(request, _("The failed job was removed."))
    return redirect("admin:operations_queue")


def schedules_page(request: HttpRequest) -> HttpResponseBase:
    context = {"found": queue.schedules_shown(), "now": timezone.now()}
    return operations_page(request, "schedules", title=_("Schedules"), context=context)


def schedule_action(request: HttpRequest, schedule_id: int) -> HttpResponse:
    """Run a schedule's job now."""
    schedule = queue.schedule_run(schedule_id=schedule_id, actor=staff_actor(request))
    if schedule is None:
        raise Http404
    text = _("“%(name)s” is in the queue. Load this page again to see how it went.")
    messages.success(request, text % {"name": schedule.name})
    return redirect("admin:operations_schedules")


def turns_page(request: HttpRequest) -> HttpResponseBase:
    kind = request.GET.get("kind", "")
    if kind not in queue.TURN_KINDS:
        kind = ""
    rows = _page_of(request, queue.turns_of(kind))
    context = {
        "kind": kind,
        "counts": queue.counts(),
        "most": queue.MAX_COUNTED,
        "rows": rows,
        "chats": queue.by_chat([queue.dead_turn(turn) for turn in rows]),
        "may_rerun": request.user.has_perm(RERUN),
        "may_replay": request.user.has_perm("sessions_app.view_turn"),
        "may_chats": request.user.has_perms(CHATS),
        "now": timezone.now(),
    }
    return operations_page(request, "turns", title=_("Unsent answers"), context=context)


def turn_action(request: HttpRequest, turn_id: int) -> HttpResponse:
    """Let a worker process a stuck turn."""
    staff_pages.rights_required(request, RERUN)
    turn = get_object_or_404(Turn, pk=turn_id)
    if queue.turn_take_up(turn=turn, actor=staff_actor(request)):
        messages.success(request, _("A worker takes it up now."))
    else:
        messages.warning(request, _("Nothing was done: this answer is not stuck, or not any more."))
    return redirect("admin:operations_turns")


def _page_of(request: HttpRequest, rows: Any) -> Page[Any]:
    """Return the requested page, or the nearest one for an invalid number."""
    return list_csv.BoundedPaginator(rows, PER_PAGE).get_page(request.GET.get("page"))


# The pages below /admin/operations/, for the admin site.

View = Callable[..., HttpResponseBase]


def _for_operators(view: View, *, tab: str) -> View:
    """Return the view with a 403 for others, and a message on its page where the queue is gone."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        staff_pages.rights_required(request, RIGHT)
        try:
            return view(request, *args, **kwargs)
        except server_state.BrokerGoneError:
            text = _(
                "The queue can't be reached, so nothing was done. See Q_BROKER in the settings."
            )
            messages.error(request, text)
            return redirect(f"admin:operations_{tab}")

    return guarded


def _page(route: str, view: View, methods: str) -> staff_pages.OwnPage:
    guarded = _for_operators(view, tab=route.partition("/")[0])
    return staff_pages.OwnPage(f"operations/{route}", guarded, methods)


OPERATIONS_PAGES = {
    "operations": _page("", overview_page, "GET HEAD"),
    "operations_settings": _page("settings/", settings_page, "GET HEAD"),
    "operations_setting": _page("settings/<str:name>/", change_setting_page, "GET HEAD POST"),
    "operations_queue": _page("queue/", queue_page, "GET HEAD"),
    "operations_job": _page("queue/<str:key>/<str:verb>/", job_action, "POST"),
    "operations_schedules": _page("schedules/", schedules_page, "GET HEAD"),
    "operations_schedule_run": _page("schedules/<int:schedule_id>/run/", schedule_action, "POST"),
    "operations_turns": _page("turns/", turns_page, "GET HEAD"),
    "operations_turn_take_up": _page("turns/<int:turn_id>/take-up/", turn_action, "POST"),
    "operations_models": _page("models/", models_page, "GET HEAD"),
    "operations_models_action": _page("models/<str:verb>/", models_action, "POST"),
    "operations_provider": _page("provider/", provider_page, "GET HEAD POST"),
}
