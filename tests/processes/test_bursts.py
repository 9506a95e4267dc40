"""Many messages at once: nothing twice, nothing out of order, nobody waits for another chat."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.processes.posting import cloud_text, new_phone
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes


def test_a_delivery_repeated_in_parallel_is_one_message_and_one_answer(live: Stage) -> None:
    phone = new_phone()
    payload = cloud_text(phone, "Said once, delivered often")

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(live.post.cloud, [payload] * 20))

    assert [answer.status_code for answer in answers] == [200] * 20
    assert live.wait_for_answers(phone, 1) == ["answer to: Said once, delivered often"]
    said = live.database.messages(f"{phone}@c.us")
    assert [message["role"] for message in said] == ["user", "assistant"]
    wamid = said[0]["provider_message_id"]
    kept = "SELECT 1 FROM sessions_app_inbounddelivery WHERE subject_id = %s"
    assert len(live.database.rows(kept, wamid)) == 1
    assert live.database.states(f"{phone}@c.us") == ["sent"]


def test_a_burst_is_answered_in_its_order_and_without_what_came_later(live: Stage) -> None:
    """EDGE-003 (ten messages in a second) and EDGE-006 (they arrive at once)."""
    phone = new_phone()
    texts = [f"burst {letter * 3}" for letter in "abcdefghij"]
    first = live.openai.hold_chat(texts[0])

    for text in texts:
        live.post.say(phone, text)
    wait_until(lambda: first.reached, "the first message is being answered")
    first.release()

    assert live.wait_for_answers(phone, 10) == [f"answer to: {text}" for text in texts]
    # The worker that sums up the twenty messages may have been quick.
    said = [
        message
        for message in live.database.messages(f"{phone}@c.us")
        if message["role"] != "summary"
    ]
    assert [message["content"] for message in said if message["role"] == "user"] == texts
    assert [message["order_num"] for message in said] == list(range(1, 21))
    for place, text in enumerate(texts):
        prompt = str(live.openai.prompt_for(text))
        assert not [later for later in texts[place + 1 :] if later in prompt]
        assert all(prompt.count(f"'answer to: {earlier}'") == 1 for earlier in texts[:place])


def test_a_chat_is_answered_while_another_one_is_being_answered(live: Stage) -> None:
    busy, quick = new_phone(), new_phone()
    slow = live.openai.hold_chat("slow one")

    for text in ("slow one", "second", "third"):
        live.post.say(busy, text)
    wait_until(lambda: slow.reached, "the busy chat is being answered")
    live.post.say(quick, "quick one")
    wait_until(lambda: live.graph.texts_to(quick), "the other chat is answered")

    assert live.graph.texts_to(busy) == []
    slow.release()
    answered = live.wait_for_answers(busy, 3)
    assert answered == ["answer to: slow one", "answer to: second", "answer to: third"]
    assert live.graph.texts_to(quick) == ["answer to: quick one"]
