"""A model that hangs, workers that die and a database that restarts hold up only what they must."""

from __future__ import annotations

import psutil
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import places_for
from memoryproject.foundation.embedded_postgres.processes import (
    is_alive,
    postmaster_of,
    stop_postmaster,
)
from memoryproject.foundation.process.lanes import LANES
from tests.processes import plain_http
from tests.processes.conftest import everything
from tests.processes.installation import family, kill
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

# More than there are workers for answers.
CHATS = 7
APOLOGY = "Sorry, I can't answer right now."


def test_a_hanging_model_holds_up_no_command_and_no_answer_for_long() -> None:
    with stage(run=everything, MODEL_TIMEOUT_SECONDS="3", ANSWER_DEADLINE_SECONDS="5") as hanging:
        hold = hanging.openai.hold_chat("hanging question")
        phones = [new_phone() for _ in range(CHATS)]
        for phone in phones:
            hanging.post.say(phone, "hanging question")
        wait_until(lambda: hold.reached >= 4, "every worker waits for the model")
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


def test_a_lane_that_is_killed_is_started_again(live: Stage) -> None:
    workers = live.installation.workers
    assert workers is not None
    wait_until(lambda: len(workers.children()) == len(LANES), "all lanes have started")
    before = family(workers)[1:]
    for lane in workers.children():
        kill([lane])
    # A worker that outlives its lane for a moment must not get a message: it may be killed while
    # it sends the answer.
    wait_until(
        lambda: (
            not any(map(is_alive, before))
            and list(map(is_alive, workers.children())) == [True] * len(LANES)
        ),
        "all lanes have started again",
    )
    live.installation.wait_until_ready()
    phone = new_phone()
    live.post.say(phone, "/help")
    live.post.say(phone, "after the kill")
    assert live.wait_for_answers(phone, 2)[1] == "answer to: after the kill"


def test_the_lanes_end_with_the_process_that_started_them(live: Stage) -> None:
    workers = live.installation.workers
    assert workers is not None
    wait_until(lambda: len(workers.children()) == len(LANES), "all lanes have started")
    members = family(workers)[1:]
    kill([workers])
    workers.wait()
    wait_until(lambda: not any(is_alive(member) for member in members), "the lanes have ended")
    live.installation.start_workers()
    live.installation.wait_until_ready()


def test_a_lane_ends_whose_parent_ended_before_it_looked(live: Stage) -> None:
    """A kill at the moment of the fork."""
    gone = psutil.Popen(["true"])
    gone.wait()
    live.installation.manage(
        "shell",
        "-c",
        "from memoryproject.foundation.process.lane_processes import run_lane\n"
        "import os\n"
        "if os.fork() == 0:\n"
        f"    run_lane('schedules', {gone.pid})\n"
        "    os._exit(0)\n"
        "os.wait()",
    )


def test_a_restart_of_the_database_delays_an_answer_only_shortly(live: Stage) -> None:
    """No schedule runs here: nothing but the worker itself takes the answer up again."""
    phone = new_phone()
    hold = live.openai.hold_chat("during the restart")
    live.post.say(phone, "during the restart")
    wait_until(lambda: hold.reached, "the answer is being made")

    places = places_for(live.installation.data_dir)
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
