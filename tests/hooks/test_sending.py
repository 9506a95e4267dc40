"""Signed, retried, sent once by whoever has the lease, and again when it was killed."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories_app.services.delete import memories_delete
from memories_app.services.remember import NewMemory, memories_remember, memory_remember
from memoryproject.audit.events import COMMAND_LINE, SYSTEM
from memoryproject.audit.models import AuditEvent
from memoryproject.hooks.deliveries import deliveries_again, deliveries_drop, delivery_test
from memoryproject.hooks.endpoints import endpoint_change, endpoint_remove, endpoint_rotate
from memoryproject.hooks.leases import MOST_AT_ONCE, HookLeaseLostError, endpoint_claim
from memoryproject.hooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.hooks.sending import endpoint_send
from memoryproject.hooks.signals import deliveries_due
from memoryproject.hooks.waking import deliveries_sweep, endpoints_wake
from memoryproject.integrations.embedders.hashing import HashingEmbedder
from memoryproject.integrations.hooks.base import Posted, PostError
from memoryproject.integrations.hooks.http import HttpPoster
from memoryproject.integrations.hooks.recording import RecordingPoster
from memoryproject.integrations.loopback.httpd import Answer, Fault
from tests.hooks.receiver import (
    LOOPBACK_ALLOWED,
    Clock,
    Receiver,
    endpoint_at,
    pending,
    send_all,
    started,
    tools,
    verified,
)
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.django_db


def remember(count: int = 1) -> list[Any]:
    wanted = [NewMemory(content=f"Fact {uuid4()}", visibility="owner") for _ in range(count)]
    found = memories_remember(memories=wanted, embedder=HashingEmbedder(), actor=SYSTEM)
    return [one.memory for one in found]


def one() -> WebhookDelivery:
    return WebhookDelivery.objects.get()


def test_what_is_sent_is_signed_and_posted_to_the_whole_address(
    endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    remember()
    assert send_all() == 1
    (request,) = receiver.requests
    assert request.path == "/hooks?for=crm"
    assert request.headers["host"] == receiver.url.removeprefix("http://")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == one().message_id
    assert verified(request, endpoint.secret)["type"] == "memory.created"
    delivery = one()
    assert (delivery.state, delivery.attempts, delivery.last_status) == ("delivered", 1, 204)
    endpoint.refresh_from_db()
    assert endpoint.last_success_at is not None
    assert endpoint.lease_token is None
    assert send_all() == 0


def test_a_changed_secret_signs_beside_the_old_one_for_a_while(
    endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    old = endpoint.secret
    fresh = endpoint_rotate(endpoint_id=endpoint.pk, actor=COMMAND_LINE).secret
    assert fresh != old
    assert fresh.startswith("whsec_")
    remember()
    send_all()
    (request,) = receiver.requests
    assert len(request.headers["webhook-signature"].split(" ")) == 2
    assert verified(request, old) == verified(request, fresh)
    WebhookEndpoint.objects.update(old_secret_until=timezone.now())
    remember()
    send_all()
    assert len(receiver.requests[1].headers["webhook-signature"].split(" ")) == 1
    assert verified(receiver.requests[1], fresh)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 404, 429, 500, 503])
def test_anything_but_a_2xx_is_tried_again_later_under_the_same_id(
    endpoint: WebhookEndpoint, receiver: Receiver, status: int
) -> None:
    clock = started()
    remember()
    receiver.status = status
    receiver.headers = {"Location": f"{receiver.url}/elsewhere"}
    assert send_all(tools(clock=clock)) == 0
    delivery = one()
    assert (delivery.state, delivery.last_status) == ("pending", status)
    assert delivery.error == f"It answered {status}."
    assert delivery.due_at - clock.now == timedelta(seconds=5)
    assert [request.path for request in receiver.requests] == ["/hooks?for=crm"], "none followed"
    receiver.status = 200
    clock.on(seconds=4)
    assert send_all(tools(clock=clock)) == 0, "not yet"
    clock.on(seconds=2)
    assert send_all(tools(clock=clock)) == 1
    assert len(set(receiver.ids())) == 1
    assert len(receiver.ids()) == 2
    endpoint.refresh_from_db()
    assert (endpoint.failures, endpoint.failing_since, endpoint.last_error) == (0, None, "")


def test_it_is_given_up_after_ten_tries_and_staff_may_send_it_again(
    endpoint: WebhookEndpoint,
) -> None:
    clock = started()
    remember()
    poster = RecordingPoster(*[Posted(500)] * 10)
    waits = []
    while one().state == "pending":
        clock.now = max(clock.now, one().due_at) + timedelta(minutes=5)
        before = clock.now
        send_all(tools(poster, clock=clock, disable_after=timedelta(days=30)))
        waits.append(one().due_at - before)
    assert len(poster.posts) == 10
    shown = [wait.total_seconds() for wait in waits[:-1]]
    assert shown == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert (one().state, one().attempts) == ("failed", 10)
    assert deliveries_again(delivery_ids=[one().pk], actor=COMMAND_LINE) == 1
    assert send_all(tools(poster)) == 1
    assert len({post.headers["webhook-id"] for post in poster.posts}) == 1
    assert AuditEvent.objects.filter(action="webhook.again").count() == 1


@pytest.mark.parametrize(
    ("status", "told", "seconds"),
    [(429, "120", 120), (503, "120", 120), (503, "1", 5), (500, "120", 5), (429, "x", 5)],
)
def test_retry_after_is_waited_for(
    endpoint: WebhookEndpoint, receiver: Receiver, status: int, told: str, seconds: int
) -> None:
    clock = started()
    remember()
    receiver.status, receiver.headers = status, {"Retry-After": told}
    send_all(tools(clock=clock))
    assert (one().due_at - clock.now).total_seconds() == seconds
    endpoint.refresh_from_db()
    assert endpoint.paused_until is not None
    assert (endpoint.paused_until - clock.now).total_seconds() == seconds


def test_410_disables_the_endpoint_and_staff_see_why(
    endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    first, second = remember(2)
    receiver.status = 410
    send_all()
    assert len(receiver.requests) == 1
    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert "410" in endpoint.disabled_reason
    assert sorted(WebhookDelivery.objects.values_list("state", flat=True)) == ["failed", "pending"]
    assert AuditEvent.objects.filter(action="webhook.disable").count() == 1
    receiver.status = 200
    endpoint_change(
        endpoint_id=endpoint.pk,
        changes={"enabled": True},
        rules=LOOPBACK_ALLOWED,
        actor=COMMAND_LINE,
    )
    assert send_all() == 1, "what was pending is sent once it is enabled"
    endpoint.refresh_from_db()
    assert endpoint.disabled_reason == ""


def test_an_endpoint_that_fails_for_days_is_disabled(endpoint: WebhookEndpoint) -> None:
    clock = started()
    poster = RecordingPoster(*[PostError("It can't be reached.")] * 100)
    sending = tools(poster, clock=clock)
    end = clock.now + timedelta(days=4.9)
    while clock.now < end:
        remember()
        send_all(sending)
        clock.on(hours=12)
    endpoint.refresh_from_db()
    assert endpoint.enabled
    clock.on(hours=12)
    send_all(sending)
    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert "5 days" in endpoint.disabled_reason
    assert "It can't be reached." in endpoint.disabled_reason


def test_one_that_is_down_costs_one_try_and_not_one_for_each_event(
    endpoint: WebhookEndpoint,
) -> None:
    clock = started()
    remember(50)
    poster = RecordingPoster(*[Posted(500)] * 3)
    for _ in range(3):
        send_all(tools(poster, clock=clock))
        send_all(tools(poster, clock=clock))
        clock.on(seconds=30)
    assert len(poster.posts) == 3
    assert send_all(tools(poster, clock=clock)) == 50


@pytest.mark.parametrize("how", ["hang", "reset", "drip"])
def test_a_receiver_that_doesn_t_answer_in_time_is_a_failure(
    endpoint: WebhookEndpoint, receiver: Receiver, how: str
) -> None:
    remember()
    header = {"X-Long": "x" * 50}
    fault = {
        "hang": Fault(no_answer="hang"),
        "reset": Fault(no_answer="reset"),
        "drip": Fault(delay=0.05, answer=Answer(200, {}, header, content=b"x" * 64, drip=0.2)),
    }[how]
    receiver.fail_next(fault)
    send_all(tools(HttpPoster(LOOPBACK_ALLOWED, longest=0.5)))
    delivery = one()
    if how == "drip":
        # The status came in time; nobody waits for the end of its body.
        assert delivery.state == "delivered"
        return
    assert delivery.state == "pending"
    assert "within 0.5 seconds" in delivery.error or "connection broke" in delivery.error
    assert send_all(tools(clock=Clock(timezone.now() + timedelta(seconds=10)))) == 1
    assert len(set(receiver.ids())) == 1


def test_a_receiver_that_drips_its_headers_doesn_t_hold_a_worker(endpoint: WebhookEndpoint) -> None:
    """Each byte comes in time; all of them together don't."""
    dripping = socket.create_server(("127.0.0.1", 0))
    WebhookEndpoint.objects.update(url=f"http://127.0.0.1:{dripping.getsockname()[1]}/")

    def drip() -> None:
        talk, _ = dripping.accept()
        with talk, suppress(OSError):
            talk.recv(65_536)
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":
                talk.sendall(bytes([byte]))
                time.sleep(0.05)

    server = threading.Thread(target=drip)
    server.start()
    remember()
    send_all(tools(HttpPoster(LOOPBACK_ALLOWED, longest=0.5)))
    server.join()
    dripping.close()
    assert (one().state, one().error) == ("pending", "No answer came within 0.5 seconds.")


