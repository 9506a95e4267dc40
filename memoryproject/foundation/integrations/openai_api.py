"""The connection to an OpenAI-compatible server that the chat model and the embedder share.

It uses one SDK client, and converts every failure to an AttemptFailed with a text for staff.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TypeVar
from urllib.parse import urlsplit

import openai

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.retry import AttemptFailed, parse_retry_after

DEFAULT_BASE_URL = "https://api.openai.com/v1"
CONNECT_TIMEOUT = 5.0
MAX_SERVER_TEXT_LENGTH = 300

# The SDK refuses to start without a key. Servers that need none ignore it.
NO_KEY = "no-key"
LOOPBACK_HOSTS = {"127.0.0.1", "::1", "localhost"}
RETRIED_CLIENT_ERRORS = {408, 409, 425, 429}
# A 429 that waiting doesn't resolve: staff must pay or raise a limit.
QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
REFUSED_STATUSES = {400, 422}
TOO_LONG_CODES = {"context_length_exceeded", "string_above_max_length"}
KEY_PATTERN = re.compile(r"\bsk-[\w*.-]+|(?<=Bearer )\S+")

T = TypeVar("T")


class OpenAIConnection:
    """An SDK client for one server. Holds sockets: close() frees them."""

    def __init__(self, api_key: str | None, base_url: str | None, *, timeout: float) -> None:
        """Create the client. An empty key or URL means no key and OpenAI's own server.

        Raises ValueError for a URL that isn't http(s).
        """
        self._key = (api_key or "").strip()
        self._timeout = timeout
        url = (base_url or "").strip() or DEFAULT_BASE_URL
        self._client = openai.OpenAI(
            api_key=self._key or NO_KEY,
            base_url=url,
            max_retries=0,
            timeout=openai.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT)),
            http_client=_http_client(url),
        )

    def close(self) -> None:
        self._client.close()

    def call(self, request: Callable[[openai.OpenAI], T]) -> T:
        """Run one request without retries. Raises AttemptFailed, with no secret in it."""
        # Without "from None", a logged traceback would show data that the server repeated.
        try:
            return request(self._client)
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APITimeoutError:
            raise AttemptFailed(ErrorText("model_timeout", seconds=f"{self._timeout:g}")) from None
        except openai.APIConnectionError:
            raise AttemptFailed(ErrorText("model_unreachable")) from None
        except UnicodeEncodeError:
            raise AttemptFailed(ErrorText("model_characters"), permanent=True) from None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            # The SDK checks little of what it parses: an unexpected body raises any of these.
            raise unreadable_answer() from None

    def _refusal(self, error: openai.APIStatusError) -> AttemptFailed:
        """Convert an HTTP error status to an AttemptFailed."""
        status = error.status_code
        out_of_quota = status == 429 and bool(QUOTA_CODES & {error.code, error.type})
        permanent = out_of_quota or (status < 500 and status not in RETRIED_CLIENT_ERRORS)
        text = self._without_secrets(_server_text(error))
        return AttemptFailed(
            ErrorText("model_refused", status=status, words=text)
            if text
            else ErrorText("model_status", status=status),
            permanent=permanent,
            too_long=error.code in TOO_LONG_CODES,
            refused=status in REFUSED_STATUSES,
            retry_after=parse_retry_after(
                error.response.headers.get("retry-after"), now=datetime.now(timezone.utc)
            ),
        )

    def _without_secrets(self, text: str) -> str:
        if self._key:
            text = text.replace(self._key, "[key]")
        text = " ".join(KEY_PATTERN.sub("[key]", text).split())
        if len(text) <= MAX_SERVER_TEXT_LENGTH:
            return text
        return text[: MAX_SERVER_TEXT_LENGTH - 1] + "…"


def unreadable_answer() -> AttemptFailed:
    """Return the failure for an answer in the wrong form; a retry may help."""
    return AttemptFailed(ErrorText("model_unreadable"))


def _server_text(error: openai.APIStatusError) -> str:
    body = error.body
    text = body.get("message") if isinstance(body, dict) else None
    return text if isinstance(text, str) else ""


def _http_client(url: str) -> openai.DefaultHttpxClient | None:
    """Return a client without proxies for a server on this machine: a proxy can't reach it."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("The OpenAI base URL must start with http:// or https:// and name a host")
    if parts.hostname in LOOPBACK_HOSTS:
        return openai.DefaultHttpxClient(trust_env=False)
    return None
