"""The numbers of docs/deploy.md, compose.yaml, the units and the programs are the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from django.conf import settings
from django_q.conf import Conf

from memoryproject import programs
from memoryproject.management.commands import qcluster
from sessions_app.turns import queue
from tests.docs.sources import read
from tests.tables import table

SERVICES: dict[str, Any] = yaml.safe_load(read("compose.yaml"))["services"]
ROW = re.compile(
    r"^\| `?([\w ]+?)`? \| (\d*) ?\| (\d*) ?\| [^|]+ MB \| (\d+) MB \| (\d+) s \|$", re.M
)
ROWS = {row[0]: row[1:] for row in ROW.findall(read("docs/deploy.md"))}
NAMES = {"PostgreSQL": "db", "Caddy": "caddy"}
MEGABYTES = {"m": 1, "g": 1024}
GUNICORN = read("deploy/gunicorn.conf.py")


def megabytes(text: str) -> int:
    return int(text[:-1]) * MEGABYTES[text[-1].lower()]


def of_unit(name: str, key: str) -> str:
    found = re.search(rf"{key}=(\S+)", read(f"deploy/systemd/memory-{name}.service"))
    assert found, (name, key)
    return found[1]


def test_each_program_has_a_row() -> None:
    assert set(ROWS) == {"webhooks", "web", "answer", "qcluster", "PostgreSQL", "Caddy"}


@table("name", ROWS)
def test_compose_has_the_numbers_of_the_table(name: str) -> None:
    _processes, _threads, memory, seconds = ROWS[name]
    service = SERVICES[NAMES.get(name, name)]
    assert megabytes(service["mem_limit"]) == int(memory)
    assert service["stop_grace_period"] == f"{seconds}s"


@table("name", ["webhooks", "web", "answer", "qcluster"])
def test_the_units_have_the_numbers_of_the_table(name: str) -> None:
    _processes, _threads, memory, seconds = ROWS[name]
    assert megabytes(of_unit(name, "MemoryMax")) == int(memory)
    assert of_unit(name, "TimeoutStopSec") == seconds


@pytest.mark.parametrize("name", ["webhooks", "web"])
def test_threads_and_processes_of_the_web_servers(name: str) -> None:
    processes, threads, *_limits = ROWS[name]
    environment = SERVICES[name]["environment"]
    assert (environment["WEB_PROCESSES"], environment["WEB_THREADS"]) == (processes, threads)
    assert (of_unit(name, "WEB_PROCESSES"), of_unit(name, "WEB_THREADS")) == (processes, threads)


def test_the_defaults_are_those_of_the_table() -> None:
    assert f'"WEB_THREADS", "{ROWS["web"][1]}"' in GUNICORN
    assert f'"WEB_PROCESSES", "{ROWS["web"][0]}"' in GUNICORN
    assert int(ROWS["answer"][1]) == settings.ANSWER_THREADS + queue.QUICK_THREADS
    assert settings.Q_CLUSTER["workers"] == int(ROWS["qcluster"][0])


def test_each_program_gives_up_before_it_is_killed() -> None:
    gives_up = re.search(r"^graceful_timeout = (\d+)$", GUNICORN, re.M)
    assert gives_up
    own = {float(gives_up[1]), queue.STOP_SECONDS, qcluster.STOP_SECONDS}
    assert own == {3.0}
    text = read("docs/deploy.md")
    assert "3 seconds" in text
    assert f"hasn't ended after {programs.STOP_SECONDS} seconds is killed" in text
    assert 3 < programs.STOP_SECONDS < int(ROWS["answer"][3])


def test_a_worker_that_is_well_is_not_replaced() -> None:
    """django-q2 does so after 500 jobs, and the cluster takes its end for a kill."""
    assert Conf.RECYCLE is None
