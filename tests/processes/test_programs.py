"""The programs of `make run`: each of their processes may be killed, all may be stopped, and each
writes one JSON object a line where LOG_FORMAT says so."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import psutil
import pytest

from memoryproject.foundation.embedded_postgres.places import is_alive
from tests.loopback.openai_behaviours import fails
from tests.processes.installation import Installation, family, free_port, kill
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

WORKER_NICENESS = 10
# Each program with all its processes: web has a master and two; qcluster its first process, the
# guard, three workers, monitor and pusher.
PROCESSES = {"web": 3, "answer": 1, "qcluster": 7}
# The places in that order, one of each kind.
KINDS = {"web": (0, 1), "answer": (0,), "qcluster": (0, 1, 2, 5, 6)}
JOB = """
from memoryproject.foundation.process.jobs import enqueue
enqueue("builtins.str", "a job", task_name="after {name}")
"""


# Ten seconds on a machine that others use, too. Without a limit it takes more than a minute.
STOP_SECONDS = 50
THREADS = 4
LONG = ["sleep", "100"]
LONG_JOB = f"""
from memoryproject.foundation.process.jobs import enqueue
enqueue("subprocess.call", {LONG}, task_name="a long job")
"""
FAILING_JOB = """
from memoryproject.foundation.process.jobs import enqueue
enqueue("builtins.int", "no number", task_name="a job that fails")
"""


def with_tables(installation: Installation) -> None:
    installation.prepare()
    installation.launch()


@pytest.fixture(scope="module")
def launched() -> Iterator[Stage]:
    # How a first start makes its tables is seen in test_launch.py.
    with stage(run=with_tables, ANSWER_THREADS=str(THREADS), LOG_FORMAT="json") as started:
        yield started


def programs_of(launched: Stage) -> dict[str, psutil.Process]:
    """The first process of each program, once all of its processes are there."""

    def whole() -> dict[str, psutil.Process]:
        found = {}
        # Any of them may end while it is looked at.
        for program in family(launched.installation.programs["launcher"]):
            name = next((name for name in PROCESSES if named(program, name)), "")
            if name and len(family(program)) == PROCESSES[name]:
                found[name] = program
        return found if found.keys() == PROCESSES.keys() else {}

    return wait_until(whole, "all processes are there")


def named(process: psutil.Process, name: str) -> bool:
    """Whether this is the program: django-q2 and gunicorn name themselves where they can."""
    try:
        words = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return ("gunicorn" if name == "web" else name) in words


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


def test_only_the_programs_that_work_give_way_to_others(launched: Stage) -> None:
    programs = programs_of(launched)
    web = programs["web"].nice()
    for name, program in programs.items():
        gives_way = 0 if name == "web" else WORKER_NICENESS
        assert {each.nice() for each in family(program)} == {web + gives_way}, name


@pytest.mark.parametrize("name", KINDS)
def test_each_process_of_a_program_is_killed(launched: Stage, name: str) -> None:
    for place in KINDS[name]:
        program = programs_of(launched)[name]
        killed = family(program)[place]
        left = [] if name == "web" and place else family(program)
        kill([killed])
        wait_until(partial(are_gone, [killed, *left]), "what was left of it has ended")
        assert_serves(launched, f"after the kill of {name} {place}")
    # One of the cluster's processes may have taken a lock with it.
    launched.installation.manage("shell", "-c", JOB.format(name=name))
    done = "SELECT 1 FROM django_q_task WHERE name = %s AND success"
    wait_until(lambda: launched.database.rows(done, f"after {name}"), "jobs are done")


def test_a_process_is_killed_before_the_cluster_knows_it(launched: Stage) -> None:
    """As on a busy machine: django-q2 has replaced it before anybody looked."""
    cluster = launched.installation.start_command("qcluster")
    wait_until(cluster.children, "the guard is there", longest_pause=0.01)
    cluster.suspend()
    wait_until(lambda: len(family(cluster)) == PROCESSES["qcluster"], "all are there")
    _, guard, *first = family(cluster)
    kill([first[-1]])
    wait_until(lambda: {*guard.children()} - {*first}, "another has taken its place")
    members = family(cluster)

    cluster.resume()

    wait_until(partial(are_gone, members), "the cluster has ended")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_the_process_manager_is_killed(launched: Stage) -> None:
    """The launcher starts it again, once nothing of the old one is left."""
    launcher = launched.installation.programs["launcher"]
    programs_of(launched)
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
    programs_of(launched)
    orphans = family(launcher)

    kill([launcher])
    launcher.wait()

    wait_until(partial(are_gone, orphans), "all have ended")
    launched.installation.launch()
    assert_serves(launched, "after the kill of the launcher")


def test_a_second_start_with_the_same_data_is_refused(launched: Stage) -> None:
    launcher = launched.installation.programs["launcher"]
    programs_of(launched)

    refused = launched.installation.launch_in_vain(PORT=str(free_port()))

    assert refused.returncode == 1
    assert f"Another run (process {launcher.pid}) uses" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert_serves(launched, "after the second start")


def test_sigterm_ends_a_program_in_order(launched: Stage) -> None:
    """Supervisor starts it again here, because it didn't ask for the end."""
    for name, program in programs_of(launched).items():
        members = family(program)
        program.send_signal(signal.SIGTERM)
        wait_until(partial(are_gone, members), f"all of {name} has ended")
    assert_serves(launched, "after an orderly end")


