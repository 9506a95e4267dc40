"""One HTTP exchange with the package's transport, from a thread without an event loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from asgiref.sync import async_to_sync
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from memoryproject.api.bodies import LARGEST_BODY


@dataclass
class Exchange:
    """An ASGI request whose body is there already, and the answer to it."""

    headers: Mapping[str, str]
    body: bytes
    status: int = 500
    answer_headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b""
    _is_read: bool = False

    def carry_out(self, server: Server[Any]) -> None:
        """Blocks until the answer is there. The tools' work is done in the calling thread, so
        that it has its own database connection, and no event loop runs there."""
        async_to_sync(self._serve)(server)

    async def _serve(self, server: Server[Any]) -> None:
        manager = StreamableHTTPSessionManager(
            app=server, json_response=True, stateless=True, max_request_body_size=LARGEST_BODY
        )
        async with manager.run():
            await manager.handle_request(self._scope(), self._receive, self._send)

    def _scope(self) -> dict[str, Any]:
        named = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in self.headers.items()
        ]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp/",
            "raw_path": b"/mcp/",
            "root_path": "",
            "query_string": b"",
            "headers": named,
            "client": None,
            "server": None,
        }

    async def _receive(self) -> dict[str, Any]:
        if self._is_read:
            # The client's end isn't seen from here.
            await anyio.sleep_forever()
        self._is_read = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.answer_headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in message.get("headers", ())
            }
        elif message["type"] == "http.response.body":
            self.answer += message.get("body", b"")
