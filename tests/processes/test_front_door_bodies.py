"""The front door gives each web server exactly the body that its client sent.

Caddy's buffers for bodies come from a pool. If one is in it twice, two requests get it at the same
time, and signed webhooks of others no longer match their signatures. So each test does what could
put a buffer back twice, and then lets many requests have a buffer at the same time.
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path

import pytest

from tests.processes.front_door import caddy_command, caddy_environment
from tests.processes.hashing_server import DROPPED, DROPPED_ONCE, REFUSED, hashing_server
from tests.processes.installation import free_port
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

CLOUD = "/webhooks/whatsapp/cloud/"
PATHS = (CLOUD, "/api/v1/chat/")
LARGE = 6_000_000
AT_ONCE = 16
HALF = 5_000
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Door:
    """Caddy with the configuration of a deployment."""

    port: int

    def connect(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def listens(self) -> bool:
        try:
            self.connect().close()
        except ConnectionRefusedError:
            return False
        return True

    def begin(self, path: str, body: bytes, *headers: str) -> socket.socket:
        """Return a connection with a POST of which this part of the body was sent."""
        client = self.connect()
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
        client.sendall("\r\n".join(lines).encode())
        # It may be refused meanwhile.
        with suppress(ConnectionResetError, BrokenPipeError):
            client.sendall(body)
        return client


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    """One processor and no garbage collection: the pool gives what it got last."""
    port = free_port()
    exact = {"GOMAXPROCS": "1", "GOGC": "off"}
    times = {"MEMORY_BODY_TIME": "2s", "MEMORY_WEBHOOKS_WAIT": "1s"}
    with ExitStack() as stack:
        # The path of a socket may not be long.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sockets-")))
        web, webhooks = folder / "web.sock", folder / "webhooks.sock"
        for path in (web, webhooks):
            stack.enter_context(hashing_server(path))
        given = caddy_environment(tmp_path, port, f"unix/{web}", f"unix/{webhooks}")
        with (tmp_path / "output.log").open("wb") as output:
            caddy = subprocess.Popen(
                caddy_command(),
                env={**os.environ, **given, **exact, **times},
                stdout=output,
                stderr=output,
            )
        stack.callback(caddy.wait)
        stack.callback(caddy.kill)
        found = Door(port)
        wait_until(found.listens, "the front door listens")
        yield found


def response(client: socket.socket) -> tuple[int, str]:
    """Return status and text; 0 where the connection ended without a response."""
    answer = HTTPResponse(client)
    try:
        answer.begin()
        return answer.status, answer.read().decode()
    except (HTTPException, OSError):
        return 0, ""


def assert_bodies_are_whole(door: Door) -> None:
    """Many requests have a buffer at the same time; each body arrives as it was sent."""
    bodies = [bytes([number]) * 2 * HALF for number in range(AT_ONCE)]
    with ExitStack() as stack:
        clients = []
        for body in bodies:
            client = door.begin(CLOUD, b"", f"Content-Length: {2 * HALF}", "Expect: 100-continue")
            clients.append(stack.enter_context(client))
            # It is said when Caddy begins to read, so the request has its buffer.
            assert client.recv(1024).startswith(b"HTTP/1.1 100 ")
            client.sendall(body[:HALF])
        for client, body in zip(clients, bodies, strict=True):
            client.sendall(body[HALF:])
        answers = [response(client) for client in clients]
    assert answers == [(200, hashlib.sha256(body).hexdigest()) for body in bodies]


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    client.close()


@pytest.mark.parametrize("ending", ["", REFUSED, DROPPED])
def test_a_large_body(door: Door, ending: str) -> None:
    """Caddy puts its buffer back when the web server stops reading it, and at the end."""
    for path in PATHS:
        for _ in range(3):
            with door.begin(path + ending, b"x" * LARGE, f"Content-Length: {LARGE}") as client:
                response(client)
        assert_bodies_are_whole(door)


@pytest.mark.parametrize("ending", [reset, socket.socket.close, response])
def test_a_body_that_breaks_off(door: Door, ending: Callable[[socket.socket], object]) -> None:
    """The client goes, or never sends the rest."""
    for path in PATHS:
        begun = [door.begin(path, b"x" * HALF, f"Content-Length: {2 * HALF}") for _ in range(5)]
        for client in begun:
            ending(client)
            client.close()
        assert_bodies_are_whole(door)


@pytest.mark.parametrize(
    "chunks",
    [b"5\r\nabcdefgh\r\nzz\r\n", b"5\r\nabcde\r\n", b"%x\r\n" % LARGE + b"x" * LARGE],
    ids=["broken", "begun", "large"],
)
def test_a_body_in_chunks(door: Door, chunks: bytes) -> None:
    for path in PATHS:
        begun = [door.begin(path, chunks, "Transfer-Encoding: chunked") for _ in range(3)]
        for client in begun:
            response(client)
            client.close()
        assert_bodies_are_whole(door)


def test_a_web_server_that_drops_each_webhook(door: Door) -> None:
    length = f"Content-Length: {HALF}"
    begun = [door.begin(CLOUD + DROPPED, b"x" * HALF, length) for _ in range(5)]
    assert [response(client)[0] for client in begun] == [503] * 5
    for client in begun:
        client.close()
    assert_bodies_are_whole(door)


@pytest.mark.parametrize(
    ("headers", "sent", "body"),
    [
        ("Content-Length: 5000", b"x" * 5000, b"x" * 5000),
        ("Transfer-Encoding: chunked", b"5\r\nabcde\r\n3\r\nfgh\r\n0\r\n\r\n", b"abcdefgh"),
    ],
    ids=["with a length", "in chunks"],
)
def test_a_dropped_webhook_comes_again(door: Door, headers: str, sent: bytes, body: bytes) -> None:
    """It is stored once, however often it comes; other requests are not sent again."""
    webhook, other = PATHS
    with door.begin(webhook + DROPPED_ONCE, sent, headers) as client:
        assert response(client) == (200, hashlib.sha256(body).hexdigest())
    with door.begin(other + DROPPED_ONCE, sent, headers) as client:
        assert response(client)[0] == 503


def test_a_static_file(door: Door) -> None:
    """Responses that are buffered have their buffers from the same pool."""
    asked = b"GET /static/app.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for ending in (response, reset):
        for _ in range(3):
            with door.connect() as client:
                client.sendall(asked)
                assert client.recv(15) == b"HTTP/1.1 200 OK"
                ending(client)
        assert_bodies_are_whole(door)
