"""The program `server` of `make run`, whose processes are forked from one: each may be killed."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial

import httpx
import psutil
import pytest

from memoryproject.foundation.embedded_postgres.processes import is_alive
from tests.processes.installation import Installation, children, family, free_port, kill
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

WORKER_NICENESS = 10
# What `ps` calls the forked processes.
TITLES = Counter(
    {
        "gunicorn: master [webhooks]": 1,
        "gunicorn: worker [webhooks]": 2,
        "gunicorn: master [web]": 1,
        "gunicorn: worker [web]": 2,
        "qcluster leader": 1,
        "qcluster memory": 4,
        "qcluster commands": 2,
        "qcluster schedules": 2,
        "qcluster background": 2,
    }
)


def with_tables(installation: Installation) -> None:
    installation.prepare()
    installation.launch()


@pytest.fixture(scope="module")
def launched() -> Iterator[Stage]:
    # How a first start makes its tables is seen in test_launch.py.
    with stage(run=with_tables) as started:
        yield started


def server_of(launched: Stage) -> psutil.Process:
    """The first process of the program, once all of its processes are there."""

    def whole() -> list[psutil.Process]:
        everything = family(launched.installation.programs["launcher"])
        first = [each for each in everything if "memoryproject.serve" in command(each)][:1]
        servers = [member for each in first for member in family(each)]
        # The first one, two web servers of three processes each, the workers and their leader.
        return servers if len(servers) == 1 + 3 + 3 + 1 + 10 else []

    return wait_until(whole, "the server has all its processes")[0]


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def are_gone(processes: list[psutil.Process]) -> bool:
    return not any(map(is_alive, processes))


def assert_serves(launched: Stage, text: str) -> None:
    launched.installation.wait_until_ready()
    phone = new_phone()
    launched.post.say(phone, text)
    assert launched.wait_for_answers(phone, 1) == [f"answer to: {text}"]
    wait_until(
        lambda: launched.installation.answer("/admin/login/") == httpx.codes.OK, "pages are served"
    )


def test_only_the_workers_give_way_to_others(launched: Stage) -> None:
    server = server_of(launched)
    niceness = sorted(each.nice() for each in family(server))
    assert niceness == [server.nice()] * 7 + [server.nice() + WORKER_NICENESS] * 11


@pytest.mark.skipif(sys.platform != "linux", reason="titles crash forked processes of macOS")
def test_each_process_says_what_it_is(launched: Stage) -> None:
    server = server_of(launched)

    def titles() -> Counter[str]:
        named = (" ".join(command(each)) for each in family(server)[1:])
        # django-q2 adds what a worker does at the moment.
        return Counter(title.split(" idle")[0].split(" processing")[0].strip() for title in named)

    wait_until(lambda: titles() == TITLES, "each process has its title")


def test_a_program_whose_first_process_is_killed_is_forked_again(launched: Stage) -> None:
    server = server_of(launched)
    for number, program in enumerate(server.children(), start=1):
        orphans = family(program)
        kill([program])
        assert_serves(launched, f"after kill {number}")
        wait_until(partial(are_gone, orphans), "what was left of it has ended")
        assert server_of(launched) == server


def test_the_first_process_of_all_is_killed(launched: Stage) -> None:
    server = server_of(launched)
    orphans = family(server)

    kill([server])

    wait_until(partial(are_gone, orphans), "what was left of it has ended")
    assert_serves(launched, "after the kill of the first process")
    # The sockets are those of the new web servers, though the old ones ended later.
    assert launched.installation.answer("/healthz") == httpx.codes.OK


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_the_process_manager_is_killed(launched: Stage) -> None:
    """The launcher starts it again, once nothing of the old one is left."""
    launcher = launched.installation.programs["launcher"]
    server_of(launched)
    (supervisor,) = launcher.children()
    orphans = family(supervisor)

    kill([supervisor])

    wait_until(partial(are_gone, orphans), "what was left of it has ended")
    assert_serves(launched, "after the kill of the process manager")
    assert supervisor not in launcher.children()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_all_ends_with_the_launcher(launched: Stage) -> None:
    """Nobody could stop the others by Ctrl-C."""
    launcher = launched.installation.programs["launcher"]
    server_of(launched)
    orphans = family(launcher)

    kill([launcher])
    launcher.wait()

    wait_until(partial(are_gone, orphans), "all have ended")
    launched.installation.launch()
    assert_serves(launched, "after the kill of the launcher")


def test_a_second_start_with_the_same_data_is_refused(launched: Stage) -> None:
    """It would take the sockets of the first one."""
    launcher = launched.installation.programs["launcher"]
    server_of(launched)

    refused = launched.installation.launch_in_vain(PORT=str(free_port()))

    assert refused.returncode == 1
    assert f"Another run (process {launcher.pid}) uses" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert_serves(launched, "after the second start")


def test_sigterm_ends_all_of_it(launched: Stage) -> None:
    """Supervisor starts it again here, because it didn't ask for the end."""
    server = server_of(launched)
    members = family(server)

    server.send_signal(signal.SIGTERM)

    wait_until(partial(are_gone, members), "all of its processes have ended")
    assert_serves(launched, "after an orderly end")
    assert children(server) == []
