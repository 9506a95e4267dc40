"""Run one HTTP exchange with the package's transport, from a thread without an event loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from asgiref.sync import async_to_sync
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from memoryproject.foundation.rest_kit.bodies import MAX_BODY_SIZE


@async_to_sync
async def exchange(server: Server[Any], headers: Mapping[str, str], body: bytes) -> httpx.Response:
    """Block until the response is complete.

    The tools run in the calling thread, so that they use its database connection outside the
    event loop.
    """
    manager = StreamableHTTPSessionManager(
        app=server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_SIZE
    )
    # Not a client, which would add its own headers.
    transport = httpx.ASGITransport(manager.handle_request)
    named = httpx.Headers(dict(headers), encoding="latin-1")
    async with manager.run():
        answer = await transport.handle_async_request(
            httpx.Request("POST", "http://localhost/mcp/", headers=named, content=body)
        )
        await answer.aread()
    return answer
