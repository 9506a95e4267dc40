"""Post JSON and files to a provider; tell failures that are safe to repeat from the others."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.lenient import Fields
from memoryproject.foundation.integrations.whatsapp.base import OutgoingFile, SendError
from memoryproject.foundation.outside_services import guards
from memoryproject.foundation.process.tracing import call_span, note_status

if TYPE_CHECKING:
    import httpx


class _SickAnswer(Exception):
    """An answer that counts as a failure of the service; callers read it like any other."""

    def __init__(self, response: httpx.Response, sickness: int) -> None:
        super().__init__()
        self.response = response
        self.sickness = sickness

    @property
    def sickness_text(self) -> str:
        return ErrorText("service_status", status=self.response.status_code)


LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SHOWN_OF_ANSWER = 300
# The providers work on a file before they answer.
_UPLOAD_TIMEOUT = 60.0


@dataclass(frozen=True)
class Connection:
    """Calls to a provider's API, each over a connection of its own.

    One kept alive could be closed by the server just as we write, and then it would be unknown
    whether the message was sent. ``timeout`` is in seconds, for connecting and for the answer.
    ``transport`` replaces the network. A sick service isn't called (``guard``).
    ``refuses_account``: the answer says that our token or account isn't accepted any more.

    All calls raise SendError; its text never holds the URL, which may hold a token. They return the
    response with its body, whatever its status is.
    """

    timeout: float
    transport: httpx.BaseTransport | None = None
    guard: guards.Guard | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    refuses_account: Callable[[httpx.Response], bool] = lambda _response: False

    def post_json(self, url: str, payload: Mapping[str, Any]) -> httpx.Response:
        """Post the payload."""
        return self._guarded(
            lambda: self._ask("POST", url, lambda client: client.post(url, json=dict(payload)))
        )

    def post_file(self, url: str, fields: Mapping[str, str], file: OutgoingFile) -> httpx.Response:
        """Post a form with a file, in the field ``file``, which is read as it is sent.

        The timeout is for each block, and for the answer, before which the provider works on the
        file. Raises OSError where the file can't be opened.
        """
        patient = replace(self, timeout=max(self.timeout, _UPLOAD_TIMEOUT))

        def post() -> httpx.Response:
            with file.open() as opened:
                part = {"file": (file.filename, opened, file.content_type)}
                return patient._ask(
                    "POST", url, lambda client: client.post(url, data=dict(fields), files=part)
                )

        return self._guarded(post)

    def get_json(self, url: str, params: Mapping[str, str] | None = None) -> httpx.Response:
        """Send a query that changes nothing."""
        return self._ask("GET", url, lambda client: client.get(url, params=dict(params or {})))

    def _guarded(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """Call through the guard, which hears of answers that a healthy service doesn't give."""

        def post() -> httpx.Response:
            response = ask()
            if response.status_code == HTTPStatus.UNAUTHORIZED or self.refuses_account(response):
                raise _SickAnswer(response, guards.REFUSED_WEIGHT)
            if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise _SickAnswer(response, 1)
            return response

        try:
            return (self.guard or guards.Unguarded()).call(post)
        except _SickAnswer as sick:
            return sick.response
        except guards.ServicePausedError:
            raise SendError(
                ErrorText("service_paused"), retry_after=guards.PAUSE_SECONDS, is_paused=True
            ) from None

    def _ask(
        self, method: str, url: str, call: Callable[[httpx.Client], httpx.Response]
    ) -> httpx.Response:
        import httpx  # noqa: PLC0415 slow

        # Errors that happen before the first byte of the request is written.
        not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
        misconfigured = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL)
        try:
            with (
                call_span(method, url) as traced,
                http_client(url, self.timeout, self.transport, self.headers) as client,
            ):
                response = call(client)
                note_status(traced, response.status_code)
                return response
        except misconfigured as error:
            kind = type(error).__name__
            raise SendError(
                ErrorText("send_bad_url", kind=kind), permanent=True, alert=True
            ) from None
        except (ValueError, UnicodeError) as error:
            kind = type(error).__name__
            raise SendError(ErrorText("send_unwritable", kind=kind), permanent=True) from None
        except httpx.HTTPError as error:
            is_sent = not isinstance(error, not_sent)
            code = "send_connection_broke" if is_sent else "send_unreachable"
            raise SendError(
                ErrorText(code, kind=type(error).__name__),
                outcome_unknown=is_sent,
                sickness=guards.TIMEOUT_WEIGHT if isinstance(error, httpx.TimeoutException) else 1,
            ) from None


def http_client(
    url: str,
    timeout: float,
    transport: httpx.BaseTransport | None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Client:
    """Return a client that follows no redirect."""
    import httpx  # noqa: PLC0415 slow

    return httpx.Client(
        timeout=timeout,
        transport=transport,
        headers=headers,
        verify=trusted(),
        # A proxy from the environment doesn't lead back to this machine.
        trust_env=urlsplit(url).hostname not in LOOPBACK,
    )


@lru_cache(maxsize=1)
def trusted() -> ssl.SSLContext:
    """Return the trusted certificates.

    They are cached: reading them for each call would take longer than many responses.
    """
    import httpx  # noqa: PLC0415 slow

    return httpx.create_ssl_context()


def answer_object(response: httpx.Response) -> Fields:
    """Return the response's JSON object, or an empty one."""
    try:
        return Fields.of(response.json())
    except (ValueError, RecursionError):
        return Fields()


def answer_shown(response: httpx.Response) -> str:
    """Return the beginning of the response's text, on one line."""
    return " ".join(response.text.split())[:_SHOWN_OF_ANSWER]
