"""The endpoints for applications: metadata, registration, authorization, tokens, revocation."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode, urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    QueryDict,
)
from django.shortcuts import render
from django.urls import path, re_path, reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from memoryproject.foundation.oauth.oauth_addresses import (
    GRANTED,
    canonical,
    issuer_of,
    resource_of,
)
from memoryproject.foundation.process.own_address import absolute_url
from memoryproject.foundation.rest_kit.bodies import may_be_slow
from memoryproject.foundation.rest_kit.throttles import MINUTE, count_call

if TYPE_CHECKING:
    from memoryproject.foundation.oauth.provider import Provider

MAX_METADATA_BYTES = 64 * 1024
# Of all applications together.
REGISTRATIONS_A_MINUTE = 30
GRANT_TYPES = ("authorization_code", "refresh_token")
AUTH_METHODS = ["none", "client_secret_post", "client_secret_basic"]
RESOURCE_NAME = "WhatsApp memory"

View = Callable[..., HttpResponseBase]
Handler = Callable[[Any], Awaitable[Any]]


def offered(view: View) -> View:
    """Answer 404 where MCP_OAUTH is off."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.MCP_OAUTH:
            raise Http404
        return view(request, *args, **kwargs)

    return checked


@offered
@require_safe
def protected_resource(request: HttpRequest, path: str) -> HttpResponse:
    """Say which server gives tokens for the MCP server (RFC 9728). Raises Http404."""
    _require_place(request, path, "", "/mcp")
    return JsonResponse(
        {
            "resource": resource_of(request),
            "authorization_servers": [issuer_of(request)],
            "scopes_supported": GRANTED,
            "bearer_methods_supported": ["header"],
            "resource_name": RESOURCE_NAME,
        }
    )


