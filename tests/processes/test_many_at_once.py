"""Many processes at one session, with summaries made meanwhile by the real workers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.processes.command_server import REPOSITORY
from tests.processes.posting import new_phone
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

PROCESSES = 8
TIMES = 15
EVERY = 20


def session_of(live: Stage, phone: str) -> dict[str, Any]:
    (session,) = live.database.rows(
        "SELECT session.* FROM sessions_app_chatsession session"
        " JOIN sessions_app_chat chat ON chat.id = session.chat_id"
        " WHERE chat.whatsapp_chat = %s",
        f"{phone}@c.us",
    )
    return session


def summaries_of(live: Stage, session_id: Any) -> list[dict[str, Any]]:
    return live.database.rows(
        "SELECT * FROM sessions_app_summarizationmetadata WHERE session_id = %s ORDER BY number",
        session_id,
    )


def work_of(live: Stage, session_id: Any) -> list[dict[str, Any]]:
    return live.database.rows(
        "SELECT * FROM sessions_app_summarywork WHERE session_id = %s", session_id
    )


def check_session(live: Stage, phone: str) -> None:
    """Numbers without gap or double, the window's sum, each message summed up at most once."""
    session = session_of(live, phone)
    messages = live.database.messages(f"{phone}@c.us")
    numbers = [message["order_num"] for message in messages]
    assert numbers == list(range(1, len(messages) + 1))
    assert session["message_counter"] == len(messages)
    window = [each for each in messages if each["order_num"] >= session["window_start"]]
    assert session["total_tokens"] == sum(each["tokens"] for each in window)
    # The last two messages always stay, and so do the summaries that were made after them.
    *_, before_last, _ = [each for each in window if each["role"] != "summary"]
    kept = [each for each in window if each["order_num"] >= before_last["order_num"]]
    assert session["total_tokens"] <= max(4_000, sum(each["tokens"] for each in kept))
    chain = summaries_of(live, session["session_id"])
    assert [each["number"] for each in chain] == list(range(1, len(chain) + 1))
    summed_up = [pk for each in chain for pk in each["summarized_message_ids"]]
    said = [each["message_id"] for each in messages if each["role"] != "summary"]
    assert summed_up == said[: len(summed_up)], "each once, in their order, none left out"
    assert len(summed_up) == EVERY * len(chain)
    assert len([each for each in messages if each["role"] == "summary"]) == len(chain)


def test_eight_processes_at_one_session(live: Stage) -> None:
    """EDGE-006: nobody's message is lost, and none has another's number."""
    phone = new_phone()
    live.post.say(phone, "begin")
    live.wait_for_answers(phone, 1)
    session_id = session_of(live, phone)["session_id"]

    adders = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.processes.adder"),
            *(str(session_id), str(TIMES), *"abcdefgh"[:PROCESSES]),
        ],
        cwd=REPOSITORY,
        env=live.installation.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert adders.stdin is not None
    assert adders.stdout is not None
    assert adders.stdout.readline() == "ready\n"
    adders.stdin.write("go\n")
    adders.stdin.flush()
    live.post.say(phone, "and answered meanwhile")
    printed, error = adders.communicate(timeout=120)
    assert adders.returncode == 0, error
    added = int(printed)
    assert added > PROCESSES * EVERY

    live.wait_for_answers(phone, 2)
    # A worker looks once more for messages after it has marked that nothing is due.
    wait_until(
        lambda: len(summaries_of(live, session_id)) >= (added + 4) // EVERY,
        "all that is due is summed up",
    )
    wait_until(lambda: not work_of(live, session_id)[0]["due"], "nothing is due")
    check_session(live, phone)
    assert len(summaries_of(live, session_id)) == (added + 4) // EVERY
    log = (live.installation.data_dir / "postgres.log").read_text(encoding="utf-8")
    assert "deadlock detected" not in log


def test_killed_while_the_model_sums_up(live: Stage) -> None:
    """kill -9 of the worker: another makes the summary, once; the answers don't wait."""
    phone = new_phone()
    hold = live.openai.hold_chat("client: held while summing up")
    live.post.say(phone, "held while summing up")
    for number in range(EVERY // 2 - 1):
        live.post.say(phone, f"say {number}")
    live.wait_for_answers(phone, EVERY // 2)
    wait_until(lambda: hold.reached, "the model is asked for a summary")
    session_id = session_of(live, phone)["session_id"]
    live.post.say(phone, "answered meanwhile")
    live.wait_for_answers(phone, EVERY // 2 + 1)
    assert summaries_of(live, session_id) == []

    (work,) = work_of(live, session_id)
    live.installation.kill_owner(work["lease_owner"])
    hold.release()

    live.wait_with_sweeps(
        lambda: summaries_of(live, session_id), "another worker makes the summary"
    )
    wait_until(lambda: not work_of(live, session_id)[0]["due"], "nothing is due")
    check_session(live, phone)
    assert len(summaries_of(live, session_id)) == 1


def test_the_next_prompt_tells_nothing_of_the_summary_twice(live: Stage) -> None:
    phone = new_phone()
    for number in range(EVERY // 2):
        live.post.say(phone, f"fact {number} of {phone}")
    live.wait_for_answers(phone, EVERY // 2)
    session_id = session_of(live, phone)["session_id"]
    live.wait_with_sweeps(lambda: summaries_of(live, session_id), "the summary is made")
    (made,) = summaries_of(live, session_id)
    assert f"fact 0 of {phone}" in made["digest"]
    live.post.say(phone, f"what was fact 3 of {phone}?")
    live.wait_for_answers(phone, EVERY // 2 + 1)
    prompt = live.openai.prompt_for(f"what was fact 3 of {phone}?")
    # All of it is in the history still: once as it was written, and once in its answer.
    told = "\n".join(message["content"] for message in prompt)
    assert [told.count(f"fact {number} of {phone}") for number in range(3)] == [2, 2, 2], told
