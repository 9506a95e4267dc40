"""A stop under load: within ten seconds, and nothing is lost or sent twice."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from functools import partial

import psutil
import pytest

from memoryproject.foundation.embedded_postgres.places import is_alive
from tests.processes.installation import Installation, family, kill
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.stand_ins import Hold
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

# Ten seconds on a machine that others use, too. Without a limit it takes more than a minute.
PATIENCE_SECONDS = 25
THREADS = 4
LONG = ["sleep", "100"]
LONG_JOB = f"""
from memoryproject.foundation.process.jobs import enqueue
enqueue("subprocess.call", {LONG}, task_name="a long job")
"""


@pytest.fixture(scope="module")
def launched() -> Iterator[Stage]:
    with stage(run=Installation.launch, ANSWER_THREADS=str(THREADS)) as started:
        yield started


def is_asked(hold: Hold, before: int) -> bool:
    return hold.reached > before


def long_jobs(launcher: psutil.Process) -> list[psutil.Process]:
    return [each for each in family(launcher) if each.cmdline() == LONG]


@pytest.mark.parametrize("signals", [[signal.SIGINT] * 2, [signal.SIGTERM], [signal.SIGHUP]])
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
    launcher.wait(PATIENCE_SECONDS)
    kill([job])
    assert not [each for each in members if is_alive(each)]

    hold.release()
    launched.installation.launch()
    for phone in phones:
        assert launched.wait_for_answers(phone, 1) == [f"answer to: {text}"]
        (turn,) = launched.database.turns(f"{phone}@c.us")
        assert (turn["state"], turn["attempts"]) == ("sent", 1)


def test_the_program_that_answers_ends_with_0_and_gives_back_at_once() -> None:
    """As systemd and Docker stop it: another one, on whatever machine, goes on without waiting."""

    def start(installation: Installation) -> None:
        installation.prepare()
        installation.start_program("web")
        wait_until(lambda: installation.answer("/healthz") == 200, "the web server")

    with stage(run=start) as live:
        phone = new_phone()
        hold = live.openai.hold_chat("given back")
        live.post.say(phone, "given back")
        for number in (signal.SIGTERM, signal.SIGINT):
            answer = live.installation.start_other(
                sys.executable, "manage.py", "answer", PYTHONUNBUFFERED="1"
            )
            wait_until(partial(is_asked, hold, hold.reached), "the model is asked")
            answer.send_signal(number)
            assert answer.wait(PATIENCE_SECONDS) == 0
            (turn,) = live.database.turns(f"{phone}@c.us")
            assert (turn["state"], turn["lease_token"], turn["attempts"]) == ("running", None, 0)
        hold.release()
        live.installation.start_program("answer")
        assert live.wait_for_answers(phone, 1) == ["answer to: given back"]
