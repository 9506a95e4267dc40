"""Serve MCP over stdin and stdout."""

import os
import signal
from pathlib import Path
from typing import Any

import anyio
from asgiref.sync import async_to_sync
from django.core.management.base import CommandError
from django.db import close_old_connections
from mcp import stdio_server, types
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from rest_framework.exceptions import AuthenticationFailed

from memoryproject.foundation.commands import ReportingCommand, UsageError, option
from sessions_app.embedding.choice import embedder
from sessions_app.mcp.rest import Rest
from sessions_app.mcp.server import server_for
from sessions_app.stored_settings import stored_settings_look

VARIABLE = "MCP_TOKEN"


class Command(ReportingCommand):
    json_help = ""
    fills_memory = True

    arguments = [option("--token-file", type=Path, metavar="FILE")]

    def run(self, options: dict[str, Any]) -> None:
        rest = Rest(_secret(options["token_file"]))
        try:
            caller = rest.caller()
            embedder().embed(["ready"])
        except AuthenticationFailed as error:
            raise CommandError(str(error.detail)) from error
        # There is nothing to shut down, and the thread that reads stdin would block Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # There is no request cycle, which otherwise manages the connection.
        async_to_sync(serve_stdio)(server_for(rest, caller, prepare))


def _secret(file: Path | None) -> str:
    """Return the token. Raises CommandError."""
    if file is None:
        found = os.environ.get(VARIABLE, "")
        where = VARIABLE
    else:
        where = str(file)
        try:
            found = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"--token-file: {file} can't be read: {error}") from error
    if not found.strip():
        raise UsageError(f"{where} holds no token. Make one by `manage.py create_api_token NAME`.")
    return found.strip()


# Serve over stdin and stdout until stdin ends.

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


def prepare() -> None:
    """Get ready for a call of a program that has waited for long."""
    close_old_connections()
    stored_settings_look()
