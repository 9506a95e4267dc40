"""The connection to an OpenAI-compatible server that the chat model and the embedder share.

It uses one SDK client, and converts every failure to an AttemptFailed with a text for staff.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
import openai

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.context_limit import read_overflow
from memoryproject.foundation.integrations.retry import AttemptFailed, parse_retry_after
from memoryproject.foundation.outside_services.guards import (
    TIMEOUT_WEIGHT,
    Guard,
    ServicePausedError,
    Unguarded,
    time_left,
)
from memoryproject.foundation.process.tracing import call_span, current_span, note_status
from memoryproject.foundation.text.characters import storable

DEFAULT_BASE_URL = "https://api.openai.com/v1"
CONNECT_TIMEOUT = 5.0
# An attempt with less time is not begun.
MIN_ATTEMPT_SECONDS = 0.1
MAX_SERVER_TEXT_LENGTH = 300

# The SDK refuses to start without a key. Servers that need none ignore it.
NO_KEY = "no-key"
LOOPBACK_HOSTS = {"127.0.0.1", "::1", "localhost"}
RETRIED_CLIENT_ERRORS = {408, 409, 425, 429}
# A 429 that waiting doesn't resolve: staff must pay or raise a limit.
# The server can't serve anybody: the key or the account is refused.
REFUSED_ACCOUNT = {401, 402, 403}
# The address or the model's name is wrong: staff mend it.
UNKNOWN_STATUSES = {404, 405}
QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
REFUSED_STATUSES = {400, 422}
KEY_PATTERN = re.compile(r"\bsk-[\w*.-]+|(?<=Bearer )\S+")

T = TypeVar("T")


class OpenAIConnection:
    """An SDK client for one server. Holds sockets: close() frees them.

    ``timeout``: seconds for one attempt. ``guard`` keeps a sick server from being called.
    """

    def __init__(
        self,
        api_key: str | None,
        base_url: str | None,
        *,
        timeout: float,
        guard: Guard | None = None,
    ) -> None:
        """Create the client. An empty key or URL means no key and OpenAI's own server.

        Raises ValueError for a URL that isn't http(s).
        """
        self._guard = guard or Unguarded()
        self._key = (api_key or "").strip()
        self._timeout = timeout
        url = (base_url or "").strip() or DEFAULT_BASE_URL
        self._url = url
        self._client = openai.OpenAI(
            api_key=self._key or NO_KEY,
            base_url=url,
            max_retries=0,
            timeout=_timeouts(timeout),
            http_client=_http_client(url),
        )

    def close(self) -> None:
        self._client.close()

    def call(self, request: Callable[[openai.OpenAI], T]) -> T:
        """Run one request without retries, within the deadline if one is set.

        Raises AttemptFailed, with no secret in it.
        """
        left = time_left()
        timeout = self._timeout if left is None else min(self._timeout, left)
        if timeout < MIN_ATTEMPT_SECONDS:
            raise AttemptFailed(ErrorText("answer_deadline"), permanent=True, is_outside=True)
        try:
            return self._guard.call(lambda: self._attempt(request, timeout))
        except ServicePausedError:
            raise AttemptFailed(
                ErrorText("service_paused"), permanent=True, is_outside=True
            ) from None

    def _attempt(self, request: Callable[[openai.OpenAI], T], timeout: float) -> T:
        client = self._client
        if timeout != self._timeout:
            client = client.with_options(timeout=_timeouts(timeout))
        # Without "from None", a logged traceback would show data that the server repeated.
        try:
            with call_span("POST", self._url):
                return request(client)
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APITimeoutError:
            raise AttemptFailed(
                ErrorText("model_timeout", seconds=f"{timeout:.3g}"), sickness=TIMEOUT_WEIGHT
            ) from None
        except openai.APIConnectionError:
            raise AttemptFailed(ErrorText("model_unreachable"), sickness=1) from None
        except UnicodeEncodeError:
            raise AttemptFailed(ErrorText("model_characters"), permanent=True) from None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            # The SDK checks little of what it parses: an unexpected body raises any of these.
            raise unreadable_answer() from None

    def _refusal(self, error: openai.APIStatusError) -> AttemptFailed:
        """Convert an HTTP error status to an AttemptFailed."""
        status = error.status_code
        out_of_quota = status == 429 and bool(QUOTA_CODES & {error.code, error.type})
        overflow = read_overflow(status, error.body)
        permanent = (
            out_of_quota
            or overflow is not None
            or (status < 500 and status not in RETRIED_CLIENT_ERRORS)
        )
        is_sick = not permanent or out_of_quota or status in REFUSED_ACCOUNT | UNKNOWN_STATUSES
        text = self._without_secrets(_server_text(error))
        return AttemptFailed(
            ErrorText("model_refused", status=status, words=text)
            if text
            else ErrorText("model_status", status=status),
            permanent=permanent,
            overflow=overflow,
            refused=status in REFUSED_STATUSES,
            sickness=int(is_sick),
            retry_after=parse_retry_after(
                error.response.headers.get("retry-after"), now=datetime.now(timezone.utc)
            ),
        )

    def _without_secrets(self, text: str) -> str:
        if self._key:
            text = text.replace(self._key, "[key]")
        text = " ".join(KEY_PATTERN.sub("[key]", storable(text)).split())
        if len(text) <= MAX_SERVER_TEXT_LENGTH:
            return text
        return text[: MAX_SERVER_TEXT_LENGTH - 1] + "…"


def unreadable_answer() -> AttemptFailed:
    """Return the failure for an answer in the wrong form; a retry may help."""
    return AttemptFailed(ErrorText("model_unreadable"), sickness=1)


def _server_text(error: openai.APIStatusError) -> str:
    body = error.body
    # LM Studio sends a text where others send an object.
    text = body.get("message") if isinstance(body, dict) else body
    return text if isinstance(text, str) else ""


def _timeouts(seconds: float) -> openai.Timeout:
    return openai.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT))


class _TimedBody(httpx2.SyncByteStream):
    """A body that must end in time: the client's own timeout starts anew with each block."""

    def __init__(self, body: httpx2.SyncByteStream, ends_at: float) -> None:
        self._body = body
        self._ends_at = ends_at

    def __iter__(self) -> Iterator[bytes]:
        for block in self._body:
            if time.monotonic() > self._ends_at:
                raise httpx2.ReadTimeout("the body did not end in time")
            yield block

    def close(self) -> None:
        self._body.close()


def _note_start(request: httpx2.Request) -> None:
    request.extensions["started"] = time.monotonic()


def _note_status(response: httpx2.Response) -> None:
    if around := current_span():
        note_status(around, response.status_code)


def _time_body(response: httpx2.Response) -> None:
    extensions = response.request.extensions
    ends_at = extensions["started"] + extensions["timeout"]["read"]
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _TimedBody(response.stream, ends_at)


def _http_client(url: str) -> openai.DefaultHttpxClient:
    """Return the HTTP client: without proxies for a server on this machine, which none reaches."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("The OpenAI base URL must start with http:// or https:// and name a host")
    return openai.DefaultHttpxClient(
        trust_env=parts.hostname not in LOOPBACK_HOSTS,
        event_hooks={"request": [_note_start], "response": [_note_status, _time_body]},
    )
