"""A commit wakes a worker, a sweep finds what none has sent, and what is over goes."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.integrations.network.addresses import Posted
from memoryproject.foundation.integrations.network.checked_transport import HttpPoster
from memoryproject.foundation.outgoing_webhooks import deliveries_due
from memoryproject.foundation.outgoing_webhooks.deliveries import (
    deliveries_drop,
    delivery_test,
    endpoints_abandoned,
    endpoints_wake,
)
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoint_remove
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.foundation.outgoing_webhooks.sending import (
    MAX_AT_ONCE,
    endpoint_claim,
    endpoint_send,
)
from tests.doubles.recording_poster import RecordingPoster
from tests.hooks.receiver import (
    LOOPBACK_ALLOWED,
    Receiver,
    dependencies,
    endpoint_at,
    one,
    remember,
    send_all,
    started,
)
from tests.threads import begin_blocked

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


def test_old_deliveries_go_if_not_tried(endpoint: WebhookEndpoint, receiver: Receiver) -> None:
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


# Each event is sent once by whoever has the lease, and again when it was killed.


def test_killed_between_post_and_mark_it_is_posted_again_under_the_same_id(
    endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    class Killed(BaseException):
        """What no handler takes for an error of the post."""

    class Dying(RecordingPoster):
        def post(self, url: str, **given: Any) -> Posted:
            HttpPoster(LOOPBACK_ALLOWED).post(url, **given)
            raise Killed

    remember()
    with pytest.raises(Killed):
        send_all(dependencies(Dying()))
    # As kill -9 leaves it: the lease is not given back.
    WebhookEndpoint.objects.update(
        lease_token=uuid4(),
        lease_owner="elsewhere:1:1.00",
        lease_until=timezone.now() + timedelta(minutes=1),
    )
    assert one().state == "pending"
    assert send_all() == 0, "its lease still counts"
    WebhookEndpoint.objects.update(lease_until=timezone.now())
    assert send_all() == 1
    assert len(receiver.ids()) == 2
    assert len(set(receiver.ids())) == 1


@pytest.mark.django_db(transaction=True)
def test_no_row_is_locked_and_no_transaction_open_while_it_is_posted(
    endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    done: list[str] = []

    def from_elsewhere() -> None:
        """In the receiver's own thread, with a connection of its own."""
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
            for table in ("hooks_webhookdelivery", "hooks_webhookendpoint"):
                cursor.execute(f"SELECT id FROM {table} FOR UPDATE")
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                " AND datname = current_database()"
            )
            done.append(str(cursor.fetchone()[0]))
        connection.close()

    receiver.on_post = from_elsewhere
    remember()
    assert send_all() == 1
    assert done == ["0"]


def test_a_job_ends_and_asks_for_another(endpoint: WebhookEndpoint, receiver: Receiver) -> None:
    clock = started()
    remember(10)
    receiver.on_post = lambda: clock.on(seconds=8)
    asked: list[int] = []

    def noted(*, endpoint_id: int, **_: Any) -> None:
        asked.append(endpoint_id)

    deliveries_due.connect(noted)
    try:
        assert endpoint_send(endpoint_id=endpoint.pk, dependencies=dependencies(clock=clock)) == 3
    finally:
        deliveries_due.disconnect(noted)
    assert asked == [endpoint.pk]


def test_not_all_workers_send_at_once(receiver: Receiver, db: None) -> None:
    made = [endpoint_at(receiver.url, f"number {n}") for n in range(MAX_AT_ONCE + 1)]
    now = timezone.now()
    leases = [endpoint_claim(endpoint_id=each.pk, now=now) for each in made]
    assert [lease is not None for lease in leases] == [True] * MAX_AT_ONCE + [False]
    assert leases[0] is not None
    leases[0].release()
    assert endpoint_claim(endpoint_id=made[-1].pk, now=now) is not None


@pytest.mark.django_db(transaction=True)
def test_an_endpoint_removed_meanwhile_harms_no_transaction(endpoint: WebhookEndpoint) -> None:
    """Its removal waits for those who are telling it something."""

    with transaction.atomic():
        remember()
        removing = begin_blocked(
            lambda: endpoint_remove(endpoint_id=endpoint.pk, actor=COMMAND_LINE)
        )
        assert WebhookDelivery.objects.exists()
    removing.result()
    assert not WebhookDelivery.objects.exists()
    assert not WebhookEndpoint.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_many_who_claim_an_endpoint_at_once_get_it_once(endpoint: WebhookEndpoint) -> None:
    rounds, claimers = 30, 6
    gate = threading.Barrier(claimers)
    claims: list[tuple[int, object]] = []

    def claim() -> None:
        for number in range(rounds):
            gate.wait()
            lease = endpoint_claim(endpoint_id=endpoint.pk, now=timezone.now())
            gate.wait()
            if lease is not None:
                claims.append((number, lease))
                lease.release()
        connection.close()

    threads = [threading.Thread(target=claim) for _ in range(claimers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [number for number, _ in claims]
    assert len(numbers) == len(set(numbers)), "two had it at once"
    assert numbers
