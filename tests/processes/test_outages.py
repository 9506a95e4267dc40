"""An outage discards nothing: neither questions nor answers, and a kill changes nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.conftest import everything
from tests.processes.posting import new_phone
from tests.processes.stage import ACCESS_TOKEN, Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

APOLOGY = "Sorry, I can't answer right now. Please try again in a few minutes."
PATIENCE_SECONDS = 300.0
PUT_OFF = """
SELECT 1 FROM sessions_app_turn WHERE state = 'replied' AND not_before > now()
"""
# So that none is tried again before the workers are back, however long that takes.
HOLD_LONGER = """
UPDATE sessions_app_turn SET not_before = now() + interval '1 hour' WHERE state = 'replied'
"""
SEND_HELD = """
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from sessions_app.turns.queue import answer_soon
from sessions_app.turns.statuses import held_send_now
assert held_send_now(actor=COMMAND_LINE, enqueue=answer_soon) == 20
"""
# Several for each thread that answers.
QUESTIONS = 20


def wait_for_texts(running: Stage, phones: list[str], count: int) -> None:
    """Until each phone has got so many. The program that answers sweeps by itself."""
    wait_until(
        lambda: all(len(running.graph.texts_to(phone)) >= count for phone in phones),
        "the answers",
        seconds=PATIENCE_SECONDS,
    )


def states(running: Stage, phones: list[str]) -> dict[str, int]:
    rows = running.database.rows(
        "SELECT state, count(*) AS n FROM sessions_app_turn turn"
        " JOIN sessions_app_chat chat ON chat.id = turn.chat_id"
        " WHERE split_part(whatsapp_chat, '@', 1) = ANY(%s) GROUP BY 1",
        phones,
    )
    return {str(row["state"]): int(row["n"]) for row in rows}


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with stage(run=everything) as started:
        yield started


def test_questions_of_an_outage_are_answered_once_when_the_model_is_back(running: Stage) -> None:
    running.openai.is_away = True
    phones = [new_phone() for _ in range(QUESTIONS)]
    for phone in phones:
        running.post.say(phone, f"question of {phone}")
    wait_for_texts(running, phones, 1)
    kept = {"deferred": QUESTIONS, "sent": QUESTIONS}
    wait_until(lambda: states(running, phones) == kept, "all are kept open")
    # A trial that fails, and the death of all workers.
    running.installation.manage("sweep_turns")
    running.installation.kill_workers()
    running.installation.start_workers()

    running.openai.is_away = False
    wait_for_texts(running, phones, 2)
    wait_until(lambda: states(running, phones) == {"sent": 2 * QUESTIONS}, "all are answered")
    for phone in phones:
        assert running.graph.texts_to(phone) == [APOLOGY, f"answer to: question of {phone}"]


def test_answers_are_held_while_the_provider_refuses_the_token(running: Stage) -> None:
    running.graph.access_token = "renewed"
    phones = [new_phone() for _ in range(20)]
    for phone in phones:
        running.post.say(phone, f"question of {phone}")
    # Not only stored: each was refused, or left alone because others were.
    wait_until(lambda: len(running.database.rows(PUT_OFF)) == 20, "all answers are held")
    running.database.rows(HOLD_LONGER)
    running.installation.kill_workers()
    running.installation.start_workers()
    running.installation.wait_until_ready()
    assert states(running, phones) == {"replied": 20}

    running.graph.access_token = ACCESS_TOKEN
    # What staff do. By themselves the answers follow when the next trial succeeds.
    running.installation.manage("shell", "-v", "0", "-c", SEND_HELD)
    # A trial that was under way with the old token may pause the provider once more.
    sent = {"sent": 20}
    wait_until(lambda: states(running, phones) == sent, "all are sent", seconds=PATIENCE_SECONDS)
    for phone in phones:
        assert running.graph.texts_to(phone) == [f"answer to: question of {phone}"]
