"""The front door's parts: sockets, the address of a client, and supervisor's configuration."""

from __future__ import annotations

import configparser
import shlex
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from memoryproject.programs import (
    CADDYFILE,
    MAX_SOCKET_PATH_BYTES,
    FrontDoor,
    FrontDoorError,
    PeerAddress,
    Program,
    all_programs,
    not_too_old,
    socket_folder,
    supervisor_conf,
)


def front_door(folder: Path, **options: Any) -> FrontDoor:
    options.setdefault("behind_proxies", False)
    return FrontDoor(port=8000, run_dir=folder, socket_dir=folder, **options)


def seen_by(application: Any, **environ: str) -> dict[str, str]:
    """Return what an application behind PeerAddress sees."""
    seen: dict[str, str] = {}

    def inner(environ: dict[str, str], start_response: Any) -> list[bytes]:
        seen.update(environ)
        return []

    application(inner)(environ, lambda *_: None)
    return seen


@pytest.mark.parametrize(
    ("forwarded", "address", "left"),
    [
        ("203.0.113.9", "203.0.113.9", None),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9", "198.51.100.1"),
        ("a, b, 2001:db8::1", "2001:db8::1", "a, b"),
        ("", "", None),
    ],
)
def test_the_front_door_gives_the_address(forwarded: str, address: str, left: str | None) -> None:
    seen = seen_by(PeerAddress, REMOTE_ADDR="", HTTP_X_FORWARDED_FOR=forwarded)
    assert seen["REMOTE_ADDR"] == address
    assert seen.get("HTTP_X_FORWARDED_FOR") == left


def test_a_request_with_an_address_of_its_own_keeps_it() -> None:
    seen = seen_by(PeerAddress, REMOTE_ADDR="192.0.2.7", HTTP_X_FORWARDED_FOR="203.0.113.9")
    assert seen == {"REMOTE_ADDR": "192.0.2.7", "HTTP_X_FORWARDED_FOR": "203.0.113.9"}


def test_sockets_are_in_the_folder_where_their_path_is_short_and_plain() -> None:
    assert socket_folder(Path("/srv/memory/data/run")) == Path("/srv/memory/data/run")


@pytest.mark.parametrize("name", ["x" * MAX_SOCKET_PATH_BYTES, "a b", "a{b", "a'b", 'a"b', "a#b"])
def test_other_sockets_are_in_a_private_folder(name: str) -> None:
    folder = socket_folder(Path("/srv") / name)
    try:
        assert folder.name.startswith("memory-web-")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        shutil.rmtree(folder)


def program_that_says(text: str, folder: Path) -> str:
    program = folder / "caddy"
    program.write_text(f"#!/bin/sh\necho '{text}'\n", encoding="utf-8")
    program.chmod(0o700)
    return str(program)


@pytest.mark.parametrize("version", ["v2.11.2 h1:a=", "v2.11.10", "v2.12.0", "v3.0.0", "(devel)"])
def test_a_caddy_that_is_new_enough_is_taken(tmp_path: Path, version: str) -> None:
    program = program_that_says(version, tmp_path)
    assert not_too_old(program) == program


@pytest.mark.parametrize("version", ["2.6.2", "v2.10.2 h1:a=", "v2.11.1"])
def test_a_caddy_that_mixes_bodies_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(FrontDoorError, match="may mix the bodies"):
        not_too_old(program_that_says(version, tmp_path))


def test_only_proxies_of_ones_own_are_believed(tmp_path: Path) -> None:
    nobody = front_door(tmp_path).environment()["MEMORY_OUTER_PROXIES"]
    everybody = front_door(tmp_path, behind_proxies=True).environment()["MEMORY_OUTER_PROXIES"]
    assert (nobody, everybody) == ("192.0.2.1/32", "0.0.0.0/0 ::/0")


def test_the_caddyfile_reads_what_it_is_given(tmp_path: Path) -> None:
    text = CADDYFILE.read_text(encoding="utf-8")
    given = {name for name in front_door(tmp_path).environment() if name.startswith("MEMORY_")}
    assert all(f"{{${name}" in text for name in given)


def test_supervisor_reads_paths_with_any_character(tmp_path: Path) -> None:
    folder = tmp_path / "a b % c"
    odd = Program("odd", [str(folder / "run me"), "100%"], environment={"A": "b c%d"})
    text = supervisor_conf([odd], run_dir=folder, log_dir=folder, directory=folder)
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    section = parser["program:odd"]
    assert shlex.split(section["command"].replace("%%", "%")) == [str(folder / "run me"), "100%"]
    assert section["environment"] == "A='b c%%d'"
    assert section["directory"] == str(folder).replace("%", "%%")


def test_the_front_door_starts_last(tmp_path: Path) -> None:
    programs = all_programs(front_door(tmp_path))
    assert max(programs, key=lambda program: program.priority).name == "front"