# A stop under load: within ten seconds, and nothing is lost or sent twice.


def long_jobs(launcher: psutil.Process) -> list[psutil.Process]:
    return [each for each in family(launcher) if words_of(each) == LONG]


def words_of(process: psutil.Process) -> list[str]:
    """Return how it was started; nothing of one that has ended since it was listed."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


# SIGTERM: test_launch.py.
@pytest.mark.parametrize("signals", [[signal.SIGINT] * 2, [signal.SIGHUP]])
def test_answers_that_are_being_made_are_made_after_the_next_start(
    launched: Stage, signals: list[signal.Signals]
) -> None:
    """While a model and a job hang, and others wait."""
    launcher = launched.installation.programs.pop("launcher")
    members = family(launcher)
    text = f"stopped by {signals[0].name}"
    hold = launched.openai.hold_chat(text)
    phones = [new_phone() for _ in range(2 * THREADS)]
    for phone in phones:
        launched.post.say(phone, text)
    launched.installation.manage("shell", "-v", "0", "-c", LONG_JOB)
    wait_until(lambda: hold.reached >= THREADS, "every thread waits for the model")
    (job,) = wait_until(lambda: long_jobs(launcher), "the job has begun")

    for number in signals:
        launcher.send_signal(number)
    launcher.wait(STOP_SECONDS)
    kill([job])
    assert not [each for each in members if is_alive(each)]

    hold.release()
    launched.installation.launch()
    for phone in phones:
        assert launched.wait_for_answers(phone, 1) == [f"answer to: {text}"]
        (turn,) = launched.database.turns(f"{phone}@c.us")
        assert (turn["state"], turn["attempts"]) == ("sent", 1)


def objects(text: str) -> list[dict[str, Any]]:
    """The lines, each of which has to be an object with what each has."""
    found = [json.loads(line) for line in text.splitlines()]
    for entry in found:
        assert {"time", "level", "program", "message"} <= entry.keys(), entry
    return found


def test_every_line_of_every_program_is_an_object(launched: Stage) -> None:
    """LOG_FORMAT=json, after all that was done to the programs, and with a turn that failed."""
    phone = new_phone()
    launched.openai.script_chat(fails(400))
    launched.post.say(phone, "nobody answers")
    launched.wait_until_over(phone)
    (turn,) = launched.database.turns(f"{phone}@c.us")[:1]
    launched.installation.manage("shell", "-v", "0", "-c", FAILING_JOB)
    logs = launched.installation.folder / "logs"
    wait_until(lambda: "builtins.int" in (logs / "qcluster.log").read_text(), "the job fails")
    (supervisor,) = launched.installation.programs["launcher"].children()
    kill(family(supervisor))
    launched.installation.wait_until_ready()

    printed = objects(launched.installation.console.read_text(encoding="utf-8"))
    said = [(each["program"], each["message"]) for each in printed]
    assert any(program == "launcher" and "Ready: http" in text for program, text in said)
    assert any("ended unexpectedly (-9)" in text for _program, text in said)
    logged = {
        name: objects((logs / f"{name}.log").read_text(encoding="utf-8"))
        for name in ("memory", "web", "answer", "qcluster")
    }
    for name in ("answer", "qcluster"):
        assert {each["program"] for each in logged[name]} == {name}
    assert {"web", "answer", "qcluster"} <= {each["program"] for each in logged["memory"]}
    # gunicorn's own lines are there, too.
    assert any("Listening at" in each["message"] for each in logged["memory"])
    assert any(each.get("turn") == str(turn["turn_id"]) for each in logged["answer"])
