"""Middleware: the server's address, request ids, and for staff pages language, time zone, uploads.

Also the pages for a host that isn't allowed, a form from an address that isn't known, and a full
disk.
"""

import logging
import re
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.http.request import split_domain_port
from django.middleware.csrf import REASON_NO_CSRF_COOKIE
from django.middleware.gzip import GZipMiddleware
from django.middleware.locale import LocaleMiddleware
from django.shortcuts import render
from django.template.response import SimpleTemplateResponse
from django.utils import timezone, translation
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _

from memoryproject.foundation.process import logfile, storage, tracing
from memoryproject.foundation.replica import each_from_replica, from_replica
from memoryproject.foundation.rest_kit.bodies import drain, may_be_slow
from memoryproject.foundation.rest_kit.errors import error_response
from memoryproject.staff_site.static_files import KEPT, VERSION, with_styles
from sessions_app.stored_settings import stored_settings_look

logger = logging.getLogger(__name__)

# The types of static files that get smaller; fonts and pictures don't.
TEXTS = ("text/", "application/json", "image/svg", "application/javascript")
COMPRESSED = ("/api/", "/v1/")
PAGE = "text/html"
EVENTS = "text/event-stream"
# Django takes any mention of gzip for a wish.
NO_GZIP = re.compile(r"gzip\s*;\s*q=0(\.0*)?\s*(,|$)", re.I)
FOREVER = "public, max-age=31536000, immutable"
REQUEST_ID = "X-Request-ID"
TRACEPARENT = "traceparent"
# Asked for every few seconds, by load balancers and Prometheus: they are not traced.
POLLED = frozenset({"/healthz", "/readyz", "/metrics"})
SHOW_SETTINGS = ("/admin/setup/", "/admin/operations/settings/")
FROM_REPLICA = frozenset(
    {"admin:index", "admin:dashboard_figures", "admin:costs", "admin:global_search"}
)
# What proxies and load balancers send; anything else is replaced.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
_PORT = re.compile(r"[0-9]{1,5}")
_ORIGIN = re.compile(r"https?://[^/?#\s]+")
# Addresses for programs, whose errors are JSON.
FOR_PROGRAMS = ("/api/", "/v1/", "/mcp", "/webhooks/", "/oauth/", "/.well-known/")
SHOWN_HOST = 100
LOGGED_EVERY_SECONDS = 60
HOST_REFUSED = (
    "The server isn't known under the name in the header Host. Set BASE_URL to the server's "
    "address, or add the name to ALLOWED_HOSTS."
)


class OwnAddress(MiddlewareMixin):
    """Finds the address under which a request came, before anything else looks at it.

    Proxies may cut the path of BASE_URL off, or pass it on. Of their headers those count that the
    outermost of TRUSTED_PROXIES wrote; anybody may send the others. X-Forwarded-Prefix never
    counts: BASE_URL has the path.
    """

    def process_request(self, request: HttpRequest) -> None:
        prefix = settings.FORCE_SCRIPT_NAME
        if prefix and f"{request.path_info}/".startswith(f"{prefix}/"):
            request.path_info = request.path_info[len(prefix) :] or "/"
            request.path = prefix + request.path_info
        if prefix and "HTTP_COOKIE" in request.META:
            # Browsers send the cookie of the longer path first. Django takes the last of a name,
            # which may be of another site on the host.
            cookies = request.META["HTTP_COOKIE"].split(";")
            request.META["HTTP_COOKIE"] = ";".join(reversed(cookies))
        scheme, host, port = (_forwarded(request, name) for name in ("PROTO", "HOST", "PORT"))
        if scheme:
            request.META["HTTP_X_FORWARDED_PROTO"] = scheme
        host = host or request.META.get("HTTP_HOST", "")
        name, known_port = split_domain_port(host)
        # The usual ports aren't part of a host; a proxy within may write its own.
        if name and not known_port and _PORT.fullmatch(port) and port not in ("80", "443"):
            host = f"{name}:{port}"
        if host:
            request.META["HTTP_HOST"] = host


def _forwarded(request: HttpRequest, name: str) -> str:
    """Remove a header X-Forwarded-… and return what the outermost trusted proxy wrote, or ""."""
    values = request.META.pop(f"HTTP_X_FORWARDED_{name}", "").split(",")
    if not settings.TRUSTED_PROXIES:
        return ""
    return values[max(0, len(values) - settings.TRUSTED_PROXIES)].strip()


class KnownHosts(MiddlewareMixin):
    """Refuses requests for another host, and names the setting.

    The log has a line once a minute: scanners send many.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        try:
            request.get_host()
        except DisallowedHost:
            return self._refused(request)
        return None

    def _refused(self, request: HttpRequest) -> HttpResponseBase:
        host = request.META.get("HTTP_HOST", "")
        shown = host if len(host) <= SHOWN_HOST else f"{host[:SHOWN_HOST]}…"
        # Without room for the time nothing is logged: it would be each request.
        with suppress(OSError):
            times = storage.SharedTimes(settings.DATA_DIR / "refused-hosts.times")
            if times.claim("host", now=time.time(), every=LOGGED_EVERY_SECONDS):
                logger.warning("Host %a isn't allowed: see BASE_URL and ALLOWED_HOSTS.", shown)
        if not may_be_slow(request):
            drain(request)
        if f"{request.path_info}/".startswith(FOR_PROGRAMS):
            refusal: HttpResponse = error_response("host_not_allowed", HOST_REFUSED, status=400)
        else:
            with translation.override(translation.get_language_from_request(request)):
                refusal = render(request, "400_host.html", {"host": shown}, status=400)
        # Django would log each of them.
        refusal._has_been_logged = True  # type: ignore[attr-defined]
        return refusal


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the page for a form whose check failed; it names the setting where one is wrong.

    Browsers name the page's address. It may also be that of another site, which sent the form.
    """
    page = _ORIGIN.match(request.headers.get("Origin") or request.headers.get("Referer", ""))
    origin = page[0] if page else ""
    known = settings.BASE_URL or f"{request.scheme}://{request.get_host()}"
    needs_https = reason == REASON_NO_CSRF_COOKIE and settings.CSRF_COOKIE_SECURE
    context = {
        "origin": origin[:SHOWN_HOST] if reason.startswith(("Origin ", "Referer ")) else "",
        "known": known,
        "path": urlsplit(settings.BASE_URL).path,
        "needs_https": needs_https and origin.startswith("http://"),
    }
    return render(request, "403_csrf.html", context, status=403)


