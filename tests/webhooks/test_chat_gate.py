"""One thread at a time stores events of a chat; none waits for one that is slow."""

from __future__ import annotations

import threading

import pytest

from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.inbound.receive import ChatBusyError, ChatGate, addresses_of
from tests.events import status
from tests.threads import begin
from tests.world import CLIENT, message_from

LONG = 60.0
ONE, TWO = "15550100123@c.us", "15550100124@c.us"


def test_one_that_is_slow_is_not_waited_for() -> None:
    gate = ChatGate(0.0)
    with gate.passed([ONE]):
        with pytest.raises(ChatBusyError), gate.passed([TWO, ONE]):
            raise AssertionError("passed")
        with gate.passed([TWO]), gate.passed([]):
            pass
    with gate.passed([TWO, ONE]):
        pass


def test_one_that_fails_leaves_the_gate_open() -> None:
    gate = ChatGate(0.0)
    with pytest.raises(ValueError, match="bad"), gate.passed([ONE]):
        raise ValueError("bad")
    with gate.passed([ONE]):
        pass


def test_a_quick_one_is_waited_for() -> None:
    gate, order, inside = ChatGate(LONG), [], threading.Event()

    def second() -> None:
        inside.set()
        with gate.passed([ONE]):
            order.append("second")

    with gate.passed([ONE]):
        begun = begin(second)
        assert inside.wait(LONG)
        order.append("first")
    begun.result(LONG)
    assert order == ["first", "second"]


def test_an_event_is_of_the_chat_that_it_names() -> None:
    message = message_from(CLIENT, "hello")
    assert addresses_of(message) == {CLIENT}
    both = message_from(CLIENT, "hello", party=Party(phone="15550100123", bsuid="US.1"))
    assert addresses_of(both) == {CLIENT, "US.1@bsuid"}
    assert addresses_of(message_from(CLIENT, "hello", group_id="1@g.us")) == {"1@g.us"}
    assert addresses_of(status("wamid.1", "read")) == set()
