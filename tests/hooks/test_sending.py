"""What is sent is signed and retried, and an endpoint that fails for good is disabled."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given, strategies as st

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.network.addresses import Posted, PostError
from memoryproject.foundation.integrations.network.checked_transport import HttpPoster
from memoryproject.foundation.outgoing_webhooks.deliveries import deliveries_again
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoint_change, endpoint_rotate
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.foundation.outgoing_webhooks.sending import (
    MAX_PAUSE,
    MAX_RETRY_AFTER,
    WAITS,
    next_wait,
    pause,
)
from tests.doubles.recording_poster import RecordingPoster
from tests.hooks.receiver import (
    LOOPBACK_ALLOWED,
    Clock,
    Receiver,
    dependencies,
    one,
    remember,
    send_all,
    started,
    verified,
)
from tests.loopback.httpd import DrippingAnswer, Fault

pytestmark = pytest.mark.django_db


def test_it_is_signed_and_posted(endpoint: WebhookEndpoint, receiver: Receiver) -> None:
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


def test_both_secrets_sign_for_a_while(endpoint: WebhookEndpoint, receiver: Receiver) -> None:
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
    assert send_all(dependencies(clock=clock)) == 0
    delivery = one()
    assert (delivery.state, delivery.last_status) == ("pending", status)
    assert delivery.error == f"It answered {status}."
    assert delivery.due_at - clock.now == timedelta(seconds=5)
    assert [request.path for request in receiver.requests] == ["/hooks?for=crm"], "none followed"
    receiver.status = 200
    clock.on(seconds=4)
    assert send_all(dependencies(clock=clock)) == 0, "not yet"
    clock.on(seconds=2)
    assert send_all(dependencies(clock=clock)) == 1
    assert len(set(receiver.ids())) == 1
    assert len(receiver.ids()) == 2
    endpoint.refresh_from_db()
    assert (endpoint.failures, endpoint.failing_since, endpoint.last_error) == (0, None, "")


def test_it_is_given_up_after_ten_tries_and_may_be_repeated(endpoint: WebhookEndpoint) -> None:
    clock = started()
    remember()
    poster = RecordingPoster(*[Posted(500)] * 10)
    waits = []
    while one().state == "pending":
        clock.now = max(clock.now, one().due_at) + timedelta(minutes=5)
        before = clock.now
        send_all(dependencies(poster, clock=clock, disable_after=timedelta(days=30)))
        waits.append(one().due_at - before)
    assert len(poster.posts) == 10
    shown = [wait.total_seconds() for wait in waits[:-1]]
    assert shown == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert (one().state, one().attempts) == ("failed", 10)
    assert deliveries_again(delivery_ids=[one().pk], actor=COMMAND_LINE) == 1
    assert send_all(dependencies(poster)) == 1
    assert len({post.headers["webhook-id"] for post in poster.posts}) == 1
    assert AuditEvent.objects.filter(action="webhook.again").count() == 1


@pytest.mark.parametrize(
    ("status", "told", "seconds"),
    [(429, "120", 120), (503, "120", 120), (503, "1", 5), (500, "120", 0), (429, "x", 0)],
)
def test_retry_after_is_waited_for(
    endpoint: WebhookEndpoint, receiver: Receiver, status: int, told: str, seconds: int
) -> None:
    clock = started()
    remember()
    receiver.status, receiver.headers = status, {"Retry-After": told}
    send_all(dependencies(clock=clock))
    assert (one().due_at - clock.now).total_seconds() == (seconds or 5)
    endpoint.refresh_from_db()
    assert ((endpoint.paused_until or clock.now) - clock.now).total_seconds() == seconds


def test_an_endpoint_that_refuses_one_event_in_three_gets_the_others_at_once(
    endpoint: WebhookEndpoint,
) -> None:
    remember(30)
    clock = started()
    poster = RecordingPoster(*[Posted(200), Posted(200), Posted(500)] * 10)
    assert send_all(dependencies(poster, clock=clock)) == 20
    clock.on(seconds=6)
    assert send_all(dependencies(RecordingPoster(*[Posted(200)] * 10), clock=clock)) == 10


@pytest.mark.parametrize(("answer", "tries"), [(Posted(500), 3), (PostError("refused"), 1)])
def test_an_endpoint_that_is_down_is_paused(
    endpoint: WebhookEndpoint, answer: Posted | PostError, tries: int
) -> None:
    remember(10)
    poster = RecordingPoster(*[answer] * 10)
    assert send_all(dependencies(poster, clock=started())) == 0
    assert len(poster.posts) == tries


def test_410_disables_it_and_staff_see_why(endpoint: WebhookEndpoint, receiver: Receiver) -> None:
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
    sending = dependencies(poster, clock=clock)
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


def test_one_that_is_down_costs_a_try_now_and_then_not_one_an_event(
    endpoint: WebhookEndpoint,
) -> None:
    clock = started()
    remember(50)
    poster = RecordingPoster(*[Posted(500)] * 5)
    for _ in range(3):
        send_all(dependencies(poster, clock=clock))
        send_all(dependencies(poster, clock=clock))
        clock.on(seconds=30)
    assert len(poster.posts) == 5
    assert send_all(dependencies(poster, clock=clock)) == 50


@pytest.mark.parametrize("how", ["hang", "reset", "drip"])
def test_a_receiver_that_doesn_t_answer_in_time_is_a_failure(
    endpoint: WebhookEndpoint, receiver: Receiver, how: str
) -> None:
    remember()
    header = {"X-Long": "x" * 50}
    fault = {
        "hang": Fault(no_answer="hang"),
        "reset": Fault(no_answer="reset"),
        "drip": Fault(
            delay=0.05, answer=DrippingAnswer(200, {}, header, content=b"x" * 64, drip=0.2)
        ),
    }[how]
    receiver.fail_next(fault)
    send_all(dependencies(HttpPoster(LOOPBACK_ALLOWED, longest=0.5)))
    delivery = one()
    if how == "drip":
        # The status came in time; nobody waits for the end of its body.
        assert delivery.state == "delivered"
        return
    assert delivery.state == "pending"
    assert "within 0.5 seconds" in delivery.error or "connection broke" in delivery.error
    assert send_all(dependencies(clock=Clock(timezone.now() + timedelta(seconds=10)))) == 1
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
    send_all(dependencies(HttpPoster(LOOPBACK_ALLOWED, longest=0.5)))
    server.join()
    dripping.close()
    assert (one().state, one().error) == ("pending", "No answer came within 0.5 seconds.")


# The schedule of retries, as pure logic.


lucks = st.floats(min_value=0, max_value=1)
attempts = st.integers(min_value=1, max_value=len(WAITS))


@given(attempts, lucks)
def test_luck_makes_a_wait_up_to_a_fifth_longer(number: int, luck: float) -> None:
    wait = next_wait(attempts=number, luck=luck)
    assert wait is not None
    assert WAITS[number - 1] <= wait <= WAITS[number - 1] * 1.2


@given(attempts, lucks, st.floats(min_value=0, max_value=1e12))
def test_no_wait_is_shorter_than_asked_for(number: int, luck: float, asked: float) -> None:
    wait = next_wait(attempts=number, luck=luck, retry_after=asked)
    assert wait is not None
    assert wait >= min(timedelta(seconds=min(asked, 10**6)), MAX_RETRY_AFTER)
    assert wait <= max(WAITS[number - 1] * 1.2, MAX_RETRY_AFTER)


@given(st.integers(min_value=1, max_value=10**6), st.booleans())
def test_pauses_grow_and_end(failures: int, is_answered: bool) -> None:
    first, second = (
        pause(failures=each, is_answered=is_answered) for each in (failures, failures + 1)
    )
    assert first <= second <= MAX_PAUSE
    assert (first >= timedelta(seconds=5)) is (failures > 2 or not is_answered)
