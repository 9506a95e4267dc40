"""A chat that staff have taken over, with real workers: a pause holds though they are killed, and
a reply goes out once though they are killed.

The stage has no schedules: what is taken up again is so because a killed worker is replaced.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.processes.posting import new_phone
from tests.processes.stage import Stage
from tests.processes.test_kills import kill_worker_in
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes
PASSWORD = "a-password-of-tests"
MAKE = f"""
from django.contrib.auth.models import User
if not User.objects.filter(username="dana").exists():
    User.objects.create_superuser("dana", password="{PASSWORD}")
"""


class Desk:
    """Dana's browser at one chat."""

    def __init__(self, live: Stage, browser: httpx.Client, phone: str) -> None:
        rows = live.database.rows(
            "SELECT id FROM sessions_app_chat WHERE whatsapp_chat = %s", f"{phone}@c.us"
        )
        self._browser = browser
        self._page = f"/admin/sessions_app/turn/takeover/{rows[0]['id']}/"

    def post(self, what: str, **form: str) -> httpx.Response:
        token = {"csrfmiddlewaretoken": self._browser.cookies["csrftoken"]}
        answer = self._browser.post(f"{self._page}{what}/", data={**form, **token})
        assert answer.status_code == httpx.codes.FOUND, answer.text[:500]
        return answer


@contextmanager
def logged_in(live: Stage) -> Iterator[httpx.Client]:
    live.installation.manage("shell", "-v", "0", "-c", MAKE)
    headers = {"Referer": live.installation.url}
    with httpx.Client(
        base_url=live.installation.url, headers=headers, trust_env=False, timeout=30
    ) as browser:
        form = browser.get("/admin/login/").text
        found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
        assert found
        login = {"username": "dana", "password": PASSWORD, "csrfmiddlewaretoken": found[1]}
        answer = browser.post("/admin/login/", data={**login, "next": "/admin/"})
        assert answer.status_code == httpx.codes.FOUND
        yield browser


@pytest.fixture
def browser(live: Stage) -> Iterator[httpx.Client]:
    with logged_in(live) as client:
        yield client


def begun(live: Stage, browser: httpx.Client) -> tuple[str, Desk]:
    """A chat in which one message was answered."""
    phone = new_phone()
    live.post.say(phone, "Hi")
    live.wait_for_answers(phone, 1)
    return phone, Desk(live, browser, phone)


def test_a_pause_in_the_middle_of_an_answer_holds_though_the_worker_is_killed(
    live: Stage, browser: httpx.Client
) -> None:
    phone, desk = begun(live, browser)
    hold = live.openai.hold_chat("paused meanwhile")
    live.post.say(phone, "paused meanwhile")
    wait_until(lambda: hold.reached, "the model is asked")
    owner = live.database.turns(f"{phone}@c.us")[-1]["lease_owner"]
    desk.post("pause", lasts="open")
    live.installation.kill_owner(owner)
    hold.release()
    live.post.say(phone, "and this")
    other = new_phone()
    live.post.say(other, "somebody else")
    live.wait_for_answers(other, 1)
    live.wait_until_over(phone)
    assert live.database.states(f"{phone}@c.us") == ["sent", "held", "held"]
    assert live.graph.texts_to(phone) == ["answer to: Hi"]


def test_a_pause_outlives_the_whole_cluster_and_the_last_message_is_answered_then(
    live: Stage, browser: httpx.Client
) -> None:
    phone, desk = begun(live, browser)
    desk.post("pause", lasts="8h")
    live.post.say(phone, "first while paused")
    live.installation.kill_workers()
    live.post.say(phone, "last while paused")
    live.installation.start_workers()
    live.installation.wait_until_ready()
    live.sweep(unconfirmed_after_seconds=3600)
    assert live.database.states(f"{phone}@c.us") == ["sent", "held", "held"]
    desk.post("resume", answer="last")
    assert live.wait_for_answers(phone, 2) == ["answer to: Hi", "answer to: last while paused"]
    assert live.database.states(f"{phone}@c.us") == ["sent", "held", "sent"]


def test_a_reply_is_sent_once_though_its_worker_is_killed_between_two_tries(
    live: Stage, browser: httpx.Client
) -> None:
    phone, desk = begun(live, browser)
    reply = "by hand, refused at first"
    live.graph.refused.add(reply)
    key = str(uuid.uuid4())
    for _ in range(3):
        desk.post("reply", text=reply, key=key)
    wait_until(lambda: live.graph.tries.count(reply) >= 1, "the reply is refused")
    wait_until(
        lambda: [part["state"] for part in live.database.parts(f"{phone}@c.us")][1:] == ["waiting"],
        "it is on record that nothing went out",
    )
    kill_worker_in(live, phone)
    live.graph.refused.remove(reply)
    assert live.wait_for_answers(phone, 2) == ["answer to: Hi", reply]
    said = [message["content"] for message in live.database.messages(f"{phone}@c.us")]
    assert said == ["Hi", "answer to: Hi", reply]


def test_a_reply_whose_send_was_killed_is_never_sent_again_by_itself(
    live: Stage, browser: httpx.Client
) -> None:
    phone, desk = begun(live, browser)
    reply = "by hand, killed in the send"
    hold = live.graph.hold_answer(reply)
    desk.post("reply", text=reply, key=str(uuid.uuid4()))
    wait_until(lambda: hold.reached, "the reply is being sent")
    kill_worker_in(live, phone)
    hold.release()
    live.sweep(unconfirmed_after_seconds=0)
    assert live.database.states(f"{phone}@c.us") == ["sent", "unconfirmed"]
    desk.post("reply", text="and another one", key=str(uuid.uuid4()))
    assert live.wait_for_answers(phone, 3) == ["answer to: Hi", reply, "and another one"]


def test_a_reply_waits_behind_the_answer_that_is_being_sent(
    live: Stage, browser: httpx.Client
) -> None:
    phone, desk = begun(live, browser)
    hold = live.graph.hold_answer("answer to: one question")
    live.post.say(phone, "one question")
    wait_until(lambda: hold.reached, "the answer is being sent")
    desk.post("reply", text="and by hand", key=str(uuid.uuid4()))
    assert "and by hand" not in live.graph.texts_to(phone)
    hold.release()
    assert live.wait_for_answers(phone, 3)[1:] == ["answer to: one question", "and by hand"]
