"""Post JSON and files to a provider; tell failures that are safe to repeat from the others."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.whatsapp.base import OutgoingFile, SendError
from memoryproject.foundation.outside_services.guards import (
    PAUSE_SECONDS,
    REFUSED_WEIGHT,
    TIMEOUT_WEIGHT,
    Guard,
    ServicePausedError,
    Unguarded,
)
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


def post_json(
    url: str,
    payload: Mapping[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float,
    transport: httpx.BaseTransport | None = None,
    guard: Guard | None = None,
    refuses_account: Callable[[httpx.Response], bool] = lambda _response: False,
) -> httpx.Response:
    """Post the payload and return the response with its body, whatever its status is.

    Each call opens its own connection: one kept alive could be closed by the server just as we
    write, and then it would be unknown whether the message was sent. Raises SendError; its text
    never holds the URL, which may hold a token. A sick service isn't called (``guard``).
    ``refuses_account``: the answer says that our token or account isn't accepted any more.
    """

    return _guarded(
        lambda: _ask(
            "POST",
            url,
            lambda client: client.post(url, json=dict(payload), headers=dict(headers or {})),
            timeout=timeout,
            transport=transport,
        ),
        guard,
        refuses_account,
    )


def post_file(
    url: str,
    fields: Mapping[str, str],
    file: OutgoingFile,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float,
    transport: httpx.BaseTransport | None = None,
    guard: Guard | None = None,
    refuses_account: Callable[[httpx.Response], bool] = lambda _response: False,
) -> httpx.Response:
    """Post a form with a file, in the field ``file``; otherwise like post_json.

    The file is read as it is sent. ``timeout`` is for each block, and for the answer. Raises
    OSError where the file can't be opened, and SendError.
    """

    def post() -> httpx.Response:
        with file.open() as opened:
            part = {"file": (file.filename, opened, file.content_type)}
            return _ask(
                "POST",
                url,
                lambda client: client.post(
                    url, data=dict(fields), files=part, headers=dict(headers or {})
                ),
                timeout=timeout,
                transport=transport,
            )

    return _guarded(post, guard, refuses_account)


def _guarded(
    ask: Callable[[], httpx.Response],
    guard: Guard | None,
    refuses_account: Callable[[httpx.Response], bool],
) -> httpx.Response:
    """Call through the guard, which hears of answers that a healthy service doesn't give."""

    def post() -> httpx.Response:
        response = ask()
        if response.status_code == HTTPStatus.UNAUTHORIZED or refuses_account(response):
            raise _SickAnswer(response, REFUSED_WEIGHT)
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _SickAnswer(response, 1)
        return response

    try:
        return (guard or Unguarded()).call(post)
    except _SickAnswer as sick:
        return sick.response
    except ServicePausedError:
        raise SendError(
            ErrorText("service_paused"), retry_after=PAUSE_SECONDS, is_paused=True
        ) from None


def get_json(
    url: str,
    *,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float,
    transport: httpx.BaseTransport | None = None,
) -> httpx.Response:
    """Do the same with GET for a query that changes nothing. Raises SendError."""
    return _ask(
        "GET",
        url,
        lambda client: client.get(url, params=dict(params or {}), headers=dict(headers or {})),
        timeout=timeout,
        transport=transport,
    )


def _ask(
    method: str,
    url: str,
    call: Callable[[httpx.Client], httpx.Response],
    *,
    timeout: float,
    transport: httpx.BaseTransport | None,
) -> httpx.Response:
    import httpx  # noqa: PLC0415 slow

    # Errors that happen before the first byte of the request is written.
    not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
    misconfigured = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL)
    try:
        with (
            call_span(method, url) as traced,
            httpx.Client(
                timeout=timeout,
                transport=transport,
                verify=trusted(),
                # A proxy from the environment doesn't lead back to this machine.
                trust_env=urlsplit(url).hostname not in LOOPBACK,
            ) as client,
        ):
            response = call(client)
            note_status(traced, response.status_code)
            return response
    except misconfigured as error:
        raise SendError(
            ErrorText("send_bad_url", kind=type(error).__name__),
            permanent=True,
            alert=True,
        ) from None
    except (ValueError, UnicodeError) as error:
        raise SendError(
            ErrorText("send_unwritable", kind=type(error).__name__), permanent=True
        ) from None
    except not_sent as error:
        raise SendError(
            ErrorText("send_unreachable", kind=type(error).__name__), sickness=_weight(error)
        ) from None
    except httpx.HTTPError as error:
        raise SendError(
            ErrorText("send_connection_broke", kind=type(error).__name__),
            outcome_unknown=True,
            sickness=_weight(error),
        ) from None


def _weight(error: httpx.HTTPError) -> int:
    import httpx  # noqa: PLC0415 slow

    return TIMEOUT_WEIGHT if isinstance(error, httpx.TimeoutException) else 1


@lru_cache(maxsize=1)
def trusted() -> ssl.SSLContext:
    """Return the trusted certificates.

    They are cached: reading them for each call would take longer than many responses.
    """
    import httpx  # noqa: PLC0415 slow

    return httpx.create_ssl_context()


def answer_object(response: httpx.Response) -> dict[str, Any]:
    """Return the response's JSON object, or an empty one."""
    try:
        found = response.json()
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def answer_shown(response: httpx.Response) -> str:
    """Return the beginning of the response's text, on one line."""
    return " ".join(response.text.split())[:_SHOWN_OF_ANSWER]


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds of a ``Retry-After`` header, if there is one."""
    header = response.headers.get("retry-after", "").strip()
    return float(header) if header.isascii() and header.isdigit() and len(header) < 7 else None