class Compression(GZipMiddleware):
    """Compresses static files, and pages and answers with a random length against BREACH.

    The token of a form is masked differently in each page. Browsers keep a static file whose
    address names its content. Events are sent piece by piece, and not compressed.
    """

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        kind = response.get("Content-Type", "")
        is_file = response.status_code == 200 and request.path.startswith(settings.STATIC_URL)
        if is_file and request.GET.get(VERSION):
            response["Cache-Control"] = FOREVER
        # Browsers tell that somebody opens a page, where their connection is a safe one.
        is_opened = request.headers.get("Sec-Fetch-Dest") == "document"
        if is_opened and kind.startswith(PAGE) and not response.streaming:
            response.content = with_styles(response.content, request.COOKIES.get(KEPT, ""))
            response["Content-Length"] = len(response.content)
        is_answer = request.path_info.startswith(COMPRESSED) and not kind.startswith(EVENTS)
        if is_answer or kind.startswith(PAGE) or (is_file and kind.startswith(TEXTS)):
            if NO_GZIP.search(request.headers.get("Accept-Encoding", "")):
                request.META["HTTP_ACCEPT_ENCODING"] = ""
            return super().process_response(request, response)
        return response


class RequestIds:
    """Takes the id that a proxy sent, or makes one, and returns it with the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        sent = request.headers.get(REQUEST_ID, "")
        request_id = sent if _REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex
        request.META["HTTP_X_REQUEST_ID"] = request_id
        with logfile.log_context(request=request_id):
            response = self._traced(request)
        response[REQUEST_ID] = request_id
        return response

    def _traced(self, request: HttpRequest) -> HttpResponseBase:
        """Respond within a span, which is named after the route: the path may hold ids of people.

        A caller's trace is continued only behind a proxy of ours: anybody could send the header.
        """
        if request.path_info in POLLED:
            return self.get_response(request)
        method = request.method if request.method in tracing.METHODS else tracing.OTHER
        parent = request.headers.get(TRACEPARENT, "") if settings.TRUSTED_PROXIES else ""
        with tracing.span(
            method, tracing.Kind.SERVER, parent=parent, attributes={"http.request.method": method}
        ) as traced:
            response = self.get_response(request)
            if request.resolver_match is not None:
                # Some routes are regular expressions.
                route = "/" + request.resolver_match.route.replace("^", "").removesuffix("$")
                traced.rename(f"{method} {route}")
                traced.note({"http.route": route})
            tracing.note_status(traced, response.status_code, failed_from=tracing.SERVER_ERROR)
        return response


class StoredSettings(MiddlewareMixin):
    """Takes over the settings that were changed in the browser, at most once a second."""

    def process_request(self, request: HttpRequest) -> None:
        # A probe isn't to wait for a database that doesn't answer. A page that shows settings is
        # often the next one after a change that another process stored.
        if request.path_info not in POLLED:
            stored_settings_look(at_once=request.path_info.startswith(SHOW_SETTINGS))


class StaffLanguage(LocaleMiddleware):
    """Uses the language that a staff member chose, else the browser's.

    It applies to the staff's pages and the first page only: the API's texts are a contract and stay
    English.
    """

    def __call__(self, request: HttpRequest) -> Any:
        # The language is reset after a page, so that it doesn't affect the next one in this thread.
        with translation.override(settings.LANGUAGE_CODE):
            if request.path_info != "/" and not request.path_info.startswith("/admin/"):
                return self.get_response(request)
            return super().__call__(request)


class BusinessTimeZone:
    """Shows the admin's times in BUSINESS_TIME_ZONE; everything is stored in UTC."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith("/admin/"):
            return self.get_response(request)
        with timezone.override(ZoneInfo(settings.BUSINESS_TIME_ZONE)):
            return self.get_response(request)


class ReadableAddress(MiddlewareMixin):
    """Removes NUL from the query of a staff page: PostgreSQL can't compare with it.

    No text holds a NUL, and no page has one in its address. It applies to reading only: an action
    on all filtered rows must not affect more rows because a part of its filter was removed.
    """

    def process_request(self, request: HttpRequest) -> None:
        if request.path_info.startswith("/admin/") and "\x00" in request.path_info:
            raise Http404
        query_string = request.META.get("QUERY_STRING", "")
        is_page = request.method in ("GET", "HEAD") and request.path_info.startswith("/admin/")
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
        is_upload = request.path_info.startswith("/admin/") and may_be_slow(request)
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
        if not storage.is_caused_by_full_disk(exception, settings.DATA_DIR):
            return None
        logger.critical("The disk is full: %s could not be served.", logfile.view_address(request))
        if request.path_info.startswith("/api/"):
            return error_response("storage_full", storage.STORAGE_FULL, status=507)
        return render(request, "507.html", {"text": _(storage.STORAGE_FULL)}, status=507)
