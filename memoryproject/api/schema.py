"""What the schema says of every operation."""

from __future__ import annotations

from typing import Any, Literal

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from memoryproject.api.serializers import ErrorsSerializer
from memoryproject.api.views import ListView

KEY_PARAMETER = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="The same key and body give the same answer and one effect, for 24 hours.",
)
ERRORS = {
    "400": "The request is wrong; `attr` names the field.",
    "401": "No token, or one that is unknown, expired or revoked.",
    "403": "The token lacks the scope.",
    "404": "There is no such thing, or not within the token's reach.",
    "429": "Too many calls of this kind: come back after `Retry-After` seconds.",
}
BODY_ERRORS = {"413": "The body is too large."}
KEY_ERRORS = {
    "409": "The first call with this Idempotency-Key isn't finished, or its answer isn't kept.",
    "422": "This Idempotency-Key was used for another call.",
}


class Schema(AutoSchema):
    """Adds what all operations share: the errors, and the header of those that create."""

    def get_override_parameters(self) -> list[Any]:
        query = getattr(self.view, "query_serializer_class", None)
        parameters = [query] if query is not None and self.method == "GET" else []
        return [*parameters, KEY_PARAMETER] if self._takes_key() else parameters

    def get_tags(self) -> list[str]:
        """By the first word of the address."""
        words = [word for word in self.path.split("/") if word and not word.startswith("{")]
        return [words[2] if words[:2] == ["api", "v1"] and len(words) > 2 else words[-1]]

    def _is_list_view(self, serializer: Any = None) -> bool:
        if serializer is None and isinstance(self.view, ListView):
            return bool(self.method == "GET")
        return bool(super()._is_list_view(serializer))

    def _takes_key(self) -> bool:
        handler = getattr(self.view, self.method.lower(), None)
        return bool(getattr(handler, "takes_idempotency_key", False))

    def _get_response_bodies(self, direction: Literal["request", "response"] = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        errors = dict(ERRORS)
        if self.method in ("POST", "PUT", "PATCH"):
            errors |= BODY_ERRORS
        if self._takes_key():
            errors |= KEY_ERRORS
        for code, text in errors.items():
            if code not in bodies:
                found = self._get_response_for_code(  # type: ignore[no-untyped-call]
                    ErrorsSerializer, code, ["application/json"]
                )
                bodies[code] = {**found, "description": text}
        return bodies


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema tells of tokens."""

    target_class = "memoryproject.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token …`, by `manage.py create_api_token NAME`.",
        }


class StaffScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema tells of staff's sessions."""

    target_class = "memoryproject.api.authentication.StaffAuthentication"
    name = "staff"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "The admin's session; what writes needs the CSRF token.",
        }


def sent(name: str, value: Any) -> OpenApiExample:
    """An example of a body."""
    return OpenApiExample(name, value=value, request_only=True)


def answered(
    name: str, value: Any, *, status: int = 200, media_type: str | None = None
) -> OpenApiExample:
    """An example of an answer."""
    return OpenApiExample(
        name,
        value=value,
        response_only=True,
        status_codes=[str(status)],
        media_type=media_type,
    )
