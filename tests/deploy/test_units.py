"""The systemd units name programs, files and settings that exist, and fit to one another."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands

from memoryproject.settings_table import OWN_SETTINGS
from tests.docs.sources import PROJECT, read

UNITS = sorted((PROJECT / "deploy" / "systemd").iterdir())
SERVICES = [path for path in UNITS if path.suffix == ".service"]
ROOT = Path("/opt/memory")
OF_GUNICORN = set(re.findall(r'environ\.get\("([A-Z_]+)"', read("deploy/gunicorn.conf.py")))
HARDENED = {
    "NoNewPrivileges": "true",
    "ProtectSystem": "strict",
    "PrivateTmp": "true",
    "User": "memory",
    "UMask": "0077",
}


def unit(path: Path) -> dict[str, dict[str, list[str]]]:
    """Return a unit's sections; a name may stand several times in one."""
    sections: dict[str, dict[str, list[str]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            section.setdefault(name, []).append(value)
    return sections


def test_the_parser_reads_them_too() -> None:
    for path in UNITS:
        configparser.RawConfigParser(strict=False, interpolation=None).read(path)


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_programs_and_files_exist(path: Path) -> None:
    service = unit(path)["Service"]
    (line,) = service["ExecStart"]
    program, *words = shlex.split(line)
    assert Path(program).parent == ROOT / ".venv" / "bin"
    assert service["WorkingDirectory"] == [str(ROOT)]
    files = [word for word in words if word.endswith(".py")]
    assert files
    assert all((PROJECT / word).is_file() for word in files)
    if words[0] == "manage.py":
        assert words[1] in get_commands()


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_settings_exist_and_everything_is_locked_down(path: Path) -> None:
    service = unit(path)["Service"]
    named = {
        word.partition("=")[0] for line in service["Environment"] for word in shlex.split(line)
    }
    assert named <= OWN_SETTINGS.keys() | OF_GUNICORN | {"PYTHONUNBUFFERED"}
    for name, value in HARDENED.items():
        assert service[name] == [value]


def test_units_name_units_that_exist() -> None:
    names = {path.name for path in UNITS}
    for path in UNITS:
        sections = unit(path)
        for key in ("Wants", "Requires", "After", "PartOf"):
            for value in sections["Unit"].get(key, []):
                ours = {word for word in value.split() if word.startswith("memory")}
                assert ours <= names
        if path.suffix == ".timer":
            assert path.with_suffix(".service").name in names


@pytest.mark.parametrize("name", ["web", "webhooks"])
def test_the_ports_are_those_of_both_proxies(name: str) -> None:
    text = read(f"deploy/systemd/memory-{name}.service")
    found = re.search(r"(?:WEB_BIND=|--bind )(127\.0\.0\.1:\d+)", text)
    assert found
    assert f"{{$MEMORY_{name.upper()}:{found[1]}}}" in read("deploy/Caddyfile")
    assert re.search(rf"upstream memory_{name} {{\s+server {found[1]};", read("deploy/nginx.conf"))
