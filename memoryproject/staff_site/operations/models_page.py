"""The page *Models*: what is known of their servers, and the last check of them."""

from django.contrib import messages
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import staff_record
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.integrations.llm.server_traits import Traits, traits_text
from memoryproject.foundation.outside_services.models import (
    OutsideService,
    ServiceName,
    services_try_again,
)
from memoryproject.foundation.process.jobs import enqueue
from memoryproject.staff_site.operations.provider_test import operations_page

MODEL_SERVICES = (ServiceName.CHAT_MODEL, ServiceName.EMBEDDER, ServiceName.TRANSCRIBER)
# Where the report of the last check is kept.
LAST_CHECK = "models-check"
KEPT_SECONDS = 30 * 24 * 3600
JOB = "memoryproject.staff_site.tasks.check_models"


def models_page(request: HttpRequest) -> HttpResponseBase:
    """Show what is known of each server of models, and the last check."""
    services = OutsideService.objects.filter(name__in=MODEL_SERVICES).order_by("name", "target")
    rows = [
        {
            "service": each,
            "error": translate_error(each.error),
            "learned": traits_text(Traits.of(each.learned).record()),
        }
        for each in services
    ]
    context = {"rows": rows, "report": cache.get(LAST_CHECK)}
    return operations_page(request, "models", title=_("Models"), context=context)


def models_action(request: HttpRequest, verb: str) -> HttpResponse:
    """Check the models in the background, or forget what was learned of their servers."""
    if verb not in ("check", "forget"):
        raise Http404
    if verb == "check":
        check_begin(request)
        messages.success(request, _("The models are being checked. Load this page again soon."))
    else:
        services = OutsideService.objects.filter(name__in=MODEL_SERVICES)
        forgotten = services.exclude(learned={}).update(learned={})
        services_try_again([str(name) for name in MODEL_SERVICES])
        staff_record(request, "models.forget_learned", servers=forgotten)
        messages.success(request, _("What was learned is forgotten: it is learned again."))
    return redirect("admin:operations_models")


def check_begin(request: HttpRequest) -> None:
    """Let a worker check the models. What an earlier check found is gone."""
    cache.delete(LAST_CHECK)
    enqueue(JOB, task_name="check models")
    staff_record(request, "models.check")
