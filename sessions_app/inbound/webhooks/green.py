"""The webhook of Green API."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from memoryproject.foundation.integrations.whatsapp.events import Event
from memoryproject.foundation.integrations.whatsapp.green.access import verify_token
from memoryproject.foundation.integrations.whatsapp.green.parse import parse_green
from sessions_app.inbound.webhooks.request import body_of, read_json, receive, refuse


@csrf_exempt
@require_POST
def green_webhook(request: HttpRequest) -> HttpResponse:
    """Receive one event, with the token that was set as the instance's webhookUrlToken."""
    header = request.headers.get("Authorization")
    if not verify_token(expected=settings.GREEN_API_WEBHOOK_TOKEN, header=header):
        return refuse(401, "Authorization is missing or is not GREEN_API_WEBHOOK_TOKEN.")
    body = body_of(request)
    if isinstance(body, HttpResponse):
        return body
    payload = read_json(body)
    if isinstance(payload, HttpResponse):
        return payload
    return receive(_ours(payload))


def _ours(payload: dict[str, Any]) -> list[Event]:
    """Return the events for our instance; a body that names no instance is kept for staff."""
    events = parse_green(payload)
    instance = settings.GREEN_API_ID_INSTANCE
    return [event for event in events if not instance or event.number_id in ("", instance)]
