"""Serve MCP over stdin and stdout."""

from __future__ import annotations

import os
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, close_old_connections
from rest_framework.exceptions import AuthenticationFailed

from memoryproject.foundation.process.command_options import MEMORY_OFF
from memoryproject.foundation.rest_kit.authentication import caller_with
from sessions_app.embedding.choice import embedder
from sessions_app.mcp.rest import Rest
from sessions_app.mcp.server import instructions_for, server_for
from sessions_app.mcp.stdio import serve_stdio

VARIABLE = "MCP_TOKEN"
WRONG = 2


class Command(BaseCommand):
    help = (
        "Serve the tools of the Model Context Protocol over stdin and stdout, for an assistant "
        f"that starts this command. The token of the API in {VARIABLE} says what it may do and "
        "see; `create_api_token` makes one. Ends when stdin does. Logs go to stderr."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--token-file",
            type=Path,
            metavar="FILE",
            help=f"Read the token from this file instead of the variable {VARIABLE}.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        rest = Rest(_secret(options["token_file"]))
        try:
            instructions = instructions_for(caller_with(rest.secret))
            embedder().embed(["ready"])
        except AuthenticationFailed as error:
            raise CommandError(str(error.detail)) from error
        except DatabaseError as error:
            raise CommandError(f"The database can't be used: {error}".strip()) from error
        if not settings.ENABLE_MEMORY_SYSTEM:
            self.stderr.write(MEMORY_OFF)
        # There is nothing to shut down, and the thread that reads stdin would block Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # There is no request cycle, which otherwise manages the connection.
        server = server_for(rest, instructions=instructions, prepare=close_old_connections)
        async_to_sync(serve_stdio)(server)


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
        raise CommandError(
            f"{where} holds no token. Make one by `manage.py create_api_token NAME`.",
            returncode=WRONG,
        )
    return found.strip()
