"""Stand-ins that can be told to fail, and the forms that clients post to them."""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from memoryproject.foundation.integrations.loopback import httpd
from memoryproject.foundation.integrations.loopback.httpd import Answer, Request

_MAX_BODY = 1_000_000
_DRIP_BYTES = 16


@dataclass(frozen=True)
class DrippingAnswer(Answer):
    """``drip``: send in small blocks, this many seconds apart."""

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


class FaultyHandler(httpd.Handler):
    """Also serves the methods that object storages need."""

    loopback: FaultyServer

    # The names are those of http.server.
    do_HEAD = httpd.Handler.do_GET  # noqa: N815
    do_DELETE = httpd.Handler.do_GET  # noqa: N815

    def do_PUT(self) -> None:  # noqa: N802
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.do_POST()

    def do_POST(self) -> None:  # noqa: N802
        if int(self.headers.get("Content-Length") or 0) > _MAX_BODY:
            self.close_connection = True
            self.send(Answer(413, {"error": {"message": "the body is too large"}}))
            return
        super().do_POST()

    def serve(self, request: Request) -> None:
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
            self.send(fault.answer or own or Answer(500, {}))

    def write(self, body: bytes, answer: Answer) -> None:
        if self.command == "HEAD":
            return
        drip = answer.drip if isinstance(answer, DrippingAnswer) else 0.0
        block = _DRIP_BYTES if drip else len(body) or 1
        for start in range(0, len(body), block):
            self.wfile.write(body[start : start + block])
            self.loopback.wait(drip)

    def _reset(self) -> None:
        # With a linger time of zero, close() sends a reset instead of a normal close.
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.connection.close()


class FaultyServer(httpd.LoopbackServer):
    """A stand-in whose next requests can be made to fail."""

    handler_class = FaultyHandler

    def __init__(self, **options: Any) -> None:
        self._faults: deque[Fault] = deque()
        self._get_faults: deque[Fault] = deque()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        super().__init__(**options)

    def stop(self) -> None:
        """Release hanging requests, and stop."""
        self._stopping.set()
        super().stop()

    def fail_next(self, *faults: Fault) -> None:
        """Make the next requests fail, one fault each, in this order."""
        with self._lock:
            self._faults.extend(faults)

    def fail_next_get(self, *faults: Fault) -> None:
        """Make the next GET requests fail; they have a separate list of faults."""
        with self._lock:
            self._get_faults.extend(faults)

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
