"""A small HTTP server on 127.0.0.1 that stands in for a provider and can simulate failures."""

from __future__ import annotations

import json
import socket
import struct
import threading
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeVar

from memoryproject.foundation.integrations.loopback.webhooks import Courier, Delivery, body_bytes

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


# The common part of both providers' stand-ins: webhooks that report the status of a message.


@dataclass(frozen=True)
class StoredFile:
    """A file in the form that its sender sent."""

    content: bytes
    mime_type: str


class ProviderServer(LoopbackServer):
    """A stand-in that posts webhooks to ``webhook_url``, if one is given.

    Every accepted message is followed by one webhook for each of ``statuses``, ``status_delay``
    seconds apart. ``sent`` holds the accepted messages, ``reads`` the ids that were marked as read,
    ``courier`` the results of the webhooks, ``files`` the files that messages can name.
    """

    def __init__(
        self,
        *,
        webhook_url: str = "",
        statuses: tuple[str, ...] = ("sent", "delivered", "read"),
        status_delay: float = 0.0,
        port: int = 0,
    ) -> None:
        super().__init__(port=port)
        self.webhook_url = webhook_url
        self.statuses = statuses
        self.status_delay = status_delay
        self.sent: list[dict[str, Any]] = []
        self.reads: list[str] = []
        self.courier = Courier()
        self.files: dict[str, StoredFile] = {}

    def add_file(
        self, content: bytes, mime_type: str = "application/pdf", *, file_id: str = ""
    ) -> str:
        """Add a file that a message can name; return its id. Its address is file_url()."""
        file_id = file_id or str(uuid.uuid4().int)[:15]
        self.files[file_id] = StoredFile(content, mime_type)
        return file_id

    def file_url(self, file_id: str) -> str:
        return f"{self.url}/files/{file_id}"

    def file_answer(self, path: str) -> Answer | None:
        """Return the file at a path; None if there is none."""
        stored = self.files.get(path.removeprefix("/files/"))
        if stored is None:
            return None
        return Answer(200, {}, {"Content-Type": stored.mime_type}, content=stored.content)

    def start(self) -> None:
        self.courier.start()
        super().start()

    def stop(self) -> None:
        super().stop()
        self.courier.stop()

    def report(self, payload: dict[str, Any]) -> None:
        """Post a webhook body soon, with the headers that prove its origin."""
        if self.webhook_url:
            body = body_bytes(payload)
            headers = self.webhook_headers(body)
            self.courier.post(Delivery(self.webhook_url, body, headers, self.status_delay))

    def webhook_headers(self, body: bytes) -> dict[str, str]:
        """Return the headers of a webhook with this body."""
        raise NotImplementedError


# Read the forms with a file that clients post to the stand-ins.


@dataclass(frozen=True)
class Form:
    """The fields of a form, and the file in its field ``file``, if there is one."""

    fields: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    filename: str = ""
    content_type: str = ""


def posted_form(request: Request) -> Form | None:
    """Return the form of a multipart request; None for another body."""
    content_type = request.headers.get("content-type", "")
    if not content_type.startswith("multipart/form-data"):
        return None
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    parsed = BytesParser(policy=HTTP).parsebytes(head + request.raw)
    fields: dict[str, str] = {}
    file: dict[str, str | bytes] = {}
    for part in parsed.iter_parts():
        name = str(part.get_param("name", "", "Content-Disposition"))
        content = part.get_payload(decode=True)
        content = content if isinstance(content, bytes) else b""
        if name == "file":
            file = {
                "content": content,
                "filename": part.get_filename() or "",
                "content_type": part.get_content_type(),
            }
        else:
            fields[name] = content.decode()
    return Form(fields, **file)  # type: ignore[arg-type]
