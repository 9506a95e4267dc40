"""Post webhook bodies to a memory server as the providers do: signed, delayed, and retried."""

from __future__ import annotations

import hashlib
import hmac
import json
import queue
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

_TRIES = 3
_PAUSE_BETWEEN_TRIES = 0.2


def sign(secret: str, body: bytes) -> str:
    """Return the value of ``X-Hub-Signature-256`` for a body, under Meta's app secret."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def body_bytes(payload: Mapping[str, Any]) -> bytes:
    """Return the payload as the providers write it: compact, with non-ASCII characters escaped."""
    return json.dumps(payload, separators=(",", ":")).encode()


def signed_headers(secret: str, body: bytes) -> dict[str, str]:
    """Return the headers of a Cloud API webhook."""
    return {"Content-Type": "application/json", "X-Hub-Signature-256": sign(secret, body)}


def token_headers(token: str) -> dict[str, str]:
    """Return the headers of a Green API webhook."""
    return {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}


@dataclass(frozen=True)
class Delivery:
    """A body to post, ``delay`` seconds after its turn comes."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    delay: float = 0.0


class Courier:
    """Posts deliveries one after the other in its own thread.

    ``outcomes`` holds the last HTTP status of each delivery in order, 0 if there was none.
    """

    def __init__(self) -> None:
        self.outcomes: list[int] = []
        self._waiting: queue.Queue[Delivery | None] = queue.Queue()
        self._stopping = threading.Event()
        self._idle = threading.Condition()
        self._open = 0
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Drop the waiting deliveries and end the thread."""
        self._stopping.set()
        self._waiting.put(None)
        self._thread.join()

    def post(self, delivery: Delivery) -> None:
        with self._idle:
            self._open += 1
        self._waiting.put(delivery)

    def wait_until_idle(self, timeout: float = 10.0) -> bool:
        """Wait until everything was posted; return False if the timeout (seconds) ended first."""
        with self._idle:
            return self._idle.wait_for(lambda: self._open == 0, timeout)

    def _run(self) -> None:
        while (delivery := self._waiting.get()) is not None:
            outcome = 0 if self._stopping.wait(delivery.delay) else self._deliver(delivery)
            with self._idle:
                self.outcomes.append(outcome)
                self._open -= 1
                self._idle.notify_all()

    def _deliver(self, delivery: Delivery) -> int:
        outcome = 0
        for _ in range(_TRIES):
            outcome = _posted(delivery)
            if outcome == httpx.codes.OK or self._stopping.wait(_PAUSE_BETWEEN_TRIES):
                break
        return outcome


@cache
def _tls() -> ssl.SSLContext:
    """Return what each client needs for TLS. Making it takes longer than a request."""
    return httpx.create_ssl_context()


def _posted(delivery: Delivery) -> int:
    try:
        with httpx.Client(timeout=10.0, trust_env=False, verify=_tls()) as client:
            answer = client.post(
                delivery.url, content=delivery.body, headers=dict(delivery.headers)
            )
    except httpx.HTTPError:
        return 0
    return answer.status_code
