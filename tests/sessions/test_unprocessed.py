"""Events that could not be processed: none is lost, and a damaged session stops nobody."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from sessions_app.inbound.retry_deliveries import MAX_ATTEMPTS
from sessions_app.models import ChatSession, InboundDelivery, Message, Turn
from sessions_app.tasks import sweep_work
from tests.database import accept_rows, refuse_rows
from tests.threads import elsewhere
from tests.webhooks.conftest import cloud_text, configured, green_text  # noqa: F401
from tests.webhooks.posting import post_cloud, post_green
from tests.world import CLIENT, World


@pytest.fixture
def fault(transactional_db: None) -> Iterator[None]:
    """An error that nobody foresaw: PostgreSQL divides by zero where a message is stored."""
    refuse_rows("sessions_app_message", code="22012")
    yield
    end_fault()


def end_fault() -> None:
    accept_rows("sessions_app_message")


def pass_time() -> None:
    InboundDelivery.objects.exclude(retry_at=None).update(retry_at=timezone.now())


def post(client: Client, provider: str, payload: dict[str, Any]) -> None:
    answer = post_cloud(client, payload) if provider == "cloud" else post_green(client, payload)
    assert answer.status_code == 200


@pytest.mark.parametrize("provider", ["cloud", "green"])
def test_the_sweep_takes_it_up_once_and_it_is_answered(
    client: Client, world: World, fault: None, provider: str, request: pytest.FixtureRequest
) -> None:
    payload = request.getfixturevalue(f"{provider}_text")
    post(client, provider, payload)
    # The provider's own repetition is dropped as a duplicate.
    post(client, provider, deepcopy(payload))
    delivery = InboundDelivery.objects.get()
    assert delivery.outcome == "not processed: DataError"
    assert not Message.objects.exists()
    sweep_work()
    assert InboundDelivery.objects.get().attempts == 0

    pass_time()
    sweep_work()
    delivery.refresh_from_db()
    assert delivery.attempts == 1
    assert delivery.retry_at is not None

    end_fault()
    pass_time()
    assert sweep_work()["deliveries"] == 1
    assert sweep_work()["deliveries"] == 0
    delivery.refresh_from_db()
    assert delivery.retry_at is None
    assert delivery.outcome.startswith("stored")
    assert Message.objects.count() == Turn.objects.count() == 1


def test_two_that_fail_at_the_same_moment_are_kept_once(
    client: Client,
    world: World,
    fault: None,
    cloud_text: dict[str, Any],  # noqa: F811
) -> None:
    def later_than_another(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith('INSERT INTO "sessions_app_inbounddelivery"'):
            elsewhere(lambda: post(Client(), "cloud", deepcopy(cloud_text)))
        return execute(sql, *rest)

    with connection.execute_wrapper(later_than_another):
        post(client, "cloud", deepcopy(cloud_text))
    assert InboundDelivery.objects.get().outcome == "not processed: DataError"


def test_after_the_last_retry_it_is_left_to_staff(
    client: Client,
    admin_client: Client,
    world: World,
    fault: None,
    cloud_text: dict[str, Any],  # noqa: F811
) -> None:
    post(client, "cloud", cloud_text)
    hours = 0.0
    for _ in range(MAX_ATTEMPTS):
        due = InboundDelivery.objects.get().retry_at
        assert due is not None
        hours += (due - timezone.now()).total_seconds() / 3600
        pass_time()
        sweep_work()
    assert round(hours) == 17
    delivery = InboundDelivery.objects.get()
    assert (delivery.attempts, delivery.retry_at) == (MAX_ATTEMPTS, None)
    overview = admin_client.get("/admin/operations/").content.decode()
    link = "/admin/sessions_app/inbounddelivery/?processed=no"
    assert link in overview
    listed = admin_client.get(link).content.decode()
    assert "not processed: DataError" in listed

    end_fault()
    admin_client.post(
        link, {"action": "process_again", "_selected_action": [delivery.pk]}, follow=True
    )
    sweep_work()
    assert Message.objects.count() == 1


@pytest.mark.django_db
def test_err_session_001_a_damaged_session_gives_way_to_a_new_one(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """ERR-SESSION-001, AC-ERROR-001: an ERROR, and the next message begins a new session."""
    for text in ("one", "two"):
        world.say(CLIENT, text)
    damaged = world.session(CLIENT)
    ChatSession.objects.filter(pk=damaged.pk).update(message_counter=1)
    assert world.say(CLIENT, "three") == ["answer to: three"]
    damaged.refresh_from_db()
    assert damaged.status == "expired"
    assert damaged.messages.count() == 4
    assert world.session(CLIENT).pk != damaged.pk
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [str(damaged.pk) in record.getMessage() for record in errors] == [True]
    call_command("session_rebuild", str(damaged.pk))
    damaged.refresh_from_db()
    assert damaged.message_counter == 4
