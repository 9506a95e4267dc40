"""Call the REST API's views within this process, with one token."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from rest_framework.response import Response

from memoryproject.foundation.rest_kit import authentication, views

NON_FIELD = "non_field_errors"
FAILED = "Something went wrong on the server, whose log tells more. Try again later."


class Refused(Exception):
    """The API refused the call. Each error has a detail and an attr.

    The text states what was wrong and where.
    """

    def __init__(self, errors: Sequence[Mapping[str, Any]]) -> None:
        super().__init__("\n".join(map(_line, errors)))


def _line(error: Mapping[str, Any]) -> str:
    attr, detail = error["attr"], str(error["detail"])
    # What is wrong within a condition names its place itself.
    place = str(attr).partition(".")[0]
    has_place = detail.startswith((f"{place}.", f"{place}:", f"{place}["))
    return detail if attr in (None, NON_FIELD) or has_place else f"{attr}: {detail}"


@dataclass(frozen=True)
class Operation:
    """A method of a view."""

    view: type[views.ApiView]
    method: str

    @property
    def scope(self) -> str:
        return self.view.scopes[self.method]

    def is_open_to(self, caller: authentication.Caller) -> bool:
        """Return whether the view grants access to the caller at all."""
        return self.scope in caller.scopes and (self.view.bound_tokens or not caller.is_bound)


@dataclass(frozen=True)
class Answer:
    """``document``: the body; ``response``: the whole response."""

    document: dict[str, Any]
    response: HttpResponse


@dataclass(frozen=True)
class Rest:
    """``secret``: the token. Each call looks it up, because it may be revoked meanwhile.

    ``resource``: the address that was called, for which tokens of applications are given.
    """

    secret: str
    resource: str = ""

    def caller(self) -> authentication.Caller:
        """Return the caller. Raises AuthenticationFailed."""
        return authentication.caller_with(self.secret, resource=self.resource)

    def call(
        self,
        operation: Operation,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        **path: Any,
    ) -> Answer:
        """Call an operation. ``path``: the parameters in the address.

        Raises Refused for every response without a 2xx status, and errors that the view doesn't
        handle, such as a full disk.
        """
        request = _InProcessRequest(self._environ(operation, query or {}, body))
        response = operation.view.as_view()(request, **path)
        if isinstance(response, Response):
            response.render()
        document = json.loads(response.content)
        if response.status_code == 500:
            raise Refused([{"attr": None, "detail": FAILED}])
        if response.status_code >= 400:
            raise Refused(document["errors"])
        return Answer(document, response)

    def _environ(self, operation: Operation, query: Mapping[str, Any], body: Any) -> dict[str, Any]:
        raw = b"" if body is None else json.dumps(body).encode()
        return {
            "REQUEST_METHOD": operation.method,
            # Only for the log.
            "PATH_INFO": f"/mcp/{operation.view.__name__}",
            "QUERY_STRING": urlencode(query, doseq=True),
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(raw)),
            "HTTP_AUTHORIZATION": f"Token {self.secret}",
            authentication.RESOURCE: self.resource,
            "wsgi.input": BytesIO(raw),
            "wsgi.url_scheme": "http",
        }


class _InProcessRequest(WSGIRequest):
    """A request without a host: only the cursors of addresses in answers are read."""

    def get_host(self) -> str:
        return "localhost"
