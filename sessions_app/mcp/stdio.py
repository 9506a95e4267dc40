"""Speaks over stdin and stdout, until stdin ends."""

from __future__ import annotations

from typing import Any

import anyio
from mcp import stdio_server, types
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

UNREADABLE = "The line is no message of JSON-RPC: each is one JSON object on a line of its own."


async def serve_stdio(server: Server[Any]) -> None:
    """While it runs, what others print to stdout goes to stderr: the package sees to that."""
    readable, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with stdio_server() as (lines, writing), anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_on, lines, readable, writing.clone())
        await server.run(reading, writing, server.create_initialization_options())


async def _pass_on(lines: Any, readable: Any, writing: Any) -> None:
    """The messages, and an answer to each line that is none, which the package would drop."""
    error = types.ErrorData(code=types.PARSE_ERROR, message=UNREADABLE)
    refusal = SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error))
    async with readable, writing:
        async for line in lines:
            if isinstance(line, Exception):
                await writing.send(refusal)
            else:
                await readable.send(line)
