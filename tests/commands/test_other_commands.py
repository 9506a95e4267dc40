"""The commands around the server, run as programs where their exit code matters."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django_q.models import Schedule

PROJECT = Path(__file__).resolve().parents[2]


def output_of(*command: str) -> str:
    out = io.StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.django_db
def test_schedules_are_installed_once() -> None:
    assert "installed" in output_of("install_schedules")
    before = list(Schedule.objects.order_by("id").values())
    assert "already there" in output_of("install_schedules")
    assert list(Schedule.objects.order_by("id").values()) == before


@pytest.mark.django_db
def test_the_sweep_tells_what_it_did() -> None:
    assert output_of("sweep_turns").startswith("0 turns released")
    assert json.loads(output_of("sweep_turns", "--json")) == {"enqueued": 0, "unconfirmed": 0}


@pytest.mark.django_db
def test_check_setup_fails_while_no_worker_runs() -> None:
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("check_setup", "--json", stdout=out)
    assert json.loads(out.getvalue())["database"] == "ready"
    with pytest.raises(CommandError):
        call_command("check_setup", stdout=out)
    assert "workers: NOT READY" in out.getvalue()


@pytest.mark.django_db
def test_check_setup_warns_of_a_public_host_without_https(
    settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for https in (True, False):
        settings.ALLOWED_HOSTS = ["memory.example.com"]
        settings.HTTPS_ONLY = https
        with pytest.raises(CommandError):
            call_command("check_setup", "--json")
        shown = capsys.readouterr()
        assert ("memory.example.com, but HTTPS_ONLY is off" in shown.err) is not https
        assert "HTTPS_ONLY" not in shown.out


@pytest.mark.django_db
def test_the_admin_user_is_made_once_and_its_password_shown_once() -> None:
    shown = output_of("ensure_admin")
    password = shown.rsplit(" ", 1)[1].strip()
    admin = get_user_model().objects.get(username="admin")
    assert admin.check_password(password)
    assert admin.is_superuser
    assert output_of("ensure_admin") == ""


@pytest.mark.django_db
def test_the_given_admin_password_counts(settings: Any) -> None:
    output_of("ensure_admin")
    settings.ADMIN_PASSWORD = "given-password"
    assert "given-password" not in output_of("ensure_admin")
    assert get_user_model().objects.get(username="admin").check_password("given-password")


@pytest.mark.processes
def test_a_database_out_of_reach_is_told_without_a_traceback() -> None:
    ended = program("migrate", DATABASE_URL="postgresql://user:x@127.0.0.1:1/none")
    assert ended.returncode == 1
    assert ended.stderr.startswith("FATAL: The database cannot be used")
    assert "Traceback" not in ended.stderr


@pytest.mark.processes
def test_a_wrong_option_is_wrong_usage() -> None:
    assert program("chat", "--nonsense").returncode == 2


@pytest.mark.processes
def test_a_pipe_that_is_closed_early_is_no_fault() -> None:
    """As by `head`."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        ended = ended_with(closed, "diffsettings")
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.processes
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_output_that_cannot_be_written_is_told() -> None:
    with open("/dev/full", "wb") as full:
        ended = ended_with(full, "diffsettings")
    assert (ended.returncode, ended.stderr) == (1, "FATAL: Can't write: No space left on device.\n")


def ended_with(out: Any, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=PROJECT,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.processes
def test_ctrl_c_leaves_no_traceback_while_the_command_starts() -> None:
    """From the first import on: the interpreter itself is up by then."""
    interrupting = (
        "import runpy, signal, sys, threading, os\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'django.core.management': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['manage.py', 'audit_verify']\n"
        "runpy.run_path('manage.py', run_name='__main__')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", interrupting],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "")
