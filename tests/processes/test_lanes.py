"""A model that hangs, workers that die and a database that restarts hold up only what they must."""

from __future__ import annotations

import signal
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import Places
from memoryproject.foundation.embedded_postgres.processes import (
    is_alive,
    postmaster_of,
    stop_postmaster,
)
from tests.processes import plain_http
from tests.processes.conftest import everything
from tests.processes.installation import family, kill
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

# More than there are workers for answers.
CHATS = 7
WORKERS = 4
APOLOGY = "Sorry, I can't answer right now."


def test_a_hanging_model_holds_up_no_command_and_no_answer_for_long() -> None:
    with stage(run=everything, MODEL_TIMEOUT_SECONDS="3", ANSWER_DEADLINE_SECONDS="5") as hanging:
        hold = hanging.openai.hold_chat("hanging question")
        phones = [new_phone() for _ in range(CHATS)]
        for phone in phones:
            hanging.post.say(phone, "hanging question")
        wait_until(lambda: hold.reached >= WORKERS, "every worker waits for the model")
        quick = new_phone()
        hanging.post.say(quick, "/help")

        (help_text,) = hanging.wait_for_answers(quick, 1)
        assert "/remember" in help_text
        assert not all(hanging.graph.texts_to(phone) for phone in phones)
        for phone in phones:
            (answer,) = hanging.wait_for_answers(phone, 1)
            assert answer.startswith(APOLOGY)
        # Five timeouts are enough: the other chats didn't wait for theirs.
        assert hold.reached < 2 * CHATS
        ready = plain_http.get(f"{hanging.installation.url}/readyz", timeout=10)
        assert ready.status_code == 200
        assert "chat_model" in ready.json()["services"]
        hold.release()


def test_a_question_waits_behind_no_command_of_its_chat(live: Stage) -> None:
    phone = new_phone()
    for text in ("/help", "and a question", "/help", "another one"):
        live.post.say(phone, text)
    answers = live.wait_for_answers(phone, 4)
    assert [answer for answer in answers if answer.startswith("answer to:")] == [
        "answer to: and a question",
        "answer to: another one",
    ]
    assert [answer.startswith("answer to:") for answer in answers] == [False, True, False, True]


def test_the_workers_of_all_lanes_are_killed_and_replaced(live: Stage) -> None:
    before = live.installation.all_workers()
    kill(before)
    phone = new_phone()
    live.post.say(phone, "/help")
    live.post.say(phone, "after the kill")
    assert live.wait_for_answers(phone, 2)[1] == "answer to: after the kill"
    after = live.installation.all_workers()
    assert not {each.pid for each in before} & {each.pid for each in after}


def test_a_job_is_held_while_its_worker_lives_and_given_out_again_when_it_dies(
    live: Stage, tmp_path: Path
) -> None:
    """No sweep knows this job: nothing but the queue itself gives it out again."""
    started, over = tmp_path / "started", tmp_path / "over"
    script = f"echo $PPID >> {started}; while [ ! -e {over} ]; do sleep 0.1; done"
    printed = live.installation.manage(
        "shell",
        "-c",
        "from django_q.models import OrmQ\n"
        "from memoryproject.foundation.process.lanes import enqueue\n"
        f"enqueue('subprocess.call', ['sh', '-c', {script!r}])\n"
        "print(*(job.pk for job in OrmQ.objects.all() if job.func() == 'subprocess.call'))",
    )
    job = int(printed.split()[-1])

    def workers() -> list[int]:
        """Those that have begun the job, one after the other."""
        return [int(pid) for pid in started.read_text().split()] if started.exists() else []

    def locked() -> list[datetime]:
        held = f"SELECT lock FROM django_q_ormq WHERE lock > now() AND id = {job}"
        found = live.database.rows(held)
        return [row["lock"] for row in found]

    try:
        (first,) = wait_until(workers, "a worker has the job")
        (taken,) = locked()
        wait_until(lambda: locked() > [taken], "it is held for longer")
        assert workers() == [first], "nobody else has it"
        psutil.Process(first).kill()
        wait_until(lambda: len(workers()) == 2, "another worker has it")
    finally:
        over.touch()
    wait_until(lambda: not locked(), "the job is done")
    assert len(workers()) == 2


def test_no_job_waits_for_a_worker_that_has_taken_another(live: Stage) -> None:
    """Whatever PostgreSQL believes of the queue: no schedule runs here that would bring them up."""
    live.database.believe_in_one_row("django_q_ormq")
    hold = live.openai.hold_chat("every worker")
    phones = [new_phone() for _ in range(WORKERS)]
    for phone in phones:
        live.post.say(phone, "every worker")
    wait_until(lambda: hold.reached >= WORKERS, "every worker waits for the model")
    waiting = [new_phone() for _ in range(3 * WORKERS)]
    for phone in waiting:
        live.post.say(phone, "one of many")
    hold.release()
    for phone in waiting:
        assert live.wait_for_answers(phone, 1) == ["answer to: one of many"]


def test_a_stopped_worker_is_replaced_when_the_others_wait_for_it(live: Stage) -> None:
    """Each lane has one worker that asks for jobs; a stopped one keeps the turn to ask."""
    before = live.installation.all_workers()
    for each in before:
        each.suspend()
    phone = new_phone()
    live.post.say(phone, "/help")
    live.post.say(phone, "after the stop")
    assert live.wait_for_answers(phone, 2)[1] == "answer to: after the stop"
    for each in before:
        with suppress(psutil.NoSuchProcess):
            each.resume()


def test_a_lane_that_runs_alone_does_its_own_jobs_and_stops_when_told(live: Stage) -> None:
    """Ctrl-C: its workers finish what they have."""
    installation = live.installation
    installation.kill_workers()
    answers = installation.start_lanes("memory")
    quick, slow = new_phone(), new_phone()
    hold = live.openai.hold_chat("before Ctrl-C")
    live.post.say(quick, "/help")
    live.post.say(slow, "before Ctrl-C")
    wait_until(lambda: hold.reached, "the model is asked")
    # The first process, the leader, and four workers.
    wait_until(lambda: len(family(answers)) == 6, "nothing else runs")
    members = family(answers)

    for member in members:
        member.send_signal(signal.SIGINT)
    wait_until(lambda: len(family(answers)) == 3, "only the worker with a job is left")
    hold.release()
    answers.wait()

    assert live.wait_for_answers(slow, 1) == ["answer to: before Ctrl-C"]
    assert not any(map(is_alive, members))
    assert live.graph.texts_to(quick) == []
    commands = installation.start_lanes("commands")
    (help_text,) = live.wait_for_answers(quick, 1)
    assert "/remember" in help_text
    kill(family(commands))
    commands.wait()


def test_a_restart_of_the_database_delays_an_answer_only_shortly(live: Stage) -> None:
    """No schedule runs here: nothing but the worker itself takes the answer up again."""
    phone = new_phone()
    hold = live.openai.hold_chat("during the restart")
    live.post.say(phone, "during the restart")
    wait_until(lambda: hold.reached, "the answer is being made")

    places = Places(live.installation.data_dir)
    postmaster = postmaster_of(places)
    assert postmaster is not None
    stop_postmaster(postmaster, places.log)
    hold.release()
    server = EmbeddedPostgres(live.installation.data_dir)
    server.ensure_running()
    try:
        assert live.wait_for_answers(phone, 1) == ["answer to: during the restart"]
        live.post.say(phone, "and afterwards")
        assert live.wait_for_answers(phone, 2)[1] == "answer to: and afterwards"
    finally:
        server.release()