@offered
@require_safe
def authorization_server(request: HttpRequest, path: str) -> HttpResponse:
    """Describe the endpoints (RFC 8414). Raises Http404."""
    _require_place(request, path, "")
    endpoints = {
        f"{name}_endpoint": absolute_url(reverse(f"oauth-{name}"), request)
        for name in ("authorization", "token", "registration", "revocation")
    }
    return JsonResponse(
        {
            "issuer": issuer_of(request),
            **endpoints,
            "scopes_supported": GRANTED,
            "response_types_supported": ["code"],
            "grant_types_supported": GRANT_TYPES,
            "token_endpoint_auth_methods_supported": AUTH_METHODS,
            "revocation_endpoint_auth_methods_supported": AUTH_METHODS,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
    )


def _require_place(request: HttpRequest, path: str, *known: str) -> None:
    """Refuse a path of something else; that of BASE_URL may stand before. Raises Http404."""
    own = urlsplit(issuer_of(request)).path
    if path.rstrip("/").removeprefix(own) not in known:
        raise Http404


@offered
@require_safe
def authorize(request: HttpRequest) -> HttpResponse:
    """Check what an application asks for, and lead the person to the page for consent."""
    from mcp.server.auth.handlers.authorize import AuthorizationHandler  # noqa: PLC0415 slow
    from mcp.server.auth.provider import construct_redirect_uri  # noqa: PLC0415 slow

    if repeated := _repeated(request.GET):
        return _refusal_page(request, f"{repeated} is given more than once.")
    provider = _provider(request)
    query = urlencode(_given(request.GET))
    answer = _run(AuthorizationHandler(provider).handle, request, query=query)
    address = answer.get("Location")
    if address is None:
        return _refusal_page(request, json.loads(answer.content)["error_description"])
    if not address.startswith(f"{provider.consent}?"):
        # An error for the application, which must know from whom it comes (RFC 9207).
        answer["Location"] = construct_redirect_uri(address, iss=provider.issuer)
    return answer


def _refusal_page(request: HttpRequest, why: str) -> HttpResponse:
    """Tell the person: the application isn't known, and neither is where to send them."""
    return render(request, "400_oauth.html", {"why": why}, status=400)


@csrf_exempt
@offered
@require_POST
def register(request: HttpRequest) -> HttpResponse:
    """Register an application (RFC 7591). It may do nothing until staff consent."""
    from mcp.server.auth.handlers.register import RegistrationHandler  # noqa: PLC0415 slow
    from mcp.server.auth.settings import ClientRegistrationOptions  # noqa: PLC0415 slow

    minute, second = divmod(int(time.time()), MINUTE)
    if count_call("oauth", "register", minute) > REGISTRATIONS_A_MINUTE:
        refusal = _error("temporarily_unavailable", "Too many register. Try again later.", 429)
        refusal["Retry-After"] = str(MINUTE - second)
        return refusal
    if may_be_slow(request) or len(request.body) > MAX_METADATA_BYTES:
        return _error("invalid_client_metadata", "There is too much metadata.", 413)
    handler = RegistrationHandler(_provider(request), ClientRegistrationOptions(enabled=True))
    return _run(handler.handle, request, body=request.body)


@csrf_exempt
@offered
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """Give an application tokens for its code, or for its refresh token."""
    from mcp.server.auth.handlers.token import TokenHandler  # noqa: PLC0415 slow
    from mcp.server.auth.middleware.client_auth import ClientAuthenticator  # noqa: PLC0415 slow

    provider = _provider(request)
    if repeated := _repeated(request.POST):
        return _error("invalid_request", f"{repeated} is given more than once.")
    given = _given(request.POST)
    if given.get("grant_type", GRANT_TYPES[0]) not in GRANT_TYPES:
        return _error("unsupported_grant_type", f"Types are {' and '.join(GRANT_TYPES)}.")
    if "resource" in given and canonical(given["resource"]) != provider.resource:
        return _error("invalid_target", f"Tokens are given for {provider.resource} only.")
    handler = TokenHandler(provider, ClientAuthenticator(provider))
    return _run(handler.handle, request, body=_form(request))


@csrf_exempt
@offered
@require_POST
def revoke(request: HttpRequest) -> HttpResponse:
    """End a grant by one of its tokens (RFC 7009)."""
    from mcp.server.auth.handlers.revoke import RevocationHandler  # noqa: PLC0415 slow
    from mcp.server.auth.middleware.client_auth import ClientAuthenticator  # noqa: PLC0415 slow

    provider = _provider(request)
    if repeated := _repeated(request.POST):
        return _error("invalid_request", f"{repeated} is given more than once.")
    handler = RevocationHandler(provider, ClientAuthenticator(provider))
    return _run(handler.handle, request, body=_form(request))


def _provider(request: HttpRequest) -> Provider:
    from memoryproject.foundation.oauth.provider import Provider  # noqa: PLC0415 slow

    consent = absolute_url(reverse("admin:api_apitoken_consent"), request)
    return Provider(issuer=issuer_of(request), resource=resource_of(request), consent=consent)


def _repeated(parameters: QueryDict) -> str:
    """Return the name of a parameter that is given more than once, which OAuth forbids."""
    return next((name for name, values in parameters.lists() if len(values) > 1), "")


def _given(parameters: QueryDict) -> dict[str, str]:
    """Return the parameters; by OAuth an empty one isn't given."""
    return {name: str(value) for name, value in parameters.items() if value}


def _form(request: HttpRequest) -> bytes:
    """Return the form with what the handlers require and OAuth doesn't.

    A client that authenticates by the header needn't repeat its id; a public one has no secret.
    """
    form = {"client_secret": "", **_given(request.POST)}
    word, _, given = request.headers.get("Authorization", "").partition(" ")
    if word.lower() == "basic" and "client_id" not in form:
        with suppress(ValueError):
            decoded = base64.b64decode(given).decode()
            form["client_id"] = unquote(decoded.partition(":")[0])
    return urlencode(form).encode()


def _error(code: str, description: str, status: int = 400) -> HttpResponse:
    return JsonResponse(
        {"error": code, "error_description": description},
        status=status,
        headers={"Cache-Control": "no-store"},
    )


@async_to_sync
async def _run(handle: Handler, request: HttpRequest, *, query: str = "", body: bytes = b"") -> Any:
    """Run a handler of the package in this thread, without its web server."""
    from starlette.requests import Request  # noqa: PLC0415 slow

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", b"application/x-www-form-urlencoded")]
    if given := request.headers.get("Authorization"):
        headers.append((b"authorization", given.encode("latin-1")))
    scope = {
        "type": "http",
        "method": request.method,
        "path": request.path,
        "query_string": query.encode("ascii"),
        "headers": headers,
    }
    answer = await handle(Request(scope, receive))
    kept = {
        name: value for name, value in answer.headers.items() if name.lower() != "content-length"
    }
    return HttpResponse(answer.body, status=answer.status_code, headers=kept)


WELL_KNOWN = r"^\.well-known/"
urlpatterns = [
    # Behind the name stands the path of what is asked about: that of BASE_URL, and of /mcp.
    re_path(rf"{WELL_KNOWN}oauth-protected-resource(?P<path>(?:/.*)?)$", protected_resource),
    # By the second name clients find it where a path is the server's own (BASE_URL).
    re_path(
        rf"{WELL_KNOWN}(?:oauth-authorization-server|openid-configuration)(?P<path>(?:/.*)?)$",
        authorization_server,
    ),
    path("oauth/authorize", authorize, name="oauth-authorization"),
    path("oauth/token", token, name="oauth-token"),
    path("oauth/register", register, name="oauth-registration"),
    path("oauth/revoke", revoke, name="oauth-revocation"),
]