def test_a_huge_answer_is_not_read_to_its_end(
    endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    remember()
    receiver.fail_next(Fault(answer=Answer(200, {}, content=b"x" * 50_000_000)))
    assert send_all() == 1


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
        send_all(tools(Dying()))
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


def test_the_lease_of_a_dead_process_of_this_machine_ends_at_once(
    endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    lease = endpoint_claim(endpoint_id=endpoint.pk, now=timezone.now())
    assert lease is not None
    remember()
    assert send_all() == 0
    host, _, start = WebhookEndpoint.objects.get().lease_owner.split(":")
    WebhookEndpoint.objects.update(lease_owner=f"{host}:4194304:{start}")
    assert send_all() == 1
    with pytest.raises(HookLeaseLostError):
        lease.renew()


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_send_each_once(endpoint: WebhookEndpoint, receiver: Receiver) -> None:
    remember(20)
    gate = threading.Barrier(4)
    delivered: list[int] = []

    def work() -> None:
        gate.wait()
        for _ in range(20):
            delivered.append(endpoint_send(endpoint_id=endpoint.pk, tools=tools()))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(delivered) == 20
    assert len(receiver.ids()) == len(set(receiver.ids())) == 20
    assert not pending()


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


def test_a_job_ends_after_its_time_and_asks_for_another(
    endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    clock = started()
    remember(10)
    receiver.on_post = lambda: clock.on(seconds=8)
    asked: list[int] = []

    def noted(*, endpoint_id: int, **_: Any) -> None:
        asked.append(endpoint_id)

    deliveries_due.connect(noted)
    try:
        assert endpoint_send(endpoint_id=endpoint.pk, tools=tools(clock=clock)) == 3
    finally:
        deliveries_due.disconnect(noted)
    assert asked == [endpoint.pk]


def test_not_all_workers_send_at_once(receiver: Receiver, db: None) -> None:
    made = [endpoint_at(receiver.url, f"number {n}") for n in range(MOST_AT_ONCE + 1)]
    now = timezone.now()
    leases = [endpoint_claim(endpoint_id=each.pk, now=now) for each in made]
    assert [lease is not None for lease in leases] == [True] * MOST_AT_ONCE + [False]
    assert leases[0] is not None
    leases[0].release()
    assert endpoint_claim(endpoint_id=made[-1].pk, now=now) is not None


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
        send_all(tools(RecordingPoster()))
        remember(1)
        assert asked == [endpoint.pk] * 2
        WebhookEndpoint.objects.update(asked_at=timezone.now() - timedelta(minutes=2))
        deliveries_sweep()
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
    assert deliveries_sweep() == 1
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
    few, many = queries_for(3), queries_for(200)
    assert few == many
    endpoint_at(receiver.url, "second")
    assert queries_for(3) == few
    ids = [memory.pk for memory in remember(100)]
    with CaptureQueriesContext(connection) as one_gone:
        memories_delete(memory_ids=ids[:1], actor=SYSTEM)
    with CaptureQueriesContext(connection) as many_gone:
        memories_delete(memory_ids=ids[1:], actor=SYSTEM)
    assert len(many_gone) == len(one_gone)


def test_with_nobody_who_wants_to_know_it_costs_one_query(receiver: Receiver, db: None) -> None:
    remember(1)
    with CaptureQueriesContext(connection) as captured:
        memory_remember(content="One more", visibility="owner", embedder=HashingEmbedder())
    about = [query["sql"] for query in captured if "hooks_" in query["sql"]]
    assert len(about) == 1
    assert about[0].startswith("SELECT")
    endpoint_at(receiver.url, event_types=["card.made"])
    with CaptureQueriesContext(connection) as captured:
        memory_remember(content="And another", visibility="owner", embedder=HashingEmbedder())
    assert len([query for query in captured if "hooks_" in query["sql"]]) == 1


@pytest.mark.django_db(transaction=True)
def test_an_endpoint_that_is_removed_meanwhile_harms_nobody_s_transaction(
    endpoint: WebhookEndpoint,
) -> None:
    """Its removal waits for those who are telling it something."""

    def remove() -> None:
        endpoint_remove(endpoint_id=endpoint.pk, actor=COMMAND_LINE)
        connection.close()

    def waits_or_is_done() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                # pg_stat_activity would look the same throughout a transaction.
                "SELECT count(*) FROM pg_locks WHERE NOT granted"
            )
            return bool(cursor.fetchone()[0]) or not removing.is_alive()

    removing = threading.Thread(target=remove)
    with transaction.atomic():
        remember()
        removing.start()
        wait_until(waits_or_is_done, "the endpoint is being removed")
        assert WebhookDelivery.objects.exists()
    removing.join()
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
