"""The program `answer`: what a hanging model and a restart of the database hold up."""

from __future__ import annotations

import signal
import time

import httpx
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import (
    Places,
    is_alive,
    postmaster_of,
    stop_postmaster,
)
from sessions_app.turns.bursts import KEEPS_PLACE
from tests.processes import plain_http
from tests.processes.conftest import everything
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

THREADS = 4
# More than there are threads.
CHATS = 7
# Ten seconds on a machine that others use, too. Without a limit it takes more than a minute.
STOP_SECONDS = 50
APOLOGY = "Sorry, I can't answer right now."


def test_a_hanging_model_holds_up_no_command_and_no_answer_for_long() -> None:
    with stage(
        run=everything,
        ANSWER_THREADS=str(THREADS),
        MODEL_TIMEOUT_SECONDS="3",
        ANSWER_DEADLINE_SECONDS="5",
    ) as hanging:
        hold = hanging.openai.hold_chat("hanging question")
        phones = [new_phone() for _ in range(CHATS)]
        for phone in phones:
            hanging.post.say(phone, "hanging question")
        wait_until(lambda: hold.reached >= THREADS, "every thread waits for the model")
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
        assert ready.status_code == httpx.codes.OK
        assert "chat_model" in ready.json()["services"]
        hold.release()


def test_a_question_waits_behind_no_command_of_its_chat(live: Stage) -> None:
    phone, began = new_phone(), time.monotonic()
    for text in ("/help", "and a question", "/help", "another one"):
        live.post.say(phone, text)
    answers = live.wait_for_answers(phone, 4)
    is_question = [answer.startswith("answer to:") for answer in answers]
    questions = [answer for answer in answers if answer.startswith("answer to:")]
    assert questions == ["answer to: and a question", "answer to: another one"]
    # On a machine that took longer, the second command has passed the question.
    is_late = time.monotonic() - began > KEEPS_PLACE.total_seconds()
    assert is_question == [False, True, False, True] or is_late


def test_told_to_stop_it_finishes_what_it_has(live: Stage) -> None:
    phone, later = new_phone(), new_phone()
    hold = live.openai.hold_chat("before Ctrl-C")
    live.post.say(phone, "before Ctrl-C")
    wait_until(lambda: hold.reached, "the model is asked")
    answer = live.installation.programs.pop("answer")

    answer.send_signal(signal.SIGINT)
    wait_until(lambda: answer.num_threads() <= 3, "only the thread that answers is left")
    live.post.say(later, "said meanwhile")
    hold.release()
    answer.wait()

    assert live.wait_for_answers(phone, 1) == ["answer to: before Ctrl-C"]
    assert live.graph.texts_to(later) == []
    live.installation.start_program("answer")
    assert live.wait_for_answers(later, 1) == ["answer to: said meanwhile"]


def test_it_ends_with_0_and_gives_back_at_once(live: Stage) -> None:
    """As systemd and Docker stop it: another one, on whatever machine, goes on without waiting."""
    live.installation.stop_program("answer")
    phone = new_phone()
    hold = live.openai.hold_chat("given back")
    live.post.say(phone, "given back")
    for number in (signal.SIGTERM, signal.SIGINT):
        reached = hold.reached
        answer = live.installation.begin("manage.py", "answer")
        wait_until(lambda: hold.reached > reached, "the model is asked")  # noqa: B023
        answer.process.send_signal(number)
        assert answer.end(STOP_SECONDS).returncode == 0
        (turn,) = live.database.turns(f"{phone}@c.us")
        assert (turn["state"], turn["lease_token"], turn["attempts"]) == ("running", None, 0)
    hold.release()
    live.installation.start_program("answer")
    assert live.wait_for_answers(phone, 1) == ["answer to: given back"]


def test_a_restart_of_the_database_delays_an_answer_only_shortly(live: Stage) -> None:
    """No schedule runs here: nothing but the program itself takes the answer up again."""
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
        assert is_alive(live.installation.programs["answer"])
    finally:
        server.release()
