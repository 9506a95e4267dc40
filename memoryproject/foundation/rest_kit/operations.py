"""What the schema says of single operations: texts, examples, headers, and their errors."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework.exceptions import APIException, NotAcceptable

from memoryproject.foundation.rest_kit import errors

Handler = TypeVar("Handler", bound=Callable[..., Any])


def described(**options: Any) -> Callable[[Handler], Handler]:
    """Record what ``extend_schema`` takes of a view's method, and leave it to ``Generator``.

    ``extend_schema`` imports the generator of schemas, which is slow and which only the schema
    needs.
    """

    def record(handler: Handler) -> Handler:
        handler.schema_options = options  # type: ignore[attr-defined]
        return handler

    return record


def example(row: Mapping[str, Any]) -> OpenApiExample:
    """Return an example of a body: see ``examples.yaml``."""
    is_request = "request" in row
    return OpenApiExample(
        row["request" if is_request else "response"],
        value=row["value"],
        request_only=is_request,
        response_only=not is_request,
        status_codes=[str(row.get("status", 200))],
        media_type=row.get("media_type"),
    )


def header(name: str, description: str, *statuses: int) -> OpenApiParameter:
    """Return a header of the responses with these statuses."""
    return OpenApiParameter(
        name,
        str,
        OpenApiParameter.HEADER,
        description=description,
        required=True,
        response=list(statuses),
    )


def etag(*statuses: int) -> OpenApiParameter:
    return header("ETag", "This version: for `If-None-Match` and `If-Match`.", *statuses)


def location(*statuses: int) -> OpenApiParameter:
    return header("Location", "The address of what was created.", *statuses)


def path_parameter(name: str, description: str, schema: dict[str, Any]) -> OpenApiParameter:
    """Return a parameter of the address."""
    return OpenApiParameter(name, schema, OpenApiParameter.PATH, description=description)


IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="ETags that are known: else 304."
)


def only_new(what: str) -> OpenApiParameter:
    return OpenApiParameter(
        "If-None-Match",
        str,
        OpenApiParameter.HEADER,
        description=f"*: only where there is no such {what}, else 412.",
    )


IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag of the version that is meant: else 412.",
)


def versioned(serializer: Any, *parameters: OpenApiParameter) -> dict[str, Any]:
    """Return what ``described`` takes of a GET whose object has an ETag."""
    return {
        "parameters": [*parameters, IF_NONE_MATCH, etag(200, 304)],
        "responses": {200: serializer, 304: OpenApiResponse(description=NOT_MODIFIED)},
    }


# The error responses. Each status has its meaning, an example and its headers.

WAIT = {"Retry-After": "So many seconds later it is worth another try."}


@dataclass(frozen=True)
class Refusal:
    """One meaning of an error response.

    ``code``, ``detail``, ``attr``: those of the example.
    ``always``: headers that the response always has.
    ``sometimes``: headers that it may have.
    """

    status: int
    meaning: str
    kind: str = "client_error"
    code: str = ""
    detail: Any = ""
    attr: str | None = None
    always: Mapping[str, str] = field(default_factory=dict)
    sometimes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, error: type[APIException], meaning: str, **headers: Mapping[str, str]) -> "Refusal":
        """Return the refusal that a view makes by raising this error, with its own words."""
        status, code = error.status_code, str(error.default_code)
        kind = "server_error" if status >= 500 else "client_error"
        return cls(status, meaning, kind, code, error.default_detail, None, **headers)

    def example(self) -> dict[str, Any]:
        error = {"code": self.code, "detail": str(self.detail), "attr": self.attr}
        return {"type": self.kind, "errors": [error]}

    def headers(self) -> dict[str, Any]:
        return {
            name: {"description": text, "required": required, "schema": {"type": "string"}}
            for required, headers in ((True, self.always), (False, self.sometimes))
            for name, text in headers.items()
        }


# Those that no error of ours has words for, by status.
_DESCRIBED = {
    row["status"]: Refusal(**row)
    for row in json.loads(Path(__file__).with_name("refusals.json").read_text(encoding="utf-8"))
}
# Possible for every operation.
ALWAYS = (
    *(_DESCRIBED[status] for status in (400, 401, 403, 404)),
    Refusal.of(NotAcceptable, "`Accept` names no form in which this can be answered."),
    _DESCRIBED[429],
    Refusal.of(
        errors.Unavailable, "Something that is needed is down. Nothing was changed.", always=WAIT
    ),
    _DESCRIBED[507],
)
WITH_BODY = (
    Refusal.of(
        errors.LengthRequired,
        "The body came in chunks, which the web server in front doesn't pass on.",
    ),
    _DESCRIBED[413],
    _DESCRIBED[415],
)
WITH_KEY = (
    Refusal.of(
        errors.StillRunning,
        "The first call with this Idempotency-Key isn't finished, or its answer isn't kept.",
        sometimes=WAIT,
    ),
    Refusal.of(errors.AnotherBody, "This Idempotency-Key was used for another call."),
)
NOT_MODIFIED = "What `If-None-Match` names is still so."
CHANGED_MEANWHILE = Refusal.of(errors.PreconditionFailed, "It was changed since it was read.")


def conflicting(meaning: str, detail: str, code: str = "conflict") -> Refusal:
    """Return a 409: the call isn't possible in the object's current state."""
    return Refusal(409, meaning, code=code, detail=detail)


def refusals(
    method: str, *, takes_key: bool, own: Sequence[Refusal]
) -> list[tuple[str, list[Refusal]]]:
    """Return all error responses of an operation by status; some statuses have several meanings."""
    shared = [*own, *ALWAYS]
    if method in ("POST", "PUT", "PATCH"):
        shared += WITH_BODY
    if takes_key:
        shared += WITH_KEY
    by_status: dict[str, list[Refusal]] = {}
    for each in shared:
        by_status.setdefault(str(each.status), []).append(each)
    return sorted(by_status.items())
