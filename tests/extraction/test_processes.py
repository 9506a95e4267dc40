"""Learning with real workers, killed on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.processes.conftest import everything
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def live() -> Iterator[Stage]:
    """A stage that learns; nobody takes anything up by the clock."""
    with stage(run=everything, EXTRACT_MEMORIES="true", EMBEDDER="wordllama") as started:
        yield started


def learned(live: Stage, phone: str) -> list[dict[str, Any]]:
    return live.database.rows(
        "SELECT memory.* FROM memories_app_memory memory"
        " JOIN sessions_app_chat chat ON chat.id = memory.chat_id"
        " WHERE chat.whatsapp_chat = %s AND memory.source = 'extraction' ORDER BY created_at",
        f"{phone}@c.us",
    )


def works(live: Stage, phone: str) -> list[dict[str, Any]]:
    return live.database.rows(
        "SELECT work.* FROM sessions_app_extractionwork work"
        " JOIN sessions_app_turn turn ON turn.id = work.turn_id"
        " JOIN sessions_app_chat chat ON chat.id = turn.chat_id"
        " WHERE chat.whatsapp_chat = %s ORDER BY work.turn_id",
        f"{phone}@c.us",
    )


def is_over(live: Stage, phone: str) -> bool:
    return bool(works(live, phone)) and not any(work["due"] for work in works(live, phone))


def test_a_message_is_answered_and_learned_from(live: Stage) -> None:
    phone = new_phone()
    live.post.say(phone, "My office is in Haifa")
    assert live.wait_for_answers(phone, 1) == ["answer to: My office is in Haifa"]
    wait_until(lambda: is_over(live, phone), "it is learned from")
    (memory,) = learned(live, phone)
    assert memory["content"].endswith("office is in Haifa")
    (message, _) = live.database.messages(f"{phone}@c.us")
    assert memory["source_message_id"] == message["message_id"]


def test_killed_while_the_model_reads_it_is_learned_once_by_another(live: Stage) -> None:
    phone = new_phone()
    # Only the request for facts ends with this mark's message; the answer's is the text alone.
    hold = live.openai.hold_chat("My boat is in Jaffa\n</message-")
    live.post.say(phone, "My boat is in Jaffa")
    live.wait_for_answers(phone, 1)
    wait_until(lambda: hold.reached, "the model reads it")

    (work,) = works(live, phone)
    live.installation.kill_owner(work["lease_owner"])
    hold.release()

    live.wait_with_sweeps(lambda: is_over(live, phone), "another worker learned from it")
    (work,) = works(live, phone)
    # A worker of the cluster that ends may have begun with it once more.
    assert work["attempts"] in (2, 3)
    assert (work["outcome"], work["error"]) == ("1 learned", "")
    (memory,) = learned(live, phone)
    assert memory["told_count"] == 1
    assert live.graph.texts_to(phone) == ["answer to: My boat is in Jaffa"], "answered once"


def test_everything_is_killed_between_the_answer_and_learning(live: Stage) -> None:
    phone = new_phone()
    hold = live.openai.hold_chat("My car is red\n</message-")
    for text in ("My car is red", "My bike is blue"):
        live.post.say(phone, text)
    live.wait_for_answers(phone, 2)
    wait_until(lambda: hold.reached, "the model reads the first")

    live.installation.kill_everything()
    hold.release()
    live.installation.start()

    live.wait_with_sweeps(
        lambda: len(works(live, phone)) == 2 and is_over(live, phone), "both are read"
    )
    ends = [memory["content"].split(" is ")[1] for memory in learned(live, phone)]
    assert ends == ["red", "blue"]
