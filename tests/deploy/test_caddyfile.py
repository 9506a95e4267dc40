"""The front door with a domain and TLS, as in a deployment."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tests.processes.front_door import CADDYFILE, caddy_program


def test_only_http_1_is_spoken() -> None:
    """In others, a body that is shorter than its length would give two requests one buffer."""
    adapted = subprocess.run(
        [caddy_program(), "adapt", "--config", str(CADDYFILE), "--adapter", "caddyfile"],
        env={**os.environ, "MEMORY_SITE": "memory.example.com"},
        capture_output=True,
        check=True,
    )
    servers: dict[str, Any] = json.loads(adapted.stdout)["apps"]["http"]["servers"]
    assert [server["protocols"] for server in servers.values()] == [["h1"]]
