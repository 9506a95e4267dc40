"""A sick service is left alone after a while, by all processes, and tried again by one call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from memoryproject.foundation.integrations.llm.base import ChatMessage, ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
from memoryproject.foundation.integrations.whatsapp.base import Recipient, SendError
from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.foundation.outside_services.breaker import TRIAL, ServiceGuard
from memoryproject.foundation.outside_services.guards import SICK_AT, ServicePausedError, deadline
from memoryproject.foundation.outside_services.models import (
    OutsideService,
    ServiceName,
    services_sick,
)
from sessions_app.models import Turn
from sessions_app.turns.open_questions import questions_resume
from tests.loopback.openai_behaviours import fails, slow
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.quirks import QuirkServer, Reply, completion, error
from tests.processes.installation import free_port
from tests.world import World

pytestmark = pytest.mark.django_db

KEY = "secret-of-tests"
QUESTION = ChatRequest([ChatMessage("user", "When is the delivery?")])
SERVER_ERROR = fails(500)
ATTEMPTS = 4


class Failure(Exception):
    def __init__(self, sickness: int) -> None:
        super().__init__("it failed")
        self.sickness = sickness
        self.sickness_text = "It answered 500."


@pytest.fixture
def guard() -> ServiceGuard:
    return ServiceGuard(ServiceName.CHAT_MODEL, "gpt-4o-mini at models.example")


@pytest.fixture
def changes(caplog: pytest.LogCaptureFixture) -> Callable[[], list[bool]]:
    """What was announced: True for a service that fell sick, False for one that recovered."""
    caplog.set_level(logging.WARNING)
    return lambda: ["doesn't answer" in each for each in caplog.messages]


def fail(guard: ServiceGuard, *, sickness: int = 1, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(Failure):
            guard.call(lambda: raise_it(Failure(sickness)))


def raise_it(error: Exception) -> None:
    raise error


def pause_over() -> None:
    """Let the pause of every service have passed."""
    OutsideService.objects.update(opened_at=timezone.now() - timedelta(hours=1))


def test_failures_in_a_row_pause_the_service(
    guard: ServiceGuard, changes: Callable[[], list[bool]]
) -> None:
    fail(guard, times=SICK_AT)
    assert changes() == [True]
    called: list[int] = []
    with pytest.raises(ServicePausedError):
        guard.call(lambda: called.append(1))
    assert not called
    (sick,) = services_sick()
    assert (sick.name, sick.error, sick.sick_since is not None) == (
        "chat_model",
        "It answered 500.",
        True,
    )


def test_five_timeouts_are_enough(guard: ServiceGuard) -> None:
    fail(guard, sickness=4, times=5)
    with pytest.raises(ServicePausedError):
        guard.call(lambda: None)


def test_a_refused_request_says_nothing_against_the_service(guard: ServiceGuard) -> None:
    fail(guard, sickness=0, times=3 * SICK_AT)
    assert guard.call(lambda: "fine") == "fine"


def test_one_call_tries_again_while_others_still_wait(
    guard: ServiceGuard, changes: Callable[[], list[bool]]
) -> None:
    fail(guard, times=SICK_AT)
    pause_over()

    def work() -> str:
        with pytest.raises(ServicePausedError):
            guard.call(lambda: "a second call during the trial")
        return "fine"

    assert guard.call(work) == "fine"
    assert changes() == [True, False]
    assert services_sick() == []
    assert guard.call(lambda: "fine") == "fine"


def test_a_failed_trial_begins_another_pause(
    guard: ServiceGuard, changes: Callable[[], list[bool]]
) -> None:
    fail(guard, times=SICK_AT)
    pause_over()
    fail(guard)
    with pytest.raises(ServicePausedError):
        guard.call(lambda: None)
    # It is announced once.
    assert changes() == [True]


def test_a_trial_whose_process_died_is_made_again(guard: ServiceGuard) -> None:
    fail(guard, times=SICK_AT)
    late = timezone.now() - TRIAL
    OutsideService.objects.update(state="half-open", trial_until=late)
    assert guard.call(lambda: "fine") == "fine"


@pytest.mark.parametrize("kind", ["SELECT", "UPDATE"])
def test_without_the_database_the_service_is_called(guard: ServiceGuard, kind: str) -> None:
    fail(guard)

    def refuse(execute: Any, query: str, *rest: Any) -> Any:
        if query.startswith(kind):
            raise OperationalError("the server closed the connection")
        return execute(query, *rest)

    with connection.execute_wrapper(refuse):
        assert guard.call(lambda: "fine") == "fine"


def test_a_sick_model_is_not_called_by_each_message(
    server: OpenAIServer, waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    guard = ServiceGuard(ServiceName.CHAT_MODEL, "gpt-4o-mini at loopback")
    model = OpenAIChatModel(
        "sample-key-0123456789",
        server.base_url,
        "gpt-4o-mini",
        timeout=10,
        sleep=waits.append,
        guard=guard,
    )
    calls = SICK_AT // ATTEMPTS
    server.script_chat(*[SERVER_ERROR] * SICK_AT)
    with closing(model), caplog.at_level(logging.WARNING):
        for _ in range(calls):
            with pytest.raises(ChatModelError, match="500"):
                model.complete(QUESTION)
        with pytest.raises(ChatModelError, match="not asked again"):
            model.complete(QUESTION)
        assert len(server.requests) == SICK_AT
        pause_over()
        assert model.complete(QUESTION).text
    told = [
        record.message for record in caplog.records if "gpt-4o-mini at loopback" in record.message
    ]
    assert len(told) == 2
    assert "doesn't answer" in told[0]
    assert "answers again" in told[1]


def test_a_refused_key_counts_and_a_refused_prompt_does_not(
    server: OpenAIServer, waits: list[float]
) -> None:
    guard = ServiceGuard(ServiceName.CHAT_MODEL, "gpt-4o-mini at loopback")
    model = OpenAIChatModel(
        "another-key", server.base_url, "m", timeout=10, sleep=waits.append, guard=guard
    )
    with closing(model):
        for _ in range(3):
            with pytest.raises(ChatModelError, match="401"):
                model.complete(QUESTION)
    assert OutsideService.objects.get().failures == 3


def test_the_words_of_the_server_are_not_kept(server: OpenAIServer, waits: list[float]) -> None:
    guard = ServiceGuard(ServiceName.CHAT_MODEL, "gpt-4o-mini at loopback")
    model = OpenAIChatModel(
        "another-key", server.base_url, "m", timeout=10, sleep=waits.append, guard=guard
    )
    with closing(model), pytest.raises(ChatModelError) as caught:
        model.complete(QUESTION)
    assert str(caught.value) != "The model server answered 401."
    assert OutsideService.objects.get().error == "The model server answered 401."


def test_the_deadline_ends_the_retries(server: OpenAIServer, waits: list[float]) -> None:
    model = OpenAIChatModel(
        "sample-key-0123456789", server.base_url, "m", timeout=10, sleep=waits.append
    )
    server.script_chat(*[SERVER_ERROR] * ATTEMPTS)
    # The second retry would begin two seconds later, which is after the deadline.
    with closing(model), deadline(1.9), pytest.raises(ChatModelError, match="500"):
        model.complete(QUESTION)
    assert waits == [1.0]


def test_a_hanging_server_is_waited_for_until_the_deadline(server: OpenAIServer) -> None:
    model = OpenAIChatModel("sample-key-0123456789", server.base_url, "m", timeout=60)
    server.script_chat(slow(60))
    with closing(model), deadline(0.5), pytest.raises(ChatModelError, match=r"within 0\.\d+ sec"):
        model.complete(QUESTION)
    assert server.wait_for_requests(1)
    assert len(server.requests) == 1


def test_after_the_deadline_nothing_is_called(server: OpenAIServer) -> None:
    model = OpenAIChatModel("sample-key-0123456789", server.base_url, "m", timeout=60)
    with closing(model), deadline(0), pytest.raises(ChatModelError, match="ANSWER_DEADLINE"):
        model.complete(QUESTION)
    assert server.requests == []


def test_a_provider_out_of_reach_is_left_alone() -> None:
    guard = ServiceGuard(ServiceName.WHATSAPP_CLOUD, "loopback")
    provider = CloudProvider(
        api_url=f"http://127.0.0.1:{free_port()}/v24.0",
        phone_number_id="1",
        access_token="sample",
        guard=guard,
    )

    def send() -> SendError:
        with pytest.raises(SendError) as caught:
            provider.send_text(to=Recipient("1@c.us", phone="1"), text="hello", callback_id="a")
        return caught.value

    for _ in range(SICK_AT):
        assert not send().is_paused
    paused = send()
    assert paused.is_paused
    assert not paused.permanent
    assert not paused.outcome_unknown


def refuses_some(body: dict[str, Any], _number: int) -> Reply:
    """Answer all but some questions, for which the server breaks each time."""
    is_refused = "breaks" in body["messages"][-1]["content"]
    return Reply(error("boom"), 500) if is_refused else Reply(completion())


def test_questions_that_the_server_refuses_silence_nobody(world: World) -> None:
    def pass_time(seconds: float) -> None:
        """Let the sweep run at that time, and answer what it lets in."""
        now = timezone.now() + timedelta(seconds=seconds)
        questions_resume(enqueue=world.enqueued.append, max_age=timedelta(hours=24), now=now)
        Turn.objects.filter(state="pending").update(not_before=None)
        world.work()

    innocent, breaking = "15550199999@c.us", [f"1555010000{number}@c.us" for number in range(3)]
    guard = ServiceGuard(ServiceName.CHAT_MODEL, "quirk at loopback")
    with QuirkServer(refuses_some) as server:
        model = OpenAIChatModel(KEY, server.url, "quirk", sleep=lambda _: None, guard=guard)
        world.use(chat_model=model)
        for chat in breaking:
            world.say(chat, f"{chat} breaks")
        for seconds in (20, 40):
            for _ in breaking:
                pass_time(seconds)
        assert services_sick(), "they have paused the model for all"
        asked = len(server.bodies)
        world.say(innocent, "When do you open?")
        # Each sweep before the pause ends finds the model paused, and so does the innocent one.
        for seconds in (100, 110, 120, 130):
            pass_time(seconds)
        assert len(server.bodies) == asked
        pause_over()
        pass_time(140)
        assert services_sick() == []
        turn = Turn.objects.get(message__content="When do you open?")
        assert turn.state == "sent"
        model.close()


def test_a_trial_that_fails_says_why(world: World) -> None:
    guard = ServiceGuard(ServiceName.CHAT_MODEL, "quirk at loopback")
    fail(guard, times=SICK_AT)
    pause_over()
    with QuirkServer(refuses_some) as server:
        model = OpenAIChatModel(KEY, server.url, "quirk", sleep=lambda _: None, guard=guard)
        with pytest.raises(ChatModelError, match="500"):
            model.complete(ChatRequest([ChatMessage("user", "This breaks.")]))
        assert len(server.bodies) == 1, "one call is a trial"
        model.close()
