"""Calls that wait for a model are limited, so that they never hold all threads."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from memoryproject.foundation.rest_kit.throttles import (
    MAX_WAITING_CALLS,
    PlacedIterator,
    TooManyWaiting,
    WaitingCalls,
    waiting_calls,
)
from memoryproject.programs import GUNICORN_CONF
from sessions_app.models import Message
from tests.api.calling import Api, error_of

SAID = {"whatsapp_chat": "15550100123@c.us", "content": "hello"}


@contextmanager
def all_but(free: int) -> Iterator[None]:
    """Leave only so many places in this process."""
    with ExitStack() as stack:
        for _ in range(MAX_WAITING_CALLS - free):
            stack.enter_context(waiting_calls.place())
        yield


def read(answer: Any) -> bytes:
    """Return the whole body, as a web server does before it closes a response."""
    return bytes(answer.getvalue())


def test_threads_are_left_for_other_calls() -> None:
    assert runpy.run_path(str(GUNICORN_CONF))["threads"] - 4 >= MAX_WAITING_CALLS


@pytest.mark.django_db
@pytest.mark.parametrize("stream", [False, True])
def test_one_call_too_many_is_refused_and_nothing_is_stored(api: Api, stream: bool) -> None:
    with all_but(0):
        answer = api.post("chat/", {**SAID, "stream": stream}, Idempotency_Key="k1")
    assert error_of(answer, 503)["code"] == "overloaded"
    assert int(answer["Retry-After"]) >= 1
    assert not Message.objects.exists()

    again = api.post("chat/", {**SAID, "stream": stream}, Idempotency_Key="k1")
    assert again.status_code == 200
    read(again)


@pytest.mark.django_db
def test_other_calls_go_on_meanwhile(api: Api) -> None:
    with all_but(0):
        assert api.get("sessions/").status_code == 200
        assert api.post("sessions/", {"whatsapp_chat": SAID["whatsapp_chat"]}).status_code == 201


@pytest.mark.django_db
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("content", "status"), [("hello", 200), ("\x00", 400)])
def test_each_call_leaves_its_place(api: Api, stream: bool, content: str, status: int) -> None:
    """Whether it is answered or refused."""
    with all_but(1):
        for _ in range(3):
            answer = api.post("chat/", {**SAID, "content": content, "stream": stream})
            assert answer.status_code == status
            read(answer)


@pytest.mark.django_db
def test_a_key_that_was_used_for_another_text_leaves_its_place(api: Api) -> None:
    said = {**SAID, "stream": True}
    with all_but(1):
        assert read(api.post("chat/", said, Idempotency_Key="k2"))
        for _ in range(2):
            other = api.post("chat/", {**said, "content": "other"}, Idempotency_Key="k2")
            assert other.status_code == 422
        assert api.post("chat/", SAID).status_code == 200


def test_an_iterator_that_is_never_read_leaves_its_place() -> None:
    calls = WaitingCalls(1)
    calls.take_place()
    items = PlacedIterator((each for each in "ab"), calls)
    with pytest.raises(TooManyWaiting):
        calls.take_place()
    items.close()
    items.close()
    with calls.place(), pytest.raises(TooManyWaiting):
        calls.take_place()
