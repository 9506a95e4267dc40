"""A chat in which something is slow holds no webhook of another chat up, and loses nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.processes.posting import Poster, cloud_text, new_phone
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

# Three times as many as the web server has threads.
COUNT = 3 * 2 * 18
WAITING = "SELECT count(*) AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def batch(*bodies: dict[str, Any]) -> dict[str, Any]:
    """One body with the changes of several."""
    return {**bodies[0], "entry": [entry for body in bodies for entry in body["entry"]]}


def texts(live: Stage, phone: str) -> list[str]:
    said = live.database.messages(f"{phone}@c.us")
    return [message["content"] for message in said if message["role"] == "user"]


def repeated_until_taken(post: Poster, body: dict[str, Any]) -> None:
    """What a provider does."""
    wait_until(lambda: post.cloud(body).status_code == httpx.codes.OK, "the webhook is taken")


def test_webhooks_of_others_are_answered_while_one_chat_is_held(live: Stage) -> None:
    slow, honest, third = new_phone(), new_phone(), new_phone()
    live.post.say(slow, "begin")
    live.wait_for_answers(slow, 1)
    bodies = [cloud_text(slow, f"number {number}") for number in range(COUNT)]
    with ThreadPoolExecutor(COUNT) as pool:
        with live.database.locked("sessions_app_chat", "whatsapp_chat", f"{slow}@c.us"):
            posted = [pool.submit(live.post.cloud, body) for body in bodies]
            most = COUNT // 3
            wait_until(
                lambda: (
                    any(each.done() for each in posted)
                    or live.database.rows(WAITING)[0]["count"] >= most
                ),
                "the webhooks wait for the chat",
            )
            live.post.say(honest, "hello")
            mixed = batch(cloud_text(slow, "in a batch"), cloud_text(third, "beside it"))
            refused = live.post.cloud(mixed)
            assert live.wait_for_answers(honest, 1)
            answers = [each.result() for each in posted]
        assert {answer.status_code for answer in [*answers, refused]} == {503}
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in [*answers, refused])
        assert texts(live, third) == ["beside it"], "the rest of a body is stored"
        assert texts(live, slow) == ["begin"]
        list(pool.map(lambda body: repeated_until_taken(live.post, body), [*bodies, mixed]))
    assert sorted(texts(live, slow)) == sorted(
        ["begin", "in a batch", *(f"number {number}" for number in range(COUNT))]
    )
    assert texts(live, third) == ["beside it"]


def test_a_burst_of_one_chat_is_stored_at_once(live: Stage) -> None:
    phone = new_phone()
    bodies = [cloud_text(phone, f"number {number}") for number in range(10)]
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(live.post.cloud, bodies))
    assert {answer.status_code for answer in answers} == {httpx.codes.OK}
    assert len(texts(live, phone)) == 10
