"""The first page, and the health and metrics endpoints."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client.exposition import choose_encoder

from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.outside_services.models import services_sick
from memoryproject.staff_site.dashboard.metrics import metrics_registry
from memoryproject.staff_site.server_state import parts
from sessions_app.conversations.facade import profile_current

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@csrf_exempt
@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Respond that the web server runs."""
    return JsonResponse({"status": "ok"})


@csrf_exempt
@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 if everything is up, else 503 with the parts that aren't.

    Outside services that don't answer are named. The server is ready without them.
    """
    found = parts()
    ready = all(part.ready for part in found)
    body = {
        "status": "ready" if ready else "not ready",
        "parts": {part.name: "ready" if part.ready else part.hint for part in found},
        "services": _services(),
    }
    return JsonResponse(body, status=200 if ready else 503)


def _services() -> dict[str, str]:
    """Return the sick services by name, with the time since which they don't answer."""
    try:
        sick = services_sick()
    except DatabaseError:
        return {}
    return {
        each.name: f"not answering since {each.sick_since or each.changed_at:%Y-%m-%dT%H:%M:%SZ}"
        for each in sick
    }


@csrf_exempt
@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics in the format that Prometheus requests."""
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(metrics_registry()), content_type=content_type)


@require_safe
@never_cache
def home(request: HttpRequest) -> HttpResponse:
    """Show what the server is, whether it runs, and the next steps."""
    found = parts()
    try:
        name = profile_current().name
    except DatabaseError:
        name = _("The assistant")
    context = {
        "assistant": name,
        "parts": found,
        "ready": all(part.ready for part in found),
        "memory_enabled": settings.ENABLE_MEMORY_SYSTEM,
        "webhooks": [
            request.build_absolute_uri(f"/webhooks/whatsapp/{name}/") for name in PROVIDERS
        ],
        "has_owner": bool(settings.GODFATHER_PHONE),
        "has_model": settings.CHAT_MODEL == "openai",
        "has_whatsapp": _reaches_whatsapp(),
    }
    return render(request, "dashboard/home.html", context)


def _reaches_whatsapp() -> bool:
    """Return whether a configured provider is not one of the demo's stand-ins."""
    return any(
        urlsplit(url).hostname not in LOOPBACK
        for record in PROVIDERS.values()
        if getattr(settings, record.key_setting) and (url := getattr(settings, record.url_setting))
    )
