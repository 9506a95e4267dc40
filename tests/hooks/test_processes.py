"""Real workers: what is committed is posted, also by the successor of a worker that was killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from tests.hooks.receiver import Receiver
from tests.processes.conftest import everything
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage
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


@pytest.fixture(scope="module")
def hooked() -> Iterator[Stage]:
    with stage(
        run=everything, WEBHOOKS_ALLOW_HTTP="true", WEBHOOKS_PRIVATE_NETWORKS="127.0.0.0/8"
    ) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[HoldingReceiver]:
    with HoldingReceiver() as running:
        yield running


@pytest.fixture
def secret(hooked: Stage, receiver: HoldingReceiver) -> Iterator[str]:
    """Of an endpoint that leads to the receiver."""
    add = ("add", "crm", receiver.url, "--event", "memory.created")
    yield hooked.installation.manage("webhook_endpoint", *add).strip()
    receiver.open.set()
    hooked.installation.manage("webhook_endpoint", "remove", "crm")


def states(hooked: Stage) -> list[str]:
    rows = hooked.database.rows("SELECT state FROM hooks_webhookdelivery ORDER BY id")
    return [row["state"] for row in rows]


def test_what_is_said_is_received(hooked: Stage, receiver: HoldingReceiver, secret: str) -> None:
    phone = new_phone()
    hooked.post.say(phone, "/remember the parrots eat at nine")
    wait_until(lambda: receiver.requests, "the memory is told")
    (event,) = receiver.events(secret)
    assert event["type"] == "memory.created"
    assert event["data"]["whatsapp_chat"] == f"{phone}@c.us"


def test_a_worker_that_is_killed_while_it_posts_is_replaced_and_the_id_stays(
    hooked: Stage, receiver: HoldingReceiver, secret: str
) -> None:
    receiver.open.clear()
    hooked.post.say(new_phone(), "/remember the cage is cleaned on Friday")
    wait_until(lambda: receiver.reached == 1, "it is being posted")
    (row,) = hooked.database.rows("SELECT lease_owner FROM hooks_webhookendpoint")
    hooked.installation.kill_owner(row["lease_owner"])
    receiver.open.set()
    hooked.wait_with_sweeps(lambda: states(hooked) == ["delivered"], "its successor posts it")
    assert receiver.reached == 2
    assert len(set(receiver.ids())) == 1
    assert len(receiver.events(secret)) == 2


def test_without_workers_it_is_kept(hooked: Stage, receiver: HoldingReceiver, secret: str) -> None:
    hooked.installation.kill_workers()
    call = "from memories_app.facts.validation import NewMemory\n"
    call += "from memories_app.store.remember import memory_remember\n"
    call += "from sessions_app.embedding.choice import embedder\n"
    call += "fact = NewMemory(content='The parrots sleep at eight', visibility='owner')\n"
    call += "memory_remember(fact, embedder=embedder())"
    hooked.installation.manage("shell", "-v", "0", "-c", call)
    assert states(hooked) == ["pending"]
    hooked.installation.start_workers()
    hooked.wait_with_sweeps(lambda: states(hooked) == ["delivered"], "the workers are back")
    assert len(receiver.events(secret)) == 1
