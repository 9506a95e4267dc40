"""The webhooks of the Cloud API and of Green API: read the body, verify it, store the events."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from memoryproject.foundation.integrations.whatsapp.cloud.parse import (
    is_signature,
    parse_cloud,
    verify_signature,
)
from memoryproject.foundation.integrations.whatsapp.events import Event
from memoryproject.foundation.integrations.whatsapp.green.parse import parse_green, verify_token
from memoryproject.foundation.process.storage import is_caused_by_full_disk
from memoryproject.foundation.rest_kit.bodies import drain
from sessions_app.inbound.chat_gate import ChatBusyError, ChatGate
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.receive import events_receive
from sessions_app.turns.dependencies import build_storage_notices
from sessions_app.turns.facade import answer_soon

logger = logging.getLogger(__name__)

MAX_BODY_SIZE = 3 * 1024 * 1024
TOO_LARGE = "The body is larger than 3 MB."
# So long a webhook waits for its chat: much longer than an event takes, unless the chat is locked.
BUSY_SECONDS = 2
GATE = ChatGate(BUSY_SECONDS)
UNSIGNED = "X-Hub-Signature-256 is missing or does not match the body."


def body_of(request: HttpRequest) -> bytes | HttpResponse:
    """Return the raw body, or an error response if it is too large or was cut off."""
    try:
        if not request.META.get("CONTENT_LENGTH") and request.META.get("wsgi.input_terminated"):
            # It came in chunks, which Django takes for an empty body.
            body: bytes = request.META["wsgi.input"].read(MAX_BODY_SIZE + 1)
            return body if len(body) <= MAX_BODY_SIZE else refuse(413, TOO_LARGE)
        return request.body
    except RequestDataTooBig:
        drain(request)
        return refuse(413, TOO_LARGE)
    except (UnreadablePostError, OSError):
        return refuse(400, "The body was cut off.")


def read_json(body: bytes) -> dict[str, Any] | HttpResponse:
    """Return the JSON object in the body, or an error response if it isn't one."""
    try:
        payload = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return refuse(400, "The body is not JSON.")
    if not isinstance(payload, dict):
        return refuse(400, "The body is not a JSON object.")
    return payload


def _no_number(word: str) -> float:
    """Reject NaN and Infinity, which are not JSON and which no database stores."""
    raise ValueError(f"{word} is not JSON")


def receive(events: Sequence[Event]) -> HttpResponse:
    """Store the events and answer 200, or 503 if they can't be stored now.

    After a 503 the provider delivers them again.
    """
    notices = build_storage_notices()
    try:
        events_receive(
            received=events,
            rules=build_intake_rules(),
            enqueue=answer_soon,
            gate=GATE,
        )
    except ChatBusyError as error:
        logger.warning("A webhook has to be repeated: %s", error)
        answer = refuse(503, "A chat of this body is busy. Please deliver it again.")
        answer["Retry-After"] = str(BUSY_SECONDS)
        return answer
    except (OperationalError, InterfaceError) as error:
        if is_caused_by_full_disk(error, settings.DATA_DIR):
            logger.critical("The disk is full: a webhook was not stored; it will be repeated.")
            for event in events:
                notices.notify_sender(event)
        else:
            logger.critical(
                "A webhook could not be stored; the provider will repeat it.", exc_info=True
            )
        return refuse(503, "The event could not be stored. Please deliver it again.")
    return HttpResponse(status=200)


def refuse(status: int, detail: str) -> JsonResponse:
    """Return an error response in the API's shape for errors."""
    code = {400: "parse_error", 401: "not_authenticated", 403: "permission_denied"}
    error = {"code": code.get(status, "error"), "detail": detail, "attr": None}
    kind = "validation_error" if status == 400 else "client_error"
    if status >= 500:
        kind = "server_error"
    return JsonResponse({"type": kind, "errors": [error]}, status=status)


@csrf_exempt
@require_http_methods(["GET", "POST"])
def cloud_webhook(request: HttpRequest) -> HttpResponse:
    """Answer Meta's handshake on GET; receive a batch of events on POST.

    The events are signed over the raw body.
    """
    if request.method == "GET":
        return _handshake(request)
    secret = settings.WHATSAPP_CLOUD_APP_SECRET
    header = request.headers.get("X-Hub-Signature-256")
    if not secret or not is_signature(header):
        # The body isn't read: a flood of unsigned posts costs next to nothing.
        return refuse(401, UNSIGNED)
    body = body_of(request)
    if isinstance(body, HttpResponse):
        return body
    if not verify_signature(secret=secret, body=body, header=header):
        return refuse(401, UNSIGNED)
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
    challenge = request.GET.get("hub.challenge", "")
    if not challenge:
        return refuse(400, "hub.challenge is missing.")
    # Meta expects the bare challenge; it is plain text, so that no browser takes it for a page.
    return HttpResponse(challenge, content_type="text/plain")


def _ours(payload: dict[str, Any]) -> list[Any]:
    """Return the events for our number; retries and other apps' numbers come here as well."""
    events = parse_cloud(payload)
    number = settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID
    return [event for event in events if not number or event.number_id in ("", number)]


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
    return receive(_ours_green(payload))


def _ours_green(payload: dict[str, Any]) -> list[Event]:
    """Return the events for our instance; a body that names no instance is kept for staff."""
    events = parse_green(payload)
    instance = settings.GREEN_API_ID_INSTANCE
    return [event for event in events if not instance or event.number_id in ("", instance)]
