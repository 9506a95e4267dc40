"""The first page, and the health and metrics endpoints."""

from __future__ import annotations

from dataclasses import dataclass
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

from memoryproject.foundation.outside_services.models import services_sick
from memoryproject.staff_site.dashboard.metrics import metrics_registry
from memoryproject.staff_site.readiness import parts
from sessions_app.conversations.facade import profile_current


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
        "steps": first_steps(request.build_absolute_uri("/")),
        "memory_enabled": settings.ENABLE_MEMORY_SYSTEM,
    }
    return render(request, "dashboard/home.html", context)


# The first steps of a new user, and which of them are done, in the reader's language.

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Step:
    """One step. ``commands`` are typed, ``links`` are opened; a link is (title, address)."""

    title: str
    text: str
    done: bool = False
    commands: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


def first_steps(base_url: str) -> list[Step]:
    """Return the steps. ``base_url``: the server's own address, with a slash at its end."""
    return [*_here(), *_outside(base_url)]


def _here() -> list[Step]:
    """Return the steps that need no external service."""
    return [
        Step(
            _("Talk to the assistant"),
            _("In a terminal, in the project's folder. Let it remember something, then ask."),
            commands=(
                '.venv/bin/python manage.py chat --message "/remember TestCorp pays in 30 days"',
                '.venv/bin/python manage.py chat --message "When does TestCorp pay?"',
            ),
        ),
        Step(
            _("Watch WhatsApp conversations"),
            _(
                "Replays recorded messages of both providers against this server; nothing leaves "
                "this machine. Then read them in the admin."
            ),
            commands=("make demo",),
            links=((_("Conversations"), "/admin/sessions_app/chat/"),),
        ),
        Step(
            _("Tell it who it is"),
            _("Name, persona, business facts, opening hours and languages go into every prompt."),
            links=((_("The assistant's profile"), "/admin/sessions_app/assistantprofile/"),),
        ),
        Step(
            _("Name the owner"),
            _(
                "His WhatsApp id, such as 972501234567@c.us. Without it everyone is a client. "
                "Put it into .env as GODFATHER_PHONE and start again."
            ),
            done=bool(settings.GODFATHER_PHONE),
        ),
    ]


def _outside(base_url: str) -> list[Step]:
    return [
        Step(
            _("Connect a language model"),
            _(
                "CHAT_MODEL=openai with OPENAI_API_KEY, or any compatible server by "
                "OPENAI_BASE_URL. Until then the assistant answers from memory alone."
            ),
            done=settings.CHAT_MODEL == "openai",
        ),
        Step(
            _("Connect WhatsApp"),
            _(
                "Set the provider's keys in .env (see docs/whatsapp.md) and give it the webhook's "
                "address. It must be reachable by HTTPS from outside."
            ),
            done=_reaches_whatsapp(),
            links=(
                (f"{base_url}webhooks/whatsapp/cloud/", ""),
                (f"{base_url}webhooks/whatsapp/green/", ""),
            ),
        ),
        Step(
            _("Use it from your own program"),
            _("A token, shown once, opens the REST API."),
            commands=(".venv/bin/python manage.py create_api_token my-integration",),
            links=((_("The API, with examples"), "/api/docs/"),),
        ),
    ]


def _reaches_whatsapp() -> bool:
    """Return whether a configured provider is not one of the demo's stand-ins."""
    cloud = settings.WHATSAPP_CLOUD_ACCESS_TOKEN and settings.WHATSAPP_CLOUD_API_URL
    green = settings.GREEN_API_TOKEN and settings.GREEN_API_URL
    hosts = [urlsplit(url).hostname for url in (cloud, green) if url]
    return any(host not in LOOPBACK for host in hosts)
