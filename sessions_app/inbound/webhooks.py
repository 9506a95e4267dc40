"""The webhooks of the providers: read the body, verify it, store the events."""

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from memoryproject.foundation.integrations.whatsapp.base import ProviderRecord, WebhookRefusedError
from memoryproject.foundation.integrations.whatsapp.events import Event, Notice
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS, own_numbers
from memoryproject.foundation.process.storage import is_caused_by_full_disk
from memoryproject.foundation.rest_kit.bodies import drain
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.receive import FOREIGN, ChatBusyError, events_receive, handshake_note
from sessions_app.turns.dependencies import build_storage_notices
from sessions_app.turns.facade import answer_soon

logger = logging.getLogger(__name__)

MAX_BODY_SIZE = 3 * 1024 * 1024
TOO_LARGE = "The body is larger than 3 MB."
# So long a webhook waits for its chat: much longer than an event takes, unless the chat is locked.
BUSY_SECONDS = 2


def body_of(request: HttpRequest) -> bytes:
    """Return the raw body. Raises WebhookRefusedError if it is too large or was cut off."""
    try:
        if not request.META.get("CONTENT_LENGTH") and request.META.get("wsgi.input_terminated"):
            # It came in chunks, which Django takes for an empty body.
            body: bytes = request.META["wsgi.input"].read(MAX_BODY_SIZE + 1)
            if len(body) > MAX_BODY_SIZE:
                raise WebhookRefusedError(413, TOO_LARGE)
            return body
        return request.body
    except RequestDataTooBig:
        drain(request)
        raise WebhookRefusedError(413, TOO_LARGE) from None
    except (UnreadablePostError, OSError):
        raise WebhookRefusedError(400, "The body was cut off.") from None


def read_json(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body. Raises WebhookRefusedError if it isn't one."""
    try:
        payload = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise WebhookRefusedError(400, "The body is not JSON.") from None
    if not isinstance(payload, dict):
        raise WebhookRefusedError(400, "The body is not a JSON object.")
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
            longest_wait=BUSY_SECONDS,
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


def webhook(provider: ProviderRecord) -> Callable[[HttpRequest], HttpResponse]:
    """Return the view that takes a provider's events, and its handshake if it has one."""

    @csrf_exempt
    @require_http_methods(["GET", "POST"] if provider.handshake else ["POST"])
    def view(request: HttpRequest) -> HttpResponse:
        try:
            if request.method == "GET" and provider.handshake:
                # Plain text, so that no browser takes it for a page.
                answer = provider.handshake(request.GET.dict())
                handshake_note(provider.name)
                return HttpResponse(answer, content_type="text/plain")
            # Without the body: a flood of unsigned posts costs next to nothing.
            provider.verify(request.headers, None)
            body = body_of(request)
            provider.verify(request.headers, body)
            return receive(_ours(provider, read_json(body)))
        except WebhookRefusedError as error:
            return refuse(error.status, str(error))

    return view


def _ours(provider: ProviderRecord, payload: dict[str, Any]) -> list[Event]:
    """Return the events for our numbers, those that name none, and a notice of each other number.

    Other apps' numbers, and those that nobody has entered yet, come here as well. Nothing of their
    events is kept.
    """
    events = provider.parse(payload)
    numbers = own_numbers(provider.name)
    ours = [event for event in events if not numbers or event.number_id in ("", *numbers)]
    foreign = {event.number_id for event in events} - {event.number_id for event in ours}
    return [*ours, *(_foreign_notice(provider, number) for number in sorted(foreign))]


def _foreign_notice(provider: ProviderRecord, number: str) -> Notice:
    """Return the warning of a number that isn't ours; its key makes it one a day."""
    return Notice(
        provider=provider.name,
        number_id=number,
        delivery_key=f"{FOREIGN}{number}:{timezone.now():%Y-%m-%d}",
        level="warning",
        summary=f"A webhook for {number} was ignored: {provider.number_setting} doesn't name it",
    )


_VIEWS = {name: webhook(record) for name, record in PROVIDERS.items()}
# Providers follow no redirect to the address with a slash at its end: their messages would be lost.
urlpatterns = [
    *(path(f"{name}/", view, name=f"webhook-{name}") for name, view in _VIEWS.items()),
    *(path(name, view) for name, view in _VIEWS.items()),
]
