"""Middleware of the addresses for programs: pages of other origins may call."""

import re
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers

FOR_PAGES = ("/api/", "/v1/", "/mcp/")
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


class AllowedOrigins:
    """Lets pages of CORS_ALLOWED_ORIGINS call with a token. Cookies of staff are never accepted."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_for_pages = f"{request.path_info}/".startswith(FOR_PAGES)
        if not (settings.CORS_ALLOWED_ORIGINS and is_for_pages):
            return self.get_response(request)
        origin = request.headers.get("Origin", "")
        is_allowed = bool(origin) and is_allowed_origin(origin)
        asks = request.method == "OPTIONS" and request.headers.get("Access-Control-Request-Method")
        response = HttpResponse(status=204) if asks and is_allowed else self.get_response(request)
        patch_vary_headers(response, ["Origin"])
        if is_allowed:
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
