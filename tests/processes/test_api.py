"""The API over HTTP, on the server as it runs."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.processes import plain_http
from tests.processes.posting import new_phone
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

TWINS = 50
PATIENCE = 120


@pytest.fixture(scope="module")
def secret(shared_stage: Stage) -> str:
    return shared_stage.installation.manage("create_api_token", "twins").strip()


class Caller:
    """Calls the running server with a token."""

    def __init__(self, url: str, secret: str) -> None:
        self.root = f"{url}/api/v1/"
        self.headers = {"Authorization": f"Token {secret}"}

    def post(self, path: str, body: Any, key: str | None = None) -> httpx.Response:
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        return plain_http.post(self.root + path, json=body, headers=headers, timeout=PATIENCE)

    def post_patiently(self, path: str, body: Any, key: str) -> httpx.Response:
        """Tries again, as it is told, while too many of the key's calls wait."""
        until = time.monotonic() + PATIENCE
        while (answer := self.post(path, body, key)).status_code == 503:
            assert answer.json()["errors"][0]["code"] == "overloaded", answer.text
            assert time.monotonic() < until, "it is overloaded for good"
            time.sleep(int(answer.headers["Retry-After"]))
        return answer

    def twins(self, path: str, body: Any, key: str) -> list[httpx.Response]:
        """The same call so many times at once."""
        with ThreadPoolExecutor(TWINS) as pool:
            calls = [pool.submit(self.post_patiently, path, body, key) for _ in range(TWINS)]
            return [call.result() for call in calls]


@pytest.fixture
def call(live: Stage, secret: str) -> Caller:
    return Caller(live.installation.url, secret)


def equal_answers(answers: list[httpx.Response], status: int) -> Any:
    """What all of them answered."""
    assert {answer.status_code for answer in answers} == {status}, answers[0].text
    assert len({answer.content for answer in answers}) == 1
    return answers[0].json()


def test_fifty_twins_store_messages_once(call: Caller, live: Stage) -> None:
    phone = f"{new_phone()}@c.us"
    session = equal_answers(call.twins("sessions/", {"whatsapp_chat": phone}, "t1"), 201)
    path = f"sessions/{session['session_id']}/messages/"
    body = {"messages": [{"role": "user", "content": "said once by fifty"}]}
    stored = equal_answers(call.twins(path, body, "t2"), 201)
    rows = live.database.messages(phone)
    assert [row["content"] for row in rows] == ["said once by fifty"]
    assert str(rows[0]["message_id"]) == stored["messages"][0]["message_id"]


def test_fifty_twins_have_one_turn(call: Caller, live: Stage) -> None:
    phone = f"{new_phone()}@c.us"
    body = {"whatsapp_chat": phone, "content": "answered once for fifty"}
    answer = equal_answers(call.twins("chat/", body, "t3"), 200)
    assert answer["reply"] == "answer to: answered once for fifty"
    (turn,) = live.database.turns(phone)
    assert str(turn["turn_id"]) == answer["turn_id"]
    assert len(live.openai.prompt_for("answered once for fifty")) >= 2
    assert live.graph.texts_to(phone.split("@")[0]) == []


def test_fifty_calls_without_a_key_are_fifty_turns_in_order(call: Caller, live: Stage) -> None:
    phone = f"{new_phone()}@c.us"

    def say(number: int) -> httpx.Response:
        return call.post("chat/", {"whatsapp_chat": phone, "content": f"number {number}"})

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(say, range(24)))
    assert [answer.json()["reply"] for answer in answers] == [
        f"answer to: number {number}" for number in range(24)
    ]
    rows = live.database.messages(phone)
    assert [row["order_num"] for row in rows] == list(range(1, len(rows) + 1))
    # Meanwhile a worker sums up.
    assert len([row for row in rows if row["role"] != "summary"]) == 48


def test_a_web_server_killed_while_it_answers_leaves_one_turn(call: Caller, live: Stage) -> None:
    phone = f"{new_phone()}@c.us"
    body = {"whatsapp_chat": phone, "content": "held while it is killed"}
    hold = live.openai.hold_chat("held while it is killed")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(call.post, "chat/", body, "t4")
        wait_until(lambda: hold.reached > 0, "the model is asked")
        live.installation.kill_web()
        hold.release()
        with pytest.raises(httpx.HTTPError):
            first.result()
    live.installation.start_program("web")
    live.installation.wait_until_ready()
    again = call.post("chat/", body, "t4")
    assert again.status_code == 200, again.text
    assert again.json()["reply"] == "answer to: held while it is killed"
    assert len(live.database.turns(phone)) == 1
    assert len(live.database.messages(phone)) == 2


