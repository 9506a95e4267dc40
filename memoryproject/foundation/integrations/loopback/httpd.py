"""A small HTTP server on 127.0.0.1 that stands in for a service."""

import json
import threading
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import Self


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
    """A status, a JSON object, and further headers; ``content`` is sent instead of JSON."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None


class Handler(BaseHTTPRequestHandler):
    """Reads a request, lets the stand-in handle it, and sends its answer."""

    def __init__(self, loopback: "LoopbackServer", *args: Any) -> None:
        self.loopback = loopback
        super().__init__(*args)

    def do_GET(self) -> None:
        self.serve(self.read_request())

    def do_POST(self) -> None:
        self.serve(self.read_request())

    def read_request(self) -> Request:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.path, headers, _json_object(raw), self.command, raw)

    def serve(self, request: Request) -> None:
        self.loopback.requests.append(request)
        self.send(self.loopback.handle(request))

    def send(self, answer: Answer) -> None:
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
            self.write(body, answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has given up waiting

    def write(self, body: bytes, answer: Answer) -> None:
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: the path may hold a token."""


class LoopbackServer:
    """The base of the stand-ins: a context manager that serves in its own threads.

    ``port`` 0 takes a free one. ``requests`` keeps every request in order of arrival.
    """

    handler_class = Handler

    def __init__(self, *, port: int = 0) -> None:
        self.requests: list[Request] = []
        self._httpd = _Server(("127.0.0.1", port), partial(self.handler_class, self))
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """The server's address without a path."""
        return f"http://127.0.0.1:{self._httpd.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and free the port."""
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def handle(self, request: Request) -> Answer:
        """Carry the request out and answer as the service does. Each stand-in implements it."""
        raise NotImplementedError


class _Server(ThreadingHTTPServer):
    # server_close() waits for the handlers, so that none of them outlives the stand-in.
    daemon_threads = False
    request_queue_size = 128


def _json_object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
