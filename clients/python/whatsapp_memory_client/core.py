"""What both clients share and that needs no network: calls, errors, when a call is tried again, and
the events of a stream."""

from __future__ import annotations

import codecs
import json
import random
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Generic, Literal, TypeVar, cast
from urllib.parse import quote

import httpx

from .models import ApiError, ChatAnswer

T = TypeVar("T")
P = TypeVar("P")
API = "/api/v1"


class MemoryClientError(Exception):
    """Everything that a client raises of itself."""


class ConnectionFailed(MemoryClientError):
    """No answer came: the server can't be reached, was too slow, or the connection was cut."""


class APIError(MemoryClientError):
    """The server refused a call, or answered with something else than the API.

    code: names the error, such as ``not_found``; of an answer that isn't the API's own
        ``unexpected_answer``. errors: all of them, each with the place where it is. request_id:
    names the call in the server's log. retry_after: seconds, where the server gave them.
    """

    def __init__(
        self,
        status: int,
        errors: list[ApiError],
        *,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.errors = errors
        self.code = errors[0]["code"]
        self.request_id = request_id
        self.retry_after = retry_after
        # Other processes make it anew of these.
        super().__init__(status, errors)

    def __str__(self) -> str:
        places = [f"{each['attr']}: " if each["attr"] else "" for each in self.errors]
        details = (at + each["detail"] for at, each in zip(places, self.errors, strict=True))
        shown_id = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status} {self.code}: {' '.join(details)}{shown_id}"


class InvalidRequest(APIError):
    """400, 413, 422: the call itself is wrong."""


class AuthenticationFailed(APIError):
    """401: no token, or one that is unknown, expired or revoked."""


class PermissionDenied(APIError):
    """403: the token may not do this, or memory is off."""


class NotFound(APIError):
    """404: it doesn't exist, was forgotten, or the token doesn't reach it."""


class Conflict(APIError):
    """409: not possible in the state in which the object is."""


class VersionChanged(APIError):
    """412: somebody else changed the object since it was read."""


class TooManyCalls(APIError):
    """429: the token's calls of this minute are used up."""


class ServerFailed(APIError):
    """5xx: the server, or a proxy before it, could not answer."""


BY_STATUS = {
    **dict.fromkeys((400, 413, 414, 415, 422, 431), InvalidRequest),
    401: AuthenticationFailed,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    412: VersionChanged,
    429: TooManyCalls,
}


def error_of(status: int, errors: list[ApiError], **known: Any) -> APIError:
    """The exception for a status."""
    kind = BY_STATUS.get(status, ServerFailed if status >= 500 else APIError)
    return kind(status, errors, **known)


@dataclass(frozen=True)
class Call(Generic[T]):
    """A call that a client can send, as `operations` makes them; T is the answer's type.

    key: the Idempotency-Key; None: a new one, where the operation takes one; empty: none.
    """

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    form: Mapping[str, object] | None = None
    content: bytes | None = None
    content_type: str = "application/json"
    if_match: str | None = None
    if_none_match: str | None = None
    takes_key: bool = False
    key: str | None = None


@dataclass(frozen=True)
class ListCall(Call[P], Generic[P, T]):
    """A call whose answer P is a page of T."""


@dataclass(frozen=True)
class Reply(Generic[T]):
    """An answer with what its headers say. replayed: the call had been made before."""

    data: T
    status: int
    etag: str | None
    location: str | None
    request_id: str | None
    replayed: bool


def quoted(name: str) -> str:
    """An id as a part of an address. Raises ValueError for what would name another address."""
    if name in ("", ".", ".."):
        raise ValueError(f"An id can't be {name!r}.")
    return quote(str(name), safe="@")


def base_of(url: str) -> str:
    """The address of the API of a server whose address is given, with or without the API's path."""
    url = url.strip().rstrip("/")
    if not re.match(r"https?://[^/]", url):
        raise ValueError(f"The server's address must begin with http:// or https://, not {url!r}.")
    return url if url.endswith(API) else url + API


