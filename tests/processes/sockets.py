"""Clients that hold their connections: they send a part of a request, and wait."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from memoryproject.foundation.process.narrowing import present

HALF_A_HEADER = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


def begun_body(path: str, *headers: str, length: int = 100_000) -> bytes:
    """A POST of which the headers and ten bytes of the body are there."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + b"x" * 10


def begun_chunks(path: str, *headers: str) -> bytes:
    """The same without a length: the body's first chunk is there."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked", *headers]
    return "\r\n".join([*lines, "", "a", ""]).encode() + b"x" * 10 + b"\r\n"


@contextmanager
def held_sockets(url: str, begun: bytes, count: int) -> Iterator[list[socket.socket]]:
    """So many connections, each with this beginning of a request, until the block ends."""
    address = urlsplit(url)
    with ExitStack() as stack:
        held = []
        for _ in range(count):
            held.append(
                stack.enter_context(
                    socket.create_connection((address.hostname, present(address.port)), timeout=30)
                )
            )
            held[-1].sendall(begun)
        yield held
