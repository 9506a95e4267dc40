"""Serve over stdin and stdout until stdin ends."""

from __future__ import annotations

from typing import Any

import anyio
from mcp import stdio_server, types
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

UNREADABLE = "The line is no message of JSON-RPC: each is one JSON object on a line of its own."


async def serve_stdio(server: Server[Any]) -> None:
    """Serve. Meanwhile the package redirects other output from stdout to stderr."""
    readable, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with stdio_server() as (lines, writing), anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_on, lines, readable, writing.clone())
        await server.run(reading, writing, server.create_initialization_options())


async def _pass_on(lines: Any, readable: Any, writing: Any) -> None:
    """Forward messages, and answer invalid lines, which the package would ignore."""
    error = types.ErrorData(code=types.PARSE_ERROR, message=UNREADABLE)
    refusal = SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error))
    async with readable, writing:
        async for line in lines:
            if isinstance(line, Exception):
                await writing.send(refusal)
            else:
                await readable.send(line)