def request_of(
    http: httpx.Client | httpx.AsyncClient, base: str, call: Call[Any], key: str
) -> httpx.Request:
    """What is sent for a call."""
    headers = {"If-Match": call.if_match, "If-None-Match": call.if_none_match}
    headers["Idempotency-Key"] = key or None
    given: dict[str, Any] = {}
    if call.form is not None:
        files = {name: each for name, each in call.form.items() if isinstance(each, tuple)}
        given = {"files": files, "data": {k: v for k, v in call.form.items() if k not in files}}
    elif call.body is not None or call.content is not None:
        headers["Content-Type"] = call.content_type
        text = json.dumps(call.body, default=_plain, ensure_ascii=False)
        given = {
            "content": text.encode("utf-8", "surrogatepass")
            if call.content is None
            else call.content
        }
    return http.build_request(
        call.method,
        f"{base}/{call.path}",
        params={name: _in_address(each) for name, each in call.query.items() if each is not None},
        headers={name: each for name, each in headers.items() if each is not None},
        **given,
    )


def _plain(value: object) -> object:
    """What JSON has no form for: times, and sequences and mappings of other types."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} can't be sent as JSON.")


def _in_address(value: object) -> Any:
    if isinstance(value, datetime):
        return _plain(value)
    return json.dumps(value, default=_plain) if isinstance(value, Mapping) else value


def given(**fields: Any) -> Any:
    """The fields that are not None."""
    return {name: each for name, each in fields.items() if each is not None}


def check(answer: httpx.Response, *, wanted: str) -> None:
    """Raise APIError for a refusal, and for an answer of another type than is wanted. The answer's
    content must have been read."""
    if answer.is_success and wanted in answer.headers.get("Content-Type", ""):
        return
    try:
        errors: list[ApiError] = answer.json()["errors"]
        codes = [each["code"] for each in errors]
    except (ValueError, TypeError, KeyError):
        codes = []
    if not codes:
        errors = [unexpected(answer)]
    raise error_of(
        answer.status_code,
        errors,
        request_id=answer.headers.get("X-Request-ID"),
        retry_after=seconds_of(answer.headers.get("Retry-After")),
    )


def unexpected(answer: httpx.Response) -> ApiError:
    """The error for an answer that isn't the API's: another server's, or a proxy's."""
    if answer.is_redirect:
        detail = f"The server is at another address: {answer.headers.get('Location')}"
    else:
        kind = answer.headers.get("Content-Type", "no content type")
        detail = f"{answer.url} answered with {kind}, not as the API: {answer.text[:200]!r}"
    return {"code": "unexpected_answer", "detail": detail, "attr": None}


def reply_of(call: Call[T], answer: httpx.Response) -> Reply[T]:
    """Read an answer, or raise APIError."""
    # An answer without content has no type.
    check(answer, wanted="json" if answer.content else "")
    is_lines = "ndjson" in answer.headers.get("Content-Type", "")
    try:
        data = answer.content if is_lines else answer.json() if answer.content else None
    except ValueError:
        raise error_of(answer.status_code, [unexpected(answer)]) from None
    return Reply(
        cast("T", data),
        answer.status_code,
        answer.headers.get("ETag"),
        answer.headers.get("Location"),
        answer.headers.get("X-Request-ID"),
        answer.headers.get("Idempotent-Replayed") == "true",
    )


def seconds_of(retry_after: str | None) -> float | None:
    """How long Retry-After says to wait: seconds, or a date."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


@dataclass(frozen=True)
class RetryPolicy:
    """retries: how often a call is tried again. max_wait: the seconds of one wait at most; where
    the server asks for more, its refusal is raised at once. first_wait: doubled each time."""

    retries: int = 4
    max_wait: float = 60.0
    first_wait: float = 0.5


FAILURES = (httpx.RequestError, APIError)
# Of proxies, too.
RETRIED = frozenset({408, 429, 502, 503, 504})
# Nothing was done.
REFUSED = frozenset({429, 503})


