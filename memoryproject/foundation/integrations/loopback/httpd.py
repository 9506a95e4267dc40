"""A small HTTP server on 127.0.0.1 that stands in for a provider and can simulate failures."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeVar

_MAX_BODY = 1_000_000
_DRIP_BYTES = 16

Stand = TypeVar("Stand", bound="LoopbackServer")


@dataclass(frozen=True)
class Request:
    """One request as it arrived.

    ``body`` is the parsed JSON, None where it was no JSON object; ``raw`` is its source text.
    """

    path: str
    headers: dict[str, str]
    body: dict[str, Any] | None
    method: str = "POST"
    raw: bytes = b""


@dataclass(frozen=True)
class Answer:
    """A status, a JSON object, and further headers.

    ``content`` is sent instead of JSON. ``drip``: send in small blocks, this many seconds apart.
    """

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    drip: float = 0.0


@dataclass(frozen=True)
class Fault:
    """The failure of one request. Without any values, nothing fails.

    delay: seconds before anything else happens.
    answer: sent instead of the provider's own.
    no_answer: "hang" (the connection stays open and silent until the server stops) or "reset" (the
        connection is reset once the request has been read).
    carried_out: with ``answer`` or ``no_answer``, the request still takes effect.
    """

    delay: float = 0.0
    answer: Answer | None = None
    no_answer: str = ""
    carried_out: bool = False


class LoopbackServer:
    """The base of the stand-ins: a context manager that serves in its own threads.

    ``port`` 0 takes a free one. ``requests`` keeps every request in order of arrival.
    """

    def __init__(self, *, port: int = 0) -> None:
        self.requests: list[Request] = []
        self._faults: deque[Fault] = deque()
        self._get_faults: deque[Fault] = deque()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._httpd = _Server(("127.0.0.1", port), _handler_for(self))
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """The server's address without a path."""
        return f"http://127.0.0.1:{self._httpd.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop serving, release hanging requests and free the port."""
        self._stopping.set()
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()

    def __enter__(self: Stand) -> Stand:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def fail_next(self, *faults: Fault) -> None:
        """Make the next requests fail, one fault each, in this order."""
        with self._lock:
            self._faults.extend(faults)

    def fail_next_get(self, *faults: Fault) -> None:
        """Make the next GET requests fail; they have a separate list of faults."""
        with self._lock:
            self._get_faults.extend(faults)

    def handle(self, request: Request) -> Answer:
        """Carry the request out and answer as the provider does. Each stand-in implements it."""
        raise NotImplementedError

    def take(self, request: Request) -> Fault:
        """Record the request and return its fault."""
        with self._lock:
            self.requests.append(request)
            faults = self._get_faults if request.method == "GET" else self._faults
            return faults.popleft() if faults else Fault()

    def wait(self, seconds: float) -> None:
        """Wait, but no longer than the server runs."""
        if seconds:
            self._stopping.wait(seconds)

    def wait_for_stop(self) -> None:
        self._stopping.wait()


class _Server(ThreadingHTTPServer):
    # server_close() waits for the handlers, so that none of them outlives the stand-in.
    daemon_threads = False
    request_queue_size = 128


def _handler_for(server: LoopbackServer) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(_Handler):
        loopback = server

    return Handler


class _Handler(BaseHTTPRequestHandler):
    loopback: LoopbackServer

    def do_GET(self) -> None:
        self._serve(None)

    def do_HEAD(self) -> None:
        self._serve(None)

    def do_DELETE(self) -> None:
        self._serve(None)

    def do_PUT(self) -> None:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.do_POST()

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > _MAX_BODY:
            self.close_connection = True
            self._send(Answer(413, {"error": {"message": "the body is too large"}}))
            return
        raw = self.rfile.read(length)
        self._serve(_json_object(raw), raw)

    def _serve(self, body: dict[str, Any] | None, raw: bytes = b"") -> None:
        request = Request(
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            method=self.command,
            raw=raw,
        )
        fault = self.loopback.take(request)
        self.loopback.wait(fault.delay)
        goes_wrong = fault.answer is not None or bool(fault.no_answer)
        own = self.loopback.handle(request) if fault.carried_out or not goes_wrong else None
        if fault.no_answer == "reset":
            self._reset()
        elif fault.no_answer:
            self.loopback.wait_for_stop()
            self.close_connection = True
        else:
            self._send(fault.answer or own or Answer(500, {}))

    def _send(self, answer: Answer) -> None:
        body = json.dumps(answer.body).encode() if answer.content is None else answer.content
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **answer.headers,
        }
        try:
            self.send_response(answer.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            block = _DRIP_BYTES if answer.drip else len(body) or 1
            for start in range(0, len(body), block):
                self.wfile.write(body[start : start + block])
                self.loopback.wait(answer.drip)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has given up waiting

    def _reset(self) -> None:
        # With a linger time of zero, close() sends a reset instead of a normal close.
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: the path may hold a token, and tests read ``requests``."""


def _json_object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
