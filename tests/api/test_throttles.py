"""How many calls a minute, by token and by kind of call."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import pytest

from memoryproject.foundation.rest_kit.models import CallCount
from memoryproject.foundation.rest_kit.throttles import (
    KINDS,
    MAX_WAITING_CALLS,
    PlacedResponse,
    TooManyWaiting,
    WaitingCalls,
    count_call,
    counts_drop,
    waiting_calls,
)
from memoryproject.programs import GUNICORN_CONF
from sessions_app.models import Message
from tests.api.calling import Api, api_with, error_of
from tests.threads import in_threads
from tests.world import CLIENT

pytestmark = pytest.mark.django_db


def test_too_many_calls_of_a_kind_are_429_with_the_time_to_wait(api: Api, settings: Any) -> None:
    settings.API_RATE_READ = 3
    for _ in range(3):
        assert api.get("sessions/").status_code == 200
    # A minute of the clock may have ended in between: then three more are free.
    refused = next(
        answer for answer in (api.get("sessions/") for _ in range(4)) if answer.status_code != 200
    )
    assert error_of(refused, 429)["code"] == "throttled"
    assert 1 <= int(refused["Retry-After"]) <= 60
    # Another kind, and another token, are counted by themselves.
    assert api.post("sessions/", {"whatsapp_chat": CLIENT}).status_code == 201
    assert api_with().get("sessions/").status_code == 200


def test_each_response_says_how_many_calls_are_left(api: Api, settings: Any) -> None:
    settings.API_RATE_READ = 5
    answers = [api.get("sessions/") for _ in range(12)]
    assert {answer["RateLimit-Limit"] for answer in answers} == {"5"}
    assert all(1 <= int(answer["RateLimit-Reset"]) <= 60 for answer in answers)
    left = [int(answer["RateLimit-Remaining"]) for answer in answers]
    # A minute of the clock may end in between; then it begins with all calls again.
    assert left[0] == 4
    assert all(after in (max(before - 1, 0), 4) for before, after in pairwise(left))
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert {answer["RateLimit-Remaining"] for answer in refused} == {"0"}
    # An error tells it, too, and each kind has a limit of its own.
    assert "RateLimit-Remaining" in api.post("sessions/", {})
    settings.API_RATE_READ = 0
    assert "RateLimit-Limit" not in api.get("sessions/")


def test_each_kind_of_call_has_its_own_count(api: Api, settings: Any) -> None:
    for kind in KINDS:
        setattr(settings, f"API_RATE_{kind.upper()}", 10)
    api.get("sessions/")
    api.post("sessions/", {"whatsapp_chat": CLIENT})
    api.post("chat/", {"whatsapp_chat": CLIENT, "content": "hello"})
    api.delete(f"chats/{CLIENT}/")
    assert set(CallCount.objects.values_list("kind", flat=True)) == {
        *("read", "write", "chat", "forget")
    }


def test_counts_of_minutes_that_are_over_are_dropped(api: Api, settings: Any) -> None:
    settings.API_RATE_READ = 10
    api.get("sessions/")
    assert counts_drop() == 0
    CallCount.objects.update(minute=1)
    assert counts_drop() == 1


@pytest.mark.django_db(transaction=True)
def test_all_processes_share_one_count() -> None:
    """Each thread has a connection of its own, as another process has."""

    def calls() -> list[int]:
        return [count_call("token:of-tests", "read", 30_000_000) for _ in range(20)]

    counts = [count for each in in_threads(calls, 4) for count in each]
    assert sorted(counts) == list(range(1, 81))
    # Each call in the next minute is free again.
    assert count_call("token:of-tests", "read", 30_000_001) == 1


# Calls that wait for a model are limited, so that they never hold all threads.


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


def test_other_calls_go_on_meanwhile(api: Api) -> None:
    with all_but(0):
        assert api.get("sessions/").status_code == 200
        assert api.post("sessions/", {"whatsapp_chat": SAID["whatsapp_chat"]}).status_code == 201


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("content", "status"), [("hello", 200), ("\x00", 400)])
def test_each_call_leaves_its_place(api: Api, stream: bool, content: str, status: int) -> None:
    """Whether it is answered or refused."""
    with all_but(1):
        for _ in range(3):
            answer = api.post("chat/", {**SAID, "content": content, "stream": stream})
            assert answer.status_code == status
            read(answer)


def test_a_key_that_was_used_for_another_text_leaves_its_place(api: Api) -> None:
    said = {**SAID, "stream": True}
    with all_but(1):
        assert read(api.post("chat/", said, Idempotency_Key="k2"))
        for _ in range(2):
            other = api.post("chat/", {**said, "content": "other"}, Idempotency_Key="k2")
            assert other.status_code == 422
        assert api.post("chat/", SAID).status_code == 200


def test_a_response_that_is_never_read_leaves_its_place() -> None:
    calls = WaitingCalls(1)
    with ExitStack() as place:
        place.enter_context(calls.place())
        response = PlacedResponse(place.pop_all(), (each for each in "ab"))
    with pytest.raises(TooManyWaiting), calls.place():
        pass
    response.close()
    response.close()
    with calls.place(), pytest.raises(TooManyWaiting), calls.place():
        pass