class Attempts:
    """The attempts of one call, all with the same Idempotency-Key."""

    def __init__(self, call: Call[Any], policy: RetryPolicy) -> None:
        self._policy = policy
        self._made = 0
        self.key = (str(uuid.uuid4()) if call.key is None else call.key) if call.takes_key else ""
        # Without a key a second call would find the version changed by the first.
        is_conditional = call.if_match is not None or call.if_none_match is not None
        needs_key = call.takes_key or is_conditional
        self._repeatable = bool(self.key) or not needs_key

    def wait_after(self, error: httpx.RequestError | APIError) -> float:
        """How many seconds to wait before the next attempt. Raises the error when there is none."""
        self._made += 1
        backoff = min(self._policy.first_wait * 2.0 ** (self._made - 1), self._policy.max_wait)
        wait = backoff * random.uniform(0.5, 1)  # noqa: S311
        if isinstance(error, APIError) and error.retry_after is not None:
            wait = error.retry_after
        again = self._made <= self._policy.retries and wait <= self._policy.max_wait
        if again and self._may_repeat(error):
            return wait
        if isinstance(error, APIError):
            raise error
        tried = "once" if self._made == 1 else f"{self._made} times"
        what = str(error) or type(error).__name__
        raise ConnectionFailed(f"No answer, tried {tried}: {what}") from error

    def _may_repeat(self, error: httpx.RequestError | APIError) -> bool:
        if isinstance(error, APIError):
            if error.code == "idempotency_in_progress" or error.status in REFUSED:
                return True
            return self._repeatable and error.status in RETRIED
        if isinstance(error, httpx.LocalProtocolError):
            # Such as a line end in a key: it was never sent, and never will be.
            return False
        return self._repeatable or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)


@dataclass(frozen=True)
class ChatEvent:
    """accepted: the message is stored; data has its ids. delta: the next piece of the reply, in
    text. done: data is the whole answer, of which `outcome` says whether it is one."""

    event: Literal["accepted", "delta", "done"]
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """The piece of the reply; empty for the other events."""
        return str(self.data["text"]) if self.event == "delta" else ""

    @property
    def answer(self) -> ChatAnswer | None:
        """The whole answer; None for the other events."""
        return cast("ChatAnswer", self.data) if self.event == "done" else None


class EventDecoder:
    """Reads server-sent events from bytes that come in any pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._line = ""
        self._after_cr = False
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str]]:
        """Yield the events that are complete now, each with its data."""
        text = self._decoder.decode(chunk)
        if self._after_cr and text.startswith("\n"):
            text, self._after_cr = text[1:], False
        if text:
            self._after_cr = text.endswith("\r")
        *lines, self._line = re.split(r"\r\n|\r|\n", self._line + text)
        for line in lines:
            if line:
                self._take(line)
            else:
                event, data, self._event, self._data = self._event, self._data, "", []
                if data:
                    yield event or "message", "\n".join(data)

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)


class ChatEvents:
    """The events of one answer, of which a stream that is begun anew repeats those that came."""

    def __init__(self) -> None:
        self._accepted = False
        self._given = 0

    def begin(self) -> None:
        """A stream begins, at its first event."""
        self._decoder = EventDecoder()
        self._seen = 0

    def feed(self, chunk: bytes) -> Iterator[ChatEvent]:
        """Yield what is new. Raises APIError where the server could not answer."""
        for name, text in self._decoder.feed(chunk):
            data = json.loads(text)
            if name == "error":
                status = 409 if data["type"] == "client_error" else 500
                raise error_of(status, data["errors"])
            if name == "delta":
                start = self._seen
                self._seen += len(data["text"])
                fresh = data["text"][max(0, self._given - start) :]
                self._given = max(self._given, self._seen)
                if fresh:
                    yield ChatEvent("delta", {"text": fresh})
            elif name == "done" or (name == "accepted" and not self._accepted):
                self._accepted = True
                yield ChatEvent(cast("Literal['accepted', 'done']", name), data)
