"""Real workers: what is committed is posted, also by the successor of a worker that was killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from tests.hooks.receiver import Receiver
from tests.processes.posting import new_phone
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes


class HoldingReceiver(Receiver):
    """Answers nobody while ``held``; ``reached`` posts wait."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.open.set()
        self.reached = 0

    def handle(self, request: Request) -> Answer:
        self.reached += 1
        self.open.wait(60)
        return super().handle(request)

    def stop(self) -> None:
        self.open.set()
        super().stop()


@pytest.fixture
def receiver() -> Iterator[HoldingReceiver]:
    with HoldingReceiver() as running:
        yield running


@pytest.fixture
def secret(live: Stage, receiver: HoldingReceiver) -> Iterator[str]:
    """Of an endpoint that leads to the receiver."""
    add = ("add", "crm", receiver.url, "--event", "memory.created")
    yield live.installation.manage("webhook_endpoint", *add).strip()
    receiver.open.set()
    live.installation.manage("webhook_endpoint", "remove", "crm")


def states(live: Stage) -> list[str]:
    rows = live.database.rows("SELECT state FROM hooks_webhookdelivery ORDER BY id")
    return [row["state"] for row in rows]


def test_what_is_said_is_received(live: Stage, receiver: HoldingReceiver, secret: str) -> None:
    phone = new_phone()
    live.post.say(phone, "/remember the parrots eat at nine")
    wait_until(lambda: receiver.requests, "the memory is told")
    (event,) = receiver.events(secret)
    assert event["type"] == "memory.created"
    assert event["data"]["whatsapp_chat"] == f"{phone}@c.us"


def test_a_worker_that_is_killed_while_it_posts_is_replaced_and_the_id_stays(
    live: Stage, receiver: HoldingReceiver, secret: str
) -> None:
    receiver.open.clear()
    live.post.say(new_phone(), "/remember the cage is cleaned on Friday")
    wait_until(lambda: receiver.reached == 1, "it is being posted")
    (row,) = live.database.rows("SELECT lease_owner FROM hooks_webhookendpoint")
    live.installation.kill_owner(row["lease_owner"])
    receiver.open.set()
    live.wait_with_sweeps(lambda: states(live) == ["delivered"], "its successor posts it")
    # A worker of the cluster that ends may have begun with it once more.
    assert receiver.reached in (2, 3)
    assert len(receiver.events(secret)) == receiver.reached
    assert len(set(receiver.ids())) == 1


def test_without_workers_it_is_kept(live: Stage, receiver: HoldingReceiver, secret: str) -> None:
    live.installation.kill_workers()
    call = "from memories_app.facts.validation import NewMemory\n"
    call += "from memories_app.store.remember import memory_remember\n"
    call += "from sessions_app.embedding.choice import embedder\n"
    call += "fact = NewMemory(content='The parrots sleep at eight', visibility='owner')\n"
    call += "memory_remember(fact, embedder=embedder())"
    live.installation.manage("shell", "-v", "0", "-c", call)
    assert states(live) == ["pending"]
    live.installation.start_workers()
    live.wait_with_sweeps(lambda: states(live) == ["delivered"], "the workers are back")
    assert len(receiver.events(secret)) == 1
