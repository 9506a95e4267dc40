"""A real server that clients call, and JSON-RPC without one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.mcp.clients import Doorway
from tests.processes.installation import Installation
from tests.processes.waiting import wait_until


@pytest.fixture(scope="package")
def installation() -> Iterator[Installation]:
    """With a web server; nothing here needs workers."""
    with tempfile.TemporaryDirectory(prefix="mcp-") as folder:
        started = Installation(Path(folder), ENABLE_MEMORY_SYSTEM="true")
        try:
            started.prepare()
            started.start_program("web")
            wait_until(lambda: started.answer("/healthz") == httpx.codes.OK, "the server is up")
            yield started
        finally:
            started.stop()


@pytest.fixture
def doorway(installation: Installation) -> Iterator[Doorway]:
    with (installation.folder / "stdio.log").open("a+", encoding="utf-8") as errors:
        yield Doorway(installation, errors)


@pytest.fixture(scope="package")
def secret(installation: Installation) -> Callable[..., str]:
    """Makes a token by its command; by default one that may do everything."""
    return lambda *options: installation.manage("create_api_token", "tests", *options).strip()
