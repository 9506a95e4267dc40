"""Post over HTTP, only to addresses that were checked."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import datetime, timezone

import httpx

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.network.addresses import (
    AddressError,
    AddressRules,
    url_parsed,
)
from memoryproject.foundation.integrations.network.checked_transport import checked_client
from memoryproject.foundation.integrations.network.poster import Posted, PostError
from memoryproject.foundation.integrations.retry import parse_retry_after
from memoryproject.foundation.process.tracing import call_span, note_status

# For the whole request: connecting, TLS, sending and the response, however slowly it arrives.
MAX_SECONDS = 15.0
# Enough for usual responses. Their content is ignored.
MAX_BYTES = 4_096


class HttpPoster:
    """Posts each body over a new connection.

    No proxy is used: it would connect to unchecked addresses. ``trusted`` is for servers with
    private certificates.
    """

    def __init__(
        self,
        rules: AddressRules,
        *,
        longest: float = MAX_SECONDS,
        trusted: ssl.SSLContext | None = None,
    ) -> None:
        self._rules = rules
        self._longest = longest
        self._trusted = trusted or httpx.create_ssl_context(trust_env=False)

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        """Raises PostError."""
        try:
            return self._post(url_parsed(url, self._rules), headers, body)
        except AddressError as error:
            raise PostError(error_text(error)) from None
        except httpx.TimeoutException:
            raise PostError(ErrorText("webhook_timeout", seconds=f"{self._longest:g}")) from None
        except httpx.ConnectError as error:
            code = "webhook_certificate" if _is_tls(error) else "webhook_unreachable"
            raise PostError(ErrorText(code)) from None
        except (httpx.TransportError, OSError) as error:
            raise PostError(ErrorText("webhook_connection", kind=type(error).__name__)) from None

    def _post(self, url: httpx.URL, headers: Mapping[str, str], body: bytes) -> Posted:
        client = checked_client(
            self._rules,
            deadline=time.monotonic() + self._longest,
            timeout=self._longest,
            trusted=self._trusted,
        )
        # Not of the client, which would add headers of its own.
        timeout = httpx.Timeout(self._longest).as_dict()
        request = httpx.Request(
            "POST", url, headers=headers, content=body, extensions={"timeout": timeout}
        )
        with call_span("POST", str(url)) as traced, client:
            answer = client.send(request, stream=True)
            with closing(answer):
                _read_some(answer)
            note_status(traced, answer.status_code)
            wait = parse_retry_after(
                answer.headers.get("retry-after"), now=datetime.now(timezone.utc)
            )
            return Posted(answer.status_code, wait)


def _read_some(answer: httpx.Response) -> None:
    """Read the response to its end or to MAX_BYTES. Errors don't matter: the status is known."""
    size = 0
    with suppress(httpx.TransportError):
        for block in answer.iter_raw():
            size += len(block)
            if size >= MAX_BYTES:
                return


def _is_tls(error: BaseException | None) -> bool:
    """Return whether the error came from a certificate or from TLS itself."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
