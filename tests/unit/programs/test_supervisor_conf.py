"""Supervisor's configuration."""

from __future__ import annotations

import shlex
from pathlib import Path

from supervisor.options import ServerOptions

from memoryproject.programs import Program, all_programs, supervisor_conf


def test_supervisor_reads_paths_with_any_character(tmp_path: Path) -> None:
    folder = tmp_path / "חנות b's % c %d #1 ;2"
    folder.mkdir()
    odd = Program("odd", [str(folder / "run me"), "100%"], environment={"A": "b c%d"})
    conf = folder / "supervisord.conf"
    conf.write_text(supervisor_conf([odd], run_dir=folder, log_dir=folder, directory=folder))
    options = ServerOptions()
    options.realize(["-c", str(conf)])
    assert options.pidfile == str(folder / "supervisord.pid")
    (group,) = options.process_group_configs
    (read,) = group.process_configs
    assert shlex.split(read.command)[-2:] == [str(folder / "run me"), "100%"]
    assert read.environment == {"A": "b c%d"}
    assert read.directory == str(folder)
    assert read.stdout_logfile == str(folder / "odd.log")


def test_four_programs_with_postgresql_are_all() -> None:
    assert [each.name for each in all_programs(8000)] == ["web", "answer", "qcluster"]
