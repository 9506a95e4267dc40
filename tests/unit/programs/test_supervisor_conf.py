"""Supervisor's configuration."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

from memoryproject.programs import Program, all_programs, supervisor_conf


def test_supervisor_reads_paths_with_any_character(tmp_path: Path) -> None:
    folder = tmp_path / "a b % c"
    odd = Program("odd", [str(folder / "run me"), "100%"], environment={"A": "b c%d"})
    text = supervisor_conf([odd], run_dir=folder, log_dir=folder, directory=folder)
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    section = parser["program:odd"]
    command = shlex.split(section["command"].replace("%%", "%"))
    assert command[-2:] == [str(folder / "run me"), "100%"]
    assert section["environment"] == "A='b c%%d'"
    assert section["directory"] == str(folder).replace("%", "%%")


def test_four_programs_with_postgresql_are_all() -> None:
    assert [each.name for each in all_programs(8000)] == ["web", "answer", "qcluster"]
