"""What the loopback OpenAI server can be told to do with its next request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Behaviour:
    """One entry of a script; by default a request is answered properly.

    delay: seconds to wait first. hang_up: close the connection without an answer.
    error: answer ``status`` with this error object. raw: answer these bytes as they are.
    text, finish_reason: what the model says and why it stops; text None is the server's own.
    change: gets the proper answer's JSON and returns what is sent instead.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    hang_up: bool = False
    error: Json | None = None
    raw: bytes | None = None
    text: str | None = None
    finish_reason: str = "stop"
    change: Callable[[Json], Json] | None = None


def says(text: str, *, finish_reason: str = "stop") -> Behaviour:
    """The model answers this text."""
    return Behaviour(text=text, finish_reason=finish_reason)


def changed(change: Callable[[Json], Json]) -> Behaviour:
    """The proper answer, changed: without its usage, in another order, of another form."""
    return Behaviour(change=change)


def raw(body: bytes, *, headers: dict[str, str] | None = None) -> Behaviour:
    """200 with these bytes."""
    return Behaviour(raw=body, headers=headers or {})


def hangs_up() -> Behaviour:
    """The connection breaks before an answer."""
    return Behaviour(hang_up=True)


def slow(seconds: float, then: Behaviour | None = None) -> Behaviour:
    """Something, by default a proper answer, after a while. A server that closes doesn't
    wait for it."""
    return replace(then or Behaviour(), delay=seconds)


def fails(status: int, message: str = "The server had an error", code: str = "") -> Behaviour:
    """An error status with OpenAI's error object."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return Behaviour(status=status, error=error_object(message, kind=kind, code=code or None))


def rate_limited(retry_after: str | None = None) -> Behaviour:
    """429: too many requests for now. ``retry_after`` is the header's text."""
    return Behaviour(
        status=429,
        headers={} if retry_after is None else {"Retry-After": retry_after},
        error=error_object(
            "Rate limit reached for requests", kind="requests", code="rate_limit_exceeded"
        ),
    )


def quota_exceeded() -> Behaviour:
    """429: the account has no credit left."""
    message = "You exceeded your current quota, please check your plan and billing details."
    error = error_object(message, kind="insufficient_quota", code="insufficient_quota")
    return Behaviour(status=429, error=error)


def error_object(
    message: str, *, kind: str, code: str | None = None, param: str | None = None
) -> Json:
    """The body of an error answer."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
