"""compose.yaml and the Dockerfile name files, commands, ports and settings that exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from memoryproject.settings_table import OWN_SETTINGS
from tests.docs.sources import EXAMPLE, PROJECT, read
from tests.tables import table

COMPOSE: dict[str, Any] = yaml.safe_load(read("compose.yaml"))
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)")
DEFAULT = re.compile(r"\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}")
# What only the deployment's own files read.
OF_DEPLOYMENT = {
    "MEMORY_SITE",
    "MEMORY_PATH",
    "POSTGRES_PASSWORD",
    "BACKUP_DIR",
    "MEMORY_VERSION",
    "TRACING",
    "S3",
    "PYTHON_IMAGE",
    "POSTGRES_IMAGE",
    "CADDY_IMAGE",
}
OF_GUNICORN = set(re.findall(r'environ\.get\("([A-Z_]+)"', read("deploy/gunicorn.conf.py")))
CADDYFILE = read("deploy/Caddyfile")


def instructions(name: str) -> list[str]:
    """Return the arguments of one instruction of the Dockerfile."""
    joined = re.sub(r"\\\n\s*", " ", read("Dockerfile"))
    return re.findall(rf"^{name} (.+)$", joined, re.MULTILINE)


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists() and os.environ.get("CI", "").lower() not in ("1", "true"):
        pytest.skip("there is no hadolint here")
    found = subprocess.run(
        [program, PROJECT / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (0, "")


def test_compose_yaml_is_as_its_specification_says() -> None:
    compose_spec = pytest.importorskip("compose_spec")
    text = DEFAULT.sub(lambda found: found[1] or "x", read("compose.yaml"))

    def parse(text: str) -> Any:
        # Anchors and merges are read by YAML alone.
        return compose_spec.PyCompose.from_yaml(yaml.safe_dump(yaml.safe_load(text)))

    assert set(parse(text).service_names()) == set(SERVICES)
    for right, wrong in (("read_only:", "reed_only:"), ("service_healthy", "service_happy")):
        with pytest.raises(ValueError, match=wrong.strip(":")):
            parse(text.replace(right, wrong))


def test_every_part_is_there() -> None:
    assert set(SERVICES) == {
        *("prepare", "webhooks", "web", "answer", "qcluster", "db", "caddy"),
        *("backup", "restore-drill"),
    }


@table("name", OURS)
def test_commands_exist(name: str) -> None:
    command = OURS[name].get("command")
    if command is None:
        return
    assert command[0] == "python"
    assert (PROJECT / command[1]).is_file()
    if command[1] == "manage.py":
        assert command[2] in get_commands()


@table("name", OURS)
def test_settings_exist(name: str) -> None:
    assert set(OURS[name]["environment"]) <= OWN_SETTINGS.keys() | OF_GUNICORN


def test_the_example_names_each_variable_and_only_settings() -> None:
    named = {key for key, _ in EXAMPLE.findall(read("deploy/compose.env.example"))}
    assert named <= OWN_SETTINGS.keys() | OF_DEPLOYMENT
    assert set(VARIABLE.findall(read("compose.yaml"))) - {"MEMORY_VERSION"} <= named


def test_nothing_is_public_but_the_front_door() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["caddy"]


def test_the_front_door_passes_to_the_web_servers() -> None:
    bound = re.search(r'"WEB_BIND", "0\.0\.0\.0:(\d+)"', read("deploy/gunicorn.conf.py"))
    assert bound
    port = bound[1]
    environment = SERVICES["caddy"]["environment"]
    assert environment["MEMORY_WEB"] == f"web:{port}"
    assert environment["MEMORY_WEBHOOKS"] == f"webhooks:{port}"
    assert set(environment) <= set(re.findall(r"\{\$([A-Z_]+)", CADDYFILE))
    assert instructions("EXPOSE") == [port]
    assert OURS["web"]["environment"]["TRUSTED_PROXIES"] == "1"


@table("name", OURS)
def test_our_containers_are_locked_down_and_wait_for_the_tables(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    if name != "prepare":
        assert service["depends_on"]["prepare"] == {"condition": "service_completed_successfully"}


@table("name", SERVICES)
def test_volumes_are_declared_or_files_of_the_project(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source = volume.split(":")[0]
        if source.startswith("./"):
            assert (PROJECT / source).exists()
        elif not source.startswith("$"):
            assert source in COMPOSE["volumes"]


def test_the_image_has_what_it_copies_and_runs() -> None:
    ignored = read(".dockerignore")
    for words in map(shlex.split, instructions("COPY")):
        if words[0].startswith("--from"):
            continue
        for source in words[:-1]:
            assert (PROJECT / source).exists(), source
            assert f"!{source}" in ignored
    for path in re.findall(r'"(deploy/[\w.]+)"', read("Dockerfile")):
        assert (PROJECT / path).is_file()


def test_the_image_runs_as_nobody_special_with_folders_of_the_settings() -> None:
    assert instructions("USER") == ["10001:10001"]
    environment = " ".join(instructions("ENV"))
    assert "DATA_DIR=/var/lib/memory/data" in environment
    assert "LOG_DIR=/var/lib/memory/data/logs" in environment
    assert instructions("VOLUME") == ["/var/lib/memory/data"]
    for name in OURS:
        assert "data:/var/lib/memory/data" in OURS[name]["volumes"]


def test_the_image_installs_what_the_server_needs_and_nothing_for_tests() -> None:
    assert "requirements-dev.txt" not in read("Dockerfile")
    assert "--require-hashes --no-deps -r requirements.txt" in read("Dockerfile")
    for name in re.findall(r"pip uninstall --yes ([\w -]+?)(?: \\|$)", read("Dockerfile"), re.M):
        for package in name.split():
            assert package == "pip" or f"\n{package}==" in f"\n{read('requirements.txt')}"


def test_no_secret_gets_into_the_image() -> None:
    lines = read(".dockerignore").splitlines()
    assert "*" in lines
    assert "**/.env" in lines
    assert "compose.env" in read(".gitignore").splitlines()
