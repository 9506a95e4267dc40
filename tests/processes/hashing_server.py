"""A web server behind the front door that answers each body with its SHA-256."""

from __future__ import annotations

import hashlib
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

# How a path ends: nothing of the body is read; or the connection ends while the body comes, each
# time or only the first time.
REFUSED, DROPPED, DROPPED_ONCE = "/refused", "/dropped", "/dropped-once"
FILE = b"x" * 3_000_000


class HashingServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 100

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), Handler)
        self.seen: set[str] = set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: here, connections that break off are usual."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HashingServer

    def do_GET(self) -> None:
        self._answer(200, FILE)

    def do_POST(self) -> None:
        self.close_connection = True
        again = self.path in self.server.seen
        self.server.seen.add(self.path)
        if self.path.endswith(DROPPED) or (self.path.endswith(DROPPED_ONCE) and not again):
            self.rfile.read(1)
        elif self.path.endswith(REFUSED):
            self._answer(401, b"")
        else:
            self._answer(200, hashlib.sha256(self._body()).hexdigest().encode())

    def _body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        return body

    def _answer(self, status: int, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Keep the tests' output free of requests."""


@contextmanager
def hashing_server(path: Path) -> Iterator[None]:
    """One that listens at a Unix socket."""
    with HashingServer(path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()
