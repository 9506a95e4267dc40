"""The package's own client, over both transports."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TextIO

import httpx2
from mcp import Client, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client

from tests.processes.command_server import REPOSITORY
from tests.processes.installation import Installation

PATIENCE_SECONDS = 60.0
TRANSPORTS = ("stdio", "http")


@dataclass(frozen=True)
class Doorway:
    """How to get at an installation's MCP server."""

    installation: Installation
    errors: TextIO

    @asynccontextmanager
    async def client(
        self, transport: str, secret: str, era: str = "auto", **environment: str
    ) -> AsyncIterator[Client]:
        """``era`` of the protocol: "legacy" with its handshake (until 2025-11-25), "auto" without
        (from 2026-07-28)."""
        if transport == "http":
            headers = {"Authorization": f"Bearer {secret}"}
            async with httpx2.AsyncClient(
                headers=headers, timeout=PATIENCE_SECONDS, trust_env=False
            ) as http:
                url = f"{self.installation.url}/mcp/"
                async with self._client(streamable_http_client(url, http_client=http), era) as made:
                    yield made
        else:
            started = stdio_client(self.command(MCP_TOKEN=secret, **environment), self.errors)
            async with self._client(started, era) as made:
                yield made

    def command(self, *arguments: str, **environment: str) -> StdioServerParameters:
        return StdioServerParameters(
            command=sys.executable,
            args=[str(REPOSITORY / "manage.py"), "mcp_server", *arguments],
            env={**self.installation.environment, **environment},
        )

    def _client(self, transport: Any, era: str) -> Client:
        return Client(transport, mode=era, read_timeout_seconds=PATIENCE_SECONDS)


def told(result: types.CallToolResult) -> dict[str, Any]:
    """What a tool answered, which is no error; its text says the same."""
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


def words(result: types.CallToolResult) -> str:
    """All texts of an answer."""
    return "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))


def refusal(result: types.CallToolResult) -> str:
    """The words of an answer that is an error."""
    assert result.is_error, result
    assert result.structured_content is None
    assert "Traceback" not in words(result)
    return words(result)
