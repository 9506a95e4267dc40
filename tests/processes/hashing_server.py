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

# Reads nothing of the body; ends the connection while it comes.
REFUSED, DROPPED = "/refused", "/dropped"


class HashingServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 100

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: here, connections that break off are usual."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.close_connection = True
        if self.path.endswith(DROPPED):
            self.rfile.read(10)
        elif self.path.endswith(REFUSED):
            self._answer(401, b"")
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(200, hashlib.sha256(body).hexdigest().encode())

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