@pytest.mark.parametrize("authorized", [True, False])
def test_a_body_of_ten_megabytes_gets_an_answer(authorized: bool, call: Caller) -> None:
    answer = plain_http.post(
        f"{call.root}sessions/",
        content=b'{"whatsapp_chat": "' + b"x" * (10 * 1024 * 1024) + b'"}',
        headers={"Content-Type": "application/json", **(call.headers if authorized else {})},
        timeout=PATIENCE,
    )
    assert answer.status_code == (413 if authorized else 401)
    assert set(answer.json()) == {"type", "errors"}


def test_events_come_while_the_model_is_still_at_work(call: Caller, live: Stage) -> None:
    phone = f"{new_phone()}@c.us"
    body = {"whatsapp_chat": phone, "content": "held for events", "stream": True}
    hold = live.openai.hold_chat("held for events")
    with plain_http.stream(
        "POST", f"{call.root}chat/", json=body, headers=call.headers, timeout=PATIENCE
    ) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: accepted"
        assert not hold.released.is_set()
        hold.release()
        rest = list(lines)
    assert "event: done" in rest
    done = json.loads(rest[rest.index("event: done") + 1].removeprefix("data: "))
    assert done["reply"] == "answer to: held for events"


def test_files_that_come_at_once_are_read_by_workers(call: Caller, live: Stage) -> None:
    # Few enough for the calls that a minute allows, with those of the tests before.
    phones = [f"{new_phone()}@c.us" for _ in range(3)]

    def upload(number: int, phone: str) -> httpx.Response:
        file = (f"{number}.txt", f"Room {number} of {phone} has two beds.".encode())
        return plain_http.post(
            f"{call.root}files/",
            files={"file": file},
            data={"whatsapp_chat": phone},
            headers=call.headers,
            timeout=PATIENCE,
        )

    with ThreadPoolExecutor(12) as pool:
        # Twelve at a time for one chat, and each file twice.
        sent = [pool.submit(upload, number % 6, phone) for phone in phones for number in range(12)]
        answers = [each.result() for each in sent]
    assert sorted(answer.status_code for answer in answers) == [200] * 18 + [201] * 18
    ids = {answer.json()["document_id"] for answer in answers}
    assert len(ids) == 18

    def are_read() -> bool:
        listed = plain_http.get(
            f"{call.root}files/?state=ready&limit=1000", headers=call.headers, timeout=PATIENCE
        )
        return ids <= {row["document_id"] for row in listed.json()["results"]}

    wait_until(are_read, "all files are read", seconds=PATIENCE)


def test_readers_walk_on_while_writers_write(call: Caller, live: Stage) -> None:
    phone = f"{new_phone()}@c.us"
    session = call.post("sessions/", {"whatsapp_chat": phone}).json()["session_id"]
    path = f"sessions/{session}/messages/"
    said = [{"role": "user", "content": f"before {number}"} for number in range(600)]
    assert call.post(path, {"messages": said}).status_code == 201

    def write(number: int) -> int:
        more = [{"role": "user", "content": f"meanwhile {number}"}]
        return call.post(path, {"messages": more}).status_code

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, number) for number in range(60)]
        seen: list[int] = []
        following: str | None = f"{call.root}{path}?limit=20"
        while following:
            page = plain_http.get(following, headers=call.headers, timeout=PATIENCE).json()
            seen += [message["order_num"] for message in page["results"]][::-1]
            following = page["next"]
        assert {each.result() for each in writing} == {201}
    assert seen == list(range(seen[0], 0, -1))
    assert seen[0] >= 600


def test_the_page_of_the_api_is_served_with_its_script_and_style(live: Stage) -> None:
    page = plain_http.get(f"{live.installation.url}/api/docs/")
    assert page.status_code == 200
    addresses = re.findall(r"""(?:src|href)=["'](/static/[^"']+)["']""", page.text)
    assert any(address.split("?")[0].endswith(".js") for address in addresses)
    for address in addresses:
        found = plain_http.get(live.installation.url + address)
        assert found.status_code == 200, address
