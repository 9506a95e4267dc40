"""Middleware of the addresses for programs: pages of other origins, and compression."""

from __future__ import annotations

import re

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

FOR_PAGES = ("/api/", "/v1/", "/mcp/")
# Django takes any mention of gzip for a wish.
NO_GZIP = re.compile(r"gzip\s*;\s*q=0(\.0*)?\s*(,|$)", re.I)
ANSWERED = (
    "Content-Disposition, Content-Location, ETag, Idempotent-Replayed, Location, "
    "RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, Transcript-Left-Out, "
    "Transcript-Redacted, WWW-Authenticate, X-Memory-Chat, X-Memory-Replay, X-Memory-Session, "
    "X-Request-ID"
)
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
# Seconds for which browsers keep the answer to a preflight: as long as any of them does.
KEPT_SECONDS = "7200"
_NAMES = re.compile(r"[A-Za-z0-9-]+( *, *[A-Za-z0-9-]+)*")


def is_allowed_origin(origin: str) -> bool:
    """Return whether pages of this origin may call: CORS_ALLOWED_ORIGINS names it."""
    allowed = settings.CORS_ALLOWED_ORIGINS
    return "*" in allowed or origin.lower() in allowed


class AllowedOrigins(MiddlewareMixin):
    """Lets pages of CORS_ALLOWED_ORIGINS call with a token. Cookies of staff are never accepted."""

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        wants = request.headers.get("Access-Control-Request-Method")
        if request.method == "OPTIONS" and wants and _origin(request):
            return HttpResponse(status=204)
        return None

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not (settings.CORS_ALLOWED_ORIGINS and _is_for_pages(request)):
            return response
        patch_vary_headers(response, ["Origin"])
        if origin := _origin(request):
            response["Access-Control-Allow-Origin"] = origin
            response["Access-Control-Expose-Headers"] = ANSWERED
            if request.method == "OPTIONS":
                response["Access-Control-Allow-Methods"] = METHODS
                response["Access-Control-Max-Age"] = KEPT_SECONDS
                named = request.headers.get("Access-Control-Request-Headers", "")
                # Clients send many of their own, and none means anything without a token.
                if _NAMES.fullmatch(named):
                    response["Access-Control-Allow-Headers"] = named
        return response


def _is_for_pages(request: HttpRequest) -> bool:
    return f"{request.path_info}/".startswith(FOR_PAGES)


def _origin(request: HttpRequest) -> str:
    """Return the allowed origin of the page that calls; "" for all other calls."""
    origin = request.headers.get("Origin", "")
    return origin if origin and _is_for_pages(request) and is_allowed_origin(origin) else ""


class Compression(GZipMiddleware):
    """Compresses the API's answers, with a random length against BREACH.

    Events are sent piece by piece, and pages of staff have secrets of their forms: neither is
    compressed.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        is_stream = response.get("Content-Type", "").startswith("text/event-stream")
        if is_stream or not request.path_info.startswith(FOR_PAGES[:2]):
            return response
        if NO_GZIP.search(request.headers.get("Accept-Encoding", "")):
            request.META["HTTP_ACCEPT_ENCODING"] = ""
        return super().process_response(request, response)
