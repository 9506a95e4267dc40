"""Middleware: request ids, and for staff pages language, time zone, uploads, a full disk."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.middleware.locale import LocaleMiddleware
from django.shortcuts import render
from django.template.response import SimpleTemplateResponse
from django.utils import timezone, translation
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _

from memoryproject.foundation.process.log_context import log_context
from memoryproject.foundation.process.storage import STORAGE_FULL, is_caused_by_full_disk
from memoryproject.foundation.process.tracing import (
    METHODS,
    OTHER,
    SERVER_ERROR,
    Kind,
    note_status,
    span,
)
from memoryproject.foundation.replica import each_from_replica, from_replica
from memoryproject.foundation.rest_kit.bodies import may_be_slow

logger = logging.getLogger(__name__)

REQUEST_ID = "X-Request-ID"
TRACEPARENT = "traceparent"
# Asked for every few seconds, by load balancers and Prometheus: they are not traced.
POLLED = frozenset({"/healthz", "/readyz", "/metrics"})
FROM_REPLICA = frozenset(
    {"admin:index", "admin:dashboard_figures", "admin:costs", "admin:global_search"}
)
# What proxies and load balancers send; anything else is replaced.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestIds:
    """Takes the id that a proxy sent, or makes one, and returns it with the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        sent = request.headers.get(REQUEST_ID, "")
        request_id = sent if _REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
        with log_context(request=request_id):
            response = self._traced(request)
        response[REQUEST_ID] = request_id
        return response

    def _traced(self, request: HttpRequest) -> HttpResponseBase:
        """Respond within a span, which is named after the route: the path may hold ids of people.

        A caller's trace is continued only behind a proxy of ours: anybody could send the header.
        """
        if request.path in POLLED:
            return self.get_response(request)
        method = request.method if request.method in METHODS else OTHER
        parent = request.headers.get(TRACEPARENT, "") if settings.TRUSTED_PROXIES else ""
        with span(
            method, Kind.SERVER, parent=parent, attributes={"http.request.method": method}
        ) as traced:
            response = self.get_response(request)
            if request.resolver_match is not None:
                # Some routes are regular expressions.
                route = "/" + request.resolver_match.route.replace("^", "").removesuffix("$")
                traced.rename(f"{method} {route}")
                traced.note({"http.route": route})
            note_status(traced, response.status_code, failed_from=SERVER_ERROR)
        return response


class StaffLanguage(LocaleMiddleware):
    """Uses the language that a staff member chose, else the browser's.

    It applies to the staff's pages and the first page only: the API's texts are a contract and stay
    English.
    """

    def __call__(self, request: HttpRequest) -> Any:
        # The language is reset after a page, so that it doesn't affect the next one in this thread.
        with translation.override(settings.LANGUAGE_CODE):
            if request.path != "/" and not request.path.startswith("/admin/"):
                return self.get_response(request)
            return super().__call__(request)


class BusinessTimeZone:
    """Shows the admin's times in BUSINESS_TIME_ZONE; everything is stored in UTC."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith("/admin/"):
            return self.get_response(request)
        with timezone.override(ZoneInfo(settings.BUSINESS_TIME_ZONE)):
            return self.get_response(request)


class ReadableAddress(MiddlewareMixin):
    """Removes NUL from the query of a staff page: PostgreSQL can't compare with it.

    No text holds a NUL, and no page has one in its address. It applies to reading only: an action
    on all filtered rows must not affect more rows because a part of its filter was removed.
    """

    def process_request(self, request: HttpRequest) -> None:
        if request.path.startswith("/admin/") and "\x00" in request.path:
            raise Http404
        query_string = request.META.get("QUERY_STRING", "")
        is_page = request.method in ("GET", "HEAD") and request.path.startswith("/admin/")
        if is_page and ("%00" in query_string or "\x00" in query_string):
            readable = request.GET.copy()
            for name, values in request.GET.lists():
                readable.setlist(name, [value.replace("\x00", "") for value in values])
            request.GET = readable  # type: ignore[assignment]


class KnownUploaders(MiddlewareMixin):
    """Sends strangers who upload a large file to the login, before anything reads the file.

    The check of the form's token would read it, for as long as the client takes to send it.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        is_upload = request.path.startswith("/admin/") and may_be_slow(request)
        if is_upload and not request.user.is_authenticated:
            return redirect_to_login(request.path)
        return None


class ReplicaReads(MiddlewareMixin):
    """Makes lists, searches, figures and exports from the replica of the database, if it can.

    They only read. The response is complete here, so that it can be made again from the primary.
    """

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponseBase],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> HttpResponseBase | None:
        name = getattr(request.resolver_match, "view_name", "")
        is_export = name.startswith("admin:") and name.endswith("_export")
        is_read = name in FROM_REPLICA or name.endswith("_changelist")
        if not (is_export or (is_read and request.method in ("GET", "HEAD"))):
            return None

        def made() -> HttpResponseBase:
            response = view(request, *args, **kwargs)
            if isinstance(response, SimpleTemplateResponse):
                return response.render()
            if is_export and isinstance(response, StreamingHttpResponse):
                parts = each_from_replica(iter(response))
                response.streaming_content = chain([next(parts, b"")], parts)
            return response

        return from_replica(made)


class StorageFull(MiddlewareMixin):
    """Responds 507 if a page fails because nothing can be written (ERR-SESSION-002)."""

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponseBase | None:
        if not is_caused_by_full_disk(exception, settings.DATA_DIR):
            return None
        logger.critical("The disk is full: %s could not be served.", request.path)
        if request.path.startswith("/api/"):
            error = {"code": "storage_full", "detail": STORAGE_FULL, "attr": None}
            return JsonResponse({"type": "server_error", "errors": [error]}, status=507)
        return render(request, "507.html", {"text": _(STORAGE_FULL)}, status=507)
