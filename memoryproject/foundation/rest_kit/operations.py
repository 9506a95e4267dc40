"""Descriptions of single operations for the schema: texts, examples, headers, parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema

Arguments = ParamSpec("Arguments")
Handler = TypeVar("Handler", bound=Callable[..., Any])
Annotation = Callable[[Handler], Handler]


def _recorded(
    annotation: Callable[Arguments, Annotation[Handler]],
) -> Callable[Arguments, Annotation[Handler]]:
    """Return a decorator that records the annotation, and leaves it to ``Generator`` to apply it.

    Applying it imports the generator of schemas, which is slow and which only the schema needs.
    """

    def described(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Annotation[Handler]:
        def record(handler: Handler) -> Handler:
            handler.annotate_schema = annotation(*args, **kwargs)  # type: ignore[attr-defined]
            return handler

        return record

    return described


described = _recorded(extend_schema)


def request_example(name: str, value: Any) -> OpenApiExample:
    """Return an example of a request body."""
    return OpenApiExample(name, value=value, request_only=True)


def response_example(
    name: str, value: Any, *, status: int = 200, media_type: str | None = None
) -> OpenApiExample:
    """Return an example of a response."""
    return OpenApiExample(
        name,
        value=value,
        response_only=True,
        status_codes=[str(status)],
        media_type=media_type,
    )


def header(name: str, description: str, *statuses: int, always: bool = True) -> OpenApiParameter:
    """Return a header of the responses with these statuses."""
    return OpenApiParameter(
        name,
        str,
        OpenApiParameter.HEADER,
        description=description,
        required=always,
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
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag of the version that is meant: else 412.",
)
