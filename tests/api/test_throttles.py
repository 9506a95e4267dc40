"""How many calls a minute, by token and by kind of call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memoryproject.foundation.rest_kit.models import CallCount
from memoryproject.foundation.rest_kit.throttles import counts_drop
from tests.api.calling import Api, error_of
from tests.api.test_sessions import CLIENT

pytestmark = pytest.mark.django_db


def test_too_many_calls_of_a_kind_are_429_with_the_time_to_wait(
    api: Api, token: Callable[..., str], settings: Any
) -> None:
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
    assert Api(token()).get("sessions/").status_code == 200


def test_nought_is_any_number(api: Api, settings: Any) -> None:
    settings.API_RATE_READ = 0
    assert {api.get("sessions/").status_code for _ in range(10)} == {200}
    assert not CallCount.objects.exists()


def test_each_kind_of_call_has_its_own_count(api: Api) -> None:
    api.get("sessions/")
    api.post("sessions/", {"whatsapp_chat": CLIENT})
    api.post("chat/", {"whatsapp_chat": CLIENT, "content": "hello"})
    api.delete(f"chats/{CLIENT}/")
    assert set(CallCount.objects.values_list("kind", flat=True)) == {
        *("read", "write", "chat", "forget")
    }


def test_counts_of_minutes_that_are_over_are_dropped(api: Api) -> None:
    api.get("sessions/")
    assert counts_drop() == 0
    CallCount.objects.update(minute=1)
    assert counts_drop() == 1
