"""The connection to an OpenAI-compatible server that the chat model and the embedder share.

It uses one SDK client, and converts every failure to an AttemptFailed with a text for staff.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit, urlunsplit

import httpx2
import openai

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.context_limit import read_overflow
from memoryproject.foundation.integrations.llm.reading import filtered, is_filtered, words_of
from memoryproject.foundation.integrations.retry import AttemptFailed, retry_after
from memoryproject.foundation.outside_services import guards
from memoryproject.foundation.process.tracing import call_span, current_span, note_status
from memoryproject.foundation.text.characters import storable

DEFAULT_BASE_URL = "https://api.openai.com/v1"
CONNECT_TIMEOUT = 5.0
# An attempt with less time is not begun.
MIN_ATTEMPT_SECONDS = 0.1
MAX_SERVER_TEXT_LENGTH = 300
MIN_SECRET_LENGTH = 16

# The SDK refuses to start without a key. Servers that need none ignore it.
NO_KEY = "no-key"
# What people copy with a base URL.
ENDPOINTS = ("/chat/completions", "/completions", "/embeddings", "/audio/transcriptions", "/models")
LOOPBACK_HOSTS = {"127.0.0.1", "::1", "localhost"}
RETRIED_CLIENT_ERRORS = {408, 409, 425, 429}
# A 429 that waiting doesn't resolve: staff must pay or raise a limit.
# The server can't serve anybody: the key or the account is refused.
REFUSED_ACCOUNT = {401, 402, 403}
# The address or the model's name is wrong: staff mend it.
UNKNOWN_STATUSES = {404, 405}
QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
# A refusal of the form of a request: without a word, and by words that name a part of it. llama.cpp
# reports what its templates refuse as a fault of its own, OpenRouter as a model that isn't found.
REFUSED_STATUSES = {400, 422}
REFUSED_BY_WORDS = {400, 404, 405, 415, 422, 500, 501}
KEY_PATTERN = re.compile(r"\bsk-[\w*.-]+|(?<=Bearer )\S+")

T = TypeVar("T")


class OpenAIConnection:
    """An SDK client for one server, ``client``. Holds sockets: close() frees them.

    ``timeout``: seconds for one attempt. ``guard`` keeps a sick server from being called.
    ``headers``: of each request, besides the usual. ``api_version``: that of Azure's classic
    interface, whose addresses name the model.
    """

    def __init__(
        self,
        api_key: str | None,
        base_url: str | None,
        *,
        timeout: float = 30.0,
        guard: guards.Guard | None = None,
        headers: Sequence[tuple[str, str]] = (),
        api_version: str = "",
    ) -> None:
        """Create the client. An empty key or URL means no key and OpenAI's own server.

        Raises ValueError for a URL that isn't http(s).
        """
        self._guard = guard or guards.Unguarded()
        self._key = (api_key or "").strip()
        self._timeout = timeout
        # A shorter header is no secret, but may be a name of the business.
        hidden = [value for _, value in headers if len(value) >= MIN_SECRET_LENGTH]
        self._secrets = [value for value in (self._key, *hidden) if value]
        url, version = _address((base_url or "").strip() or DEFAULT_BASE_URL)
        self._url = url
        self.client = _client(url, api_version or version, self._key, timeout, dict(headers))

    def close(self) -> None:
        self.client.close()

    def call(self, request: Callable[[openai.OpenAI], T]) -> T:
        """Run one request without retries, within the deadline if one is set.

        Raises AttemptFailed, with no secret in it.
        """
        left = guards.time_left()
        timeout = self._timeout if left is None else min(self._timeout, left)
        if timeout < MIN_ATTEMPT_SECONDS:
            raise AttemptFailed(ErrorText("answer_deadline"), permanent=True, is_outside=True)
        try:
            return self._guard.call(lambda: self._attempt(request, timeout))
        except guards.ServicePausedError:
            raise AttemptFailed(
                ErrorText("service_paused"), permanent=True, is_outside=True, is_unasked=True
            ) from None

    def post(self, path: str, body: Mapping[str, Any], read: Callable[[bytes], T]) -> T:
        """Post the JSON and return what ``read`` makes of the response's body.

        See ``call``. What ``read`` raises counts as the server's failure, too.
        """

        # The package's own functions compare each message with the types of all that a request may
        # hold, which takes longer than to build an answer's prompt.
        def request(client: openai.OpenAI) -> T:
            content = client.post(path, body=body, cast_to=httpx2.Response).content
            try:
                return read(content)
            except AttemptFailed:
                # Its words may repeat a secret. An answer is never changed.
                for secret in self._secrets:
                    content = content.replace(secret.encode(), b"[key]")
                return read(content)

        return self.call(request)

    def _attempt(self, request: Callable[[openai.OpenAI], T], timeout: float) -> T:
        client = self.client
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
                ErrorText("model_timeout", seconds=f"{timeout:.3g}"), sickness=guards.TIMEOUT_WEIGHT
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
        words = words_of(error.body)
        if is_filtered(error.body) and status in REFUSED_STATUSES:
            return filtered()
        text = self.without_secrets(words)
        return AttemptFailed(
            ErrorText("model_refused", status=status, words=text)
            if text
            else ErrorText("model_status", status=status),
            permanent=permanent,
            overflow=overflow,
            refused=status in (REFUSED_BY_WORDS if text else REFUSED_STATUSES),
            words=words,
            sickness=int(is_sick),
            retry_after=retry_after(error.response.headers),
        )

    def without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        text = " ".join(KEY_PATTERN.sub("[key]", storable(text)).split())
        if len(text) <= MAX_SERVER_TEXT_LENGTH:
            return text
        return text[: MAX_SERVER_TEXT_LENGTH - 1] + "…"


def unreadable_answer() -> AttemptFailed:
    """Return the failure for an answer in the wrong form; a retry may help."""
    return AttemptFailed(ErrorText("model_unreadable"), sickness=1)


def _address(url: str) -> tuple[str, str]:
    """Return the base URL, and the version that Azure's classic addresses have, or "".

    People copy the address of a whole call.
    """
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    for ending in ENDPOINTS:
        path = path.removesuffix(ending)
    versions = parse_qs(parts.query).get("api-version", [""])
    return urlunsplit(parts._replace(path=path, query="", fragment="")), versions[0]


def _client(
    url: str, api_version: str, key: str, timeout: float, headers: Mapping[str, str]
) -> openai.OpenAI:
    common: dict[str, Any] = {
        "api_key": key or NO_KEY,
        "max_retries": 0,
        "timeout": _timeouts(timeout),
        "http_client": _http_client(url),
        "default_headers": headers,
    }
    if not api_version:
        return openai.OpenAI(base_url=url, **common)
    # The client adds the deployment, which is the model's name, where the address has none.
    has_path = urlsplit(url).path.strip("/") != ""
    base_url = url if has_path else f"{url.rstrip('/')}/openai"
    return openai.AzureOpenAI(base_url=base_url, api_version=api_version, **common)


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
