"""The endpoints for applications: metadata, registration, authorization, tokens, revocation."""

import base64
import json
import time
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import render
from django.urls import path, re_path, reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from memoryproject.foundation.oauth.grants import GRANTED, canonical, issuer_of, resource_of
from memoryproject.foundation.process.own_address import absolute_url
from memoryproject.foundation.rest_kit import bodies, throttles

MAX_METADATA_BYTES = 64 * 1024
# Of all applications together.
REGISTRATIONS_A_MINUTE = 30
GRANT_TYPES = ("authorization_code", "refresh_token")
AUTH_METHODS = ["none", "client_secret_post", "client_secret_basic"]
RESOURCE_NAME = "WhatsApp memory"


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
    if not settings.MCP_OAUTH or path.rstrip("/").removeprefix(own) not in known:
        raise Http404


@require_safe
def authorize(request: HttpRequest) -> HttpResponse:
    """Check what an application asks for, and lead the person to the page for consent."""
    from mcp.server.auth.handlers.authorize import AuthorizationHandler  # noqa: PLC0415 slow

    provider = _provider(request)
    if repeated := _repeated(request.GET):
        return _refusal_page(request, repeated)
    answer = _run(AuthorizationHandler(provider), request, _given(request.GET))
    address = answer.get("Location")
    if address is None:
        return _refusal_page(request, json.loads(answer.content)["error_description"])
    if not address.startswith(f"{provider.consent}?"):
        # An error for the application, which must know from whom it comes (RFC 9207).
        answer["Location"] = f"{address}&{urlencode({'iss': provider.issuer})}"
    return answer


def _refusal_page(request: HttpRequest, why: str) -> HttpResponse:
    """Tell the person: the application isn't known, and neither is where to send them."""
    return render(request, "400_oauth.html", {"why": why}, status=400)


@csrf_exempt
@require_POST
def register(request: HttpRequest) -> HttpResponse:
    """Register an application (RFC 7591). It may do nothing until staff consent."""
    from mcp.server.auth.handlers.register import RegistrationHandler  # noqa: PLC0415 slow
    from mcp.server.auth.settings import ClientRegistrationOptions  # noqa: PLC0415 slow

    provider = _provider(request)
    minute, second = divmod(int(time.time()), throttles.MINUTE)
    if throttles.count_call("oauth", "register", minute) > REGISTRATIONS_A_MINUTE:
        refusal = _error("temporarily_unavailable", "Too many register. Try again later.", 429)
        refusal["Retry-After"] = str(throttles.MINUTE - second)
        return refusal
    if bodies.may_be_slow(request) or len(request.body) > MAX_METADATA_BYTES:
        return _error("invalid_client_metadata", "There is too much metadata.", 413)
    handler = RegistrationHandler(provider, ClientRegistrationOptions(enabled=True))
    return _run(handler, request, request.body)


@csrf_exempt
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """Give an application tokens for its code, or for its refresh token."""
    from mcp.server.auth.handlers.token import TokenHandler  # noqa: PLC0415 slow
    from mcp.server.auth.middleware.client_auth import ClientAuthenticator  # noqa: PLC0415 slow

    provider = _provider(request)
    if repeated := _repeated(request.POST):
        return _error("invalid_request", repeated)
    given = _given(request.POST)
    if given.get("grant_type", GRANT_TYPES[0]) not in GRANT_TYPES:
        return _error("unsupported_grant_type", f"Types are {' and '.join(GRANT_TYPES)}.")
    if "resource" in given and canonical(given["resource"]) != provider.resource:
        return _error("invalid_target", f"Tokens are given for {provider.resource} only.")
    handler = TokenHandler(provider, ClientAuthenticator(provider))
    return _run(handler, request, _form(request))


@csrf_exempt
@require_POST
def revoke(request: HttpRequest) -> HttpResponse:
    """End a grant by one of its tokens (RFC 7009)."""
    from mcp.server.auth.handlers.revoke import RevocationHandler  # noqa: PLC0415 slow
    from mcp.server.auth.middleware.client_auth import ClientAuthenticator  # noqa: PLC0415 slow

    provider = _provider(request)
    if repeated := _repeated(request.POST):
        return _error("invalid_request", repeated)
    handler = RevocationHandler(provider, ClientAuthenticator(provider))
    return _run(handler, request, _form(request))


def _provider(request: HttpRequest) -> Any:
    """Return what the handlers work with. Raises Http404 where MCP_OAUTH is off."""
    from memoryproject.foundation.oauth.provider import Provider  # noqa: PLC0415 slow

    if not settings.MCP_OAUTH:
        raise Http404
    consent = absolute_url(reverse("admin:api_apitoken_consent"), request)
    return Provider(issuer=issuer_of(request), resource=resource_of(request), consent=consent)


def _repeated(parameters: QueryDict) -> str:
    """Return what is wrong with a parameter that is given more than once; empty for none."""
    names = (name for name, values in parameters.lists() if len(values) > 1)
    return next((f"{name} is given more than once." for name in names), "")


def _given(parameters: QueryDict) -> dict[str, str]:
    """Return the parameters; by OAuth an empty one isn't given."""
    return {name: str(value) for name, value in parameters.items() if value}


def _form(request: HttpRequest) -> dict[str, str]:
    """Return the form with what the handlers require and OAuth doesn't.

    A client that authenticates by the header needn't repeat its id; a public one has no secret.
    """
    form = {"client_secret": "", **_given(request.POST)}
    word, _, given = request.headers.get("Authorization", "").partition(" ")
    if word.lower() == "basic" and "client_id" not in form:
        with suppress(ValueError):
            decoded = base64.b64decode(given).decode()
            form["client_id"] = unquote(decoded.partition(":")[0])
    return form


def _error(code: str, description: str, status: int = 400) -> HttpResponse:
    return JsonResponse(
        {"error": code, "error_description": description},
        status=status,
        headers={"Cache-Control": "no-store"},
    )


@async_to_sync
async def _run(handler: Any, request: HttpRequest, given: dict[str, str] | bytes) -> HttpResponse:
    """Run a handler of the package in this thread, without its web server.

    ``given``: the parameters, or a body of another form.
    """
    from starlette.requests import Request  # noqa: PLC0415 slow

    async def receive() -> dict[str, Any]:
        body = given if isinstance(given, bytes) else urlencode(given).encode()
        return {"type": "http.request", "body": body}

    authorization = request.headers.get("Authorization", "").encode("latin-1")
    form = (b"content-type", b"application/x-www-form-urlencoded")
    headers = [form, (b"authorization", authorization)]
    answer = await handler.handle(
        Request({"type": "http", "method": "POST", "headers": headers}, receive)
    )
    return HttpResponse(answer.body, status=answer.status_code, headers=answer.headers)


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
