"""MCP over HTTP: the streamable transport without sessions, each POST on its own."""

import json
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.http.response import HttpResponseBase
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import ParseError, PermissionDenied
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.oauth.grants import challenge, resource_of
from memoryproject.foundation.rest_kit import authentication, bodies, middleware, views
from sessions_app.mcp.rest import Refused, Rest

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
# The protocol leaves -32000 to -32019 to implementations.
CODES = {401: -32011, 403: -32013}
# Headers for one hop, or set again by this server.
NOT_PASSED_ON = {"connection", "content-length", "transfer-encoding"}
PASSED_IN = ("accept", "content-type", "mcp-")


class FromHere(BasePermission):
    """Allow clients with a token; pages in a browser only if their host is one of ours.

    Otherwise a page could reach this server by a name that points to this machine (DNS
    rebinding).
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        origin = request.headers.get("Origin")
        if origin is not None and not (is_ours(origin) or middleware.is_allowed_origin(origin)):
            raise PermissionDenied(
                "Pages of this Origin may not call: see CORS_ALLOWED_ORIGINS, BASE_URL, "
                "ALLOWED_HOSTS."
            )
        authentication.require_caller(request)
        return True


def is_ours(origin: str) -> bool:
    try:
        host, _ = split_domain_port(urlsplit(origin).netloc.lower())
    except ValueError:
        return False
    return bool(host) and validate_host(host, settings.ALLOWED_HOSTS)


class Unnegotiated(DefaultContentNegotiation):
    """Ignore Accept: the package's transport checks it."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class McpAuthentication(authentication.TokenAuthentication):
    """Also tells clients where to get a token."""

    def authenticate_header(self, request: Request) -> str:
        if not settings.MCP_OAUTH:
            return super().authenticate_header(request)
        code = "invalid_token" if get_authorization_header(request) else ""
        return challenge(request._request, code=code)


class McpView(views.ApiView):
    """The MCP endpoint. Tools have the throttles of the operations that they call."""

    http_method_names = ["post"]
    authentication_classes = [McpAuthentication]
    permission_classes = [FromHere]
    throttle_classes = ()
    parser_classes = [bodies.RawJson]
    renderer_classes = [bodies.Json]
    content_negotiation_class = Unnegotiated
    schema = None

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        if settings.MCP_OAUTH:
            request.META[authentication.RESOURCE] = resource_of(request)
        return super().initialize_request(request, *args, **kwargs)

    def post(self, request: Request) -> HttpResponseBase:
        # The import takes a second, so only a web server that needs the package imports it.
        from sessions_app.mcp.server import error_in, exchange, server_for  # noqa: PLC0415

        # No parser reads an empty body.
        if not isinstance(request.data, str):
            raise ParseError("The body is empty: it must be a message of JSON-RPC.")
        try:
            message = json.loads(request.data)
        except (ValueError, RecursionError) as error:
            raise ParseError("The body is not JSON.") from error
        if error := error_in(message, request.headers):
            named = message.get("id") if isinstance(message, dict) else None
            return Response(_refusal(error, named), status=400)
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower().startswith(PASSED_IN)
        }
        if self.caller.is_granted:
            _require_scope(request, message)
        secret = get_authorization_header(request).split()[1].decode("ascii")
        rest = Rest(secret, request.META.get(authentication.RESOURCE, ""))
        answer = exchange(server_for(rest, self.caller), headers, request.data.encode())
        passed_on = {
            name: value for name, value in answer.headers.items() if name not in NOT_PASSED_ON
        }
        return HttpResponse(answer.content, status=answer.status_code, headers=passed_on)

    def handle_exception(self, exc: Exception) -> Response:
        """Return the API's error as an error of JSON-RPC."""
        response = super().handle_exception(exc)
        default = INTERNAL_ERROR if response.status_code >= 500 else INVALID_REQUEST
        found = CODES.get(response.status_code, default)
        code = PARSE_ERROR if isinstance(exc, ParseError) else found
        error = {"code": code, "message": str(Refused(response.data["errors"]))}
        response.data = _refusal(error)
        return response


def _refusal(error: dict[str, Any], request_id: Any = None) -> dict[str, Any]:
    is_id = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    return {"jsonrpc": "2.0", "id": request_id if is_id else None, "error": error}


def _require_scope(request: Request, message: dict[str, Any]) -> None:
    """Tell an application that it can ask staff for the scope of the tool that it calls.

    Raises PermissionDenied. Other errors in the message are the package's to find.
    """
    from sessions_app.mcp.tools import TOOLS  # noqa: PLC0415 slow

    name = message.get("params", {}).get("name")
    if message.get("method") != "tools/call" or not isinstance(name, str) or name not in TOOLS:
        return
    scopes, needed = authentication.require_caller(request).scopes, TOOLS[name].operation.scope
    if needed in scopes:
        return
    refusal = PermissionDenied(f"The token lacks the scope {needed}.")
    refusal.auth_header = challenge(  # type: ignore[attr-defined]
        request._request, code="insufficient_scope", scopes=sorted({*scopes, needed})
    )
    raise refusal
