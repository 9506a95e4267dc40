"""A commit wakes a worker, a sweep finds what none has sent, and what is over goes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories_app.facts.facade import NewMemory
from memories_app.store.remember import memory_remember
from memories_app.store.retract import memories_delete
from memoryproject.foundation.audit.audit_events import COMMAND_LINE, SYSTEM
from memoryproject.foundation.outgoing_webhooks import deliveries_due
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoint_remove
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.foundation.outgoing_webhooks.sending import endpoint_claim
from memoryproject.foundation.outgoing_webhooks.webhook_events import (
    deliveries_drop,
    delivery_test,
    endpoints_abandoned,
    endpoints_wake,
)
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.doubles.recording_poster import RecordingPoster
from tests.hooks.receiver import (
    Receiver,
    dependencies,
    endpoint_at,
    remember,
    send_all,
)

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_a_commit_asks_for_one_job_however_much_is_told(endpoint: WebhookEndpoint) -> None:
    asked: list[int] = []

    def noted(*, endpoint_id: int, **_: Any) -> None:
        asked.append(endpoint_id)

    deliveries_due.connect(noted)
    try:
        remember(3)
        remember(1)
        assert asked == [endpoint.pk], "the job that waits sends them all"
        send_all(dependencies(RecordingPoster()))
        remember(1)
        assert asked == [endpoint.pk] * 2
        WebhookEndpoint.objects.update(asked_at=timezone.now() - timedelta(minutes=2))
        endpoints_wake(endpoint_ids=endpoints_abandoned(timezone.now()))
        assert asked == [endpoint.pk] * 3, "a job that was lost is asked for again"
    finally:
        deliveries_due.disconnect(noted)


def test_the_sweep_finds_what_is_due_and_no_other(receiver: Receiver, db: None) -> None:
    due, paused, later, held, disabled = (
        endpoint_at(receiver.url, name) for name in ("due", "paused", "later", "held", "disabled")
    )
    remember()
    now = timezone.now()
    soon = now + timedelta(minutes=1)
    WebhookEndpoint.objects.update(asked_at=None)
    WebhookEndpoint.objects.filter(pk=paused.pk).update(paused_until=soon)
    WebhookDelivery.objects.filter(endpoint=later).update(due_at=soon)
    assert endpoint_claim(endpoint_id=held.pk, now=now) is not None
    WebhookEndpoint.objects.filter(pk=disabled.pk).update(enabled=False)
    assert endpoints_wake(endpoint_ids=endpoints_abandoned(timezone.now())) == 1
    assert WebhookEndpoint.objects.get(asked_at__isnull=False) == due
    assert endpoints_wake(endpoint_ids=[due.pk]) == 0


def test_an_endpoint_that_is_removed_takes_its_deliveries_along(
    endpoint: WebhookEndpoint,
) -> None:
    remember(3)
    endpoint_remove(endpoint_id=endpoint.pk, actor=COMMAND_LINE)
    assert not WebhookDelivery.objects.exists()
    assert send_all() == 0


def test_old_deliveries_go_and_what_is_still_tried_stays(
    endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    remember(2)
    send_all()
    remember(1)
    now = timezone.now()
    keep = timedelta(days=30)
    old = now - timedelta(days=31)
    assert deliveries_drop(now=now, older_than=keep) == 0
    WebhookDelivery.objects.update(occurred_at=old)
    WebhookDelivery.objects.filter(finished_at__isnull=False).update(finished_at=old)
    assert deliveries_drop(now=now, older_than=keep) == 2
    assert [row.state for row in WebhookDelivery.objects.all()] == ["pending"]
    WebhookEndpoint.objects.update(enabled=False)
    assert deliveries_drop(now=now, older_than=keep) == 1


def test_a_test_is_sent_whatever_the_endpoint_wants(receiver: Receiver, db: None) -> None:
    endpoint = endpoint_at(receiver.url, event_types=["turn.failed"])
    delivery_test(endpoint_id=endpoint.pk)
    send_all()
    (event,) = receiver.events(endpoint.secret)
    assert event["type"] == "webhook.test"


def queries_for(count: int) -> int:
    with CaptureQueriesContext(connection) as captured:
        remember(count)
    return len(captured)


def test_the_number_of_queries_does_not_grow_with_the_events(
    receiver: Receiver, endpoint: WebhookEndpoint
) -> None:
    remember(1)
    few, many = queries_for(20), queries_for(200)
    # One statement more where a worker is asked for the vectors of many.
    assert abs(few - many) <= 1
    endpoint_at(receiver.url, "second")
    assert abs(queries_for(20) - few) <= 1
    ids = [memory.pk for memory in remember(100)]
    with CaptureQueriesContext(connection) as one_gone:
        memories_delete(memory_ids=ids[:1], actor=SYSTEM)
    with CaptureQueriesContext(connection) as many_gone:
        memories_delete(memory_ids=ids[1:], actor=SYSTEM)
    assert len(many_gone) == len(one_gone)


def test_with_nobody_who_wants_to_know_it_costs_one_query(receiver: Receiver, db: None) -> None:
    remember(1)
    with CaptureQueriesContext(connection) as captured:
        memory_remember(
            NewMemory(content="One more", visibility="owner"), embedder=HashingEmbedder()
        )
    about = [query["sql"] for query in captured if "hooks_" in query["sql"]]
    assert len(about) == 1
    assert about[0].startswith("SELECT")
    endpoint_at(receiver.url, event_types=["card.made"])
    with CaptureQueriesContext(connection) as captured:
        memory_remember(
            NewMemory(content="And another", visibility="owner"), embedder=HashingEmbedder()
        )
    assert len([query for query in captured if "hooks_" in query["sql"]]) == 1
