"""A proxy before the server that does what networks and proxies do: it answers itself, loses calls
and answers, cuts streams, and sends them in small pieces."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Fault:
    """What happens to one call.

    answer: status, headers and body in place of the server's. lose: "call" (the server never sees
    it) or "answer". cut: the answer ends after so many bytes. piece: the size of its pieces; 0:
    whole.
    """

    answer: tuple[int, Mapping[str, str], bytes] | None = None
    lose: str = ""
    cut: int | None = None
    piece: int = 0


NONE = Fault()


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)


class Flaky(ThreadingHTTPServer):
    """The proxy. ``faults`` are for the next calls, one each; ``seen`` are the calls so far."""

    daemon_threads = True

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behind = urlsplit(server).netloc
        self.faults: deque[Fault] = deque()
        self.seen: list[Seen] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Flaky:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
        self.server_close()

    def next(self, *faults: Fault) -> None:
        self.faults.extend(faults)

    def keys(self) -> list[str | None]:
        """The Idempotency-Keys of the calls that take one."""
        return [each.headers.get("idempotency-key") for each in self.seen]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Flaky

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def handle_call(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        self.server.seen.append(Seen(self.command, self.path, headers))
        fault = self.server.faults.popleft() if self.server.faults else NONE
        answer = fault.answer
        if answer is None and fault.lose != "call":
            behind = HTTPConnection(self.server.behind, timeout=60)
            behind.request(self.command, self.path, body, headers)
            found = behind.getresponse()
            answer = (found.status, dict(found.getheaders()), found.read())
            behind.close()
        if answer is None or fault.lose:
            self.close_connection = True
            return
        self.send(*answer, fault)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = handle_call  # noqa: N815

    def send(self, status: int, headers: Mapping[str, str], body: bytes, fault: Fault) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = body if fault.cut is None else body[: fault.cut]
        size = fault.piece or len(sent) or 1
        for start in range(0, len(sent), size):
            piece = sent[start : start + size]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if fault.cut is None:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True
