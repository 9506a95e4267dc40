"""The webhook of Meta's WhatsApp Cloud API."""

from __future__ import annotations

import hmac
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud
from memoryproject.foundation.integrations.whatsapp.cloud.signature import verify_signature
from sessions_app.inbound.webhooks.request import body_of, read_json, receive, refuse


@csrf_exempt
@require_http_methods(["GET", "POST"])
def cloud_webhook(request: HttpRequest) -> HttpResponse:
    """Answer Meta's handshake on GET; receive a batch of events on POST.

    The events are signed over the raw body.
    """
    if request.method == "GET":
        return _handshake(request)
    body = body_of(request)
    if isinstance(body, HttpResponse):
        return body
    header = request.headers.get("X-Hub-Signature-256")
    if not verify_signature(secret=settings.WHATSAPP_CLOUD_APP_SECRET, body=body, header=header):
        return refuse(401, "X-Hub-Signature-256 is missing or does not match the body.")
    payload = read_json(body)
    if isinstance(payload, HttpResponse):
        return payload
    return receive(_ours(payload))


def _handshake(request: HttpRequest) -> HttpResponse:
    expected = settings.WHATSAPP_CLOUD_VERIFY_TOKEN
    given = request.GET.get("hub.verify_token", "")
    known = bool(expected) and hmac.compare_digest(given.encode(), expected.encode())
    if request.GET.get("hub.mode") != "subscribe" or not known:
        return refuse(403, "hub.verify_token is not WHATSAPP_CLOUD_VERIFY_TOKEN.")
    # Meta expects the bare challenge; it is plain text, so that no browser takes it for a page.
    return HttpResponse(request.GET.get("hub.challenge", ""), content_type="text/plain")


def _ours(payload: dict[str, Any]) -> list[Any]:
    """Return the events for our number; retries and other apps' numbers come here as well."""
    events = parse_cloud(payload)
    number = settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID
    return [event for event in events if not number or event.number_id in ("", number)]
