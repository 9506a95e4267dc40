"""Model calls, tokens and money of a day, for answers, summaries and extraction."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.integrations.llm.base import ChatRequest, Completion
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.limits.answer_limits import MeteredChatModel
from sessions_app.limits.intake import LimitReachedError, UsageLimits
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import ChatAccess, Message, SummarizationMetadata, Turn, UsageDay
from tests.limits.conftest import Limiting, calls, ends, sent
from tests.threads import begin_blocked, in_threads
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

PRICES = {"scripted": (1_000_000.0, 2_000_000.0)}
POLITE = "I can't answer any more today."


def answers(world: World, tokens_in: int | None = 60, tokens_out: int | None = 40) -> None:
    """Let the model answer with these counts of tokens from here on."""

    def complete(request: ChatRequest) -> Completion:
        text = f"answer to: {request.messages[-1].content}"
        return Completion(text, "scripted", tokens_in, tokens_out)

    world.use(chat_model=ScriptedChatModel(complete))


def tomorrow() -> None:
    """Let a day pass: what is counted today was yesterday."""
    for used in UsageDay.objects.all():
        used.day -= timedelta(days=1)
        used.save()


def test_beyond_the_calls_of_a_day_the_chat_is_told_once_and_nobody_else(limited: Limiting) -> None:
    world = limited(model_calls_per_day=2)
    for text in ("one", "two", "three", "four"):
        world.say(CLIENT, text)
    assert world.say(OTHER_CLIENT, "Hi") == ["answer to: Hi"]
    assert calls(world) == 3
    assert sent(world)[2].startswith(POLITE)
    assert ends() == [
        ("sent", ""),
        ("sent", ""),
        ("sent", "limit_model_calls"),
        ("refused", "limit_model_calls"),
        ("sent", ""),
    ]
    assert world.say(CLIENT, "/help")
    tomorrow()
    assert world.say(CLIENT, "five") == ["answer to: five"]


def test_beyond_the_tokens_of_a_day_the_model_isnt_asked(limited: Limiting) -> None:
    world = limited(tokens_per_day=150)
    answers(world)
    for text in ("one", "two", "three"):
        world.say(CLIENT, text)
    assert calls(world) == 2
    used = UsageDay.objects.get()
    assert (used.prompt_tokens, used.completion_tokens) == (120, 80)
    assert (used.reached, ends()[-1]) == ("limit_tokens", ("sent", "limit_tokens"))


def test_the_day_comes_before_the_hour(limited: Limiting, caplog: pytest.LogCaptureFixture) -> None:
    world = limited(messages_per_hour=2, model_calls_per_day=1)
    for text in ("one", "two", "three", "four"):
        world.say(CLIENT, text)
    assert UsageDay.objects.get().reached == "limit_model_calls"
    warned = [text for text in caplog.messages if "reached a limit" in text]
    assert [text.rpartition(" ")[2] for text in warned] == ["limit_model_calls.", "limit_messages."]


def test_tokens_that_the_server_doesnt_report_are_estimated(limited: Limiting) -> None:
    world = limited()
    answers(world, None, None)
    world.say(CLIENT, "Hello, when are you open?")
    used = UsageDay.objects.get()
    assert used.prompt_tokens > 50
    assert used.completion_tokens > 5


def test_the_budget_is_of_all_clients_together_and_not_of_the_owner(limited: Limiting) -> None:
    world = limited(daily_budget=Decimal(280), prices=PRICES)
    answers(world)
    for chat in (GODFATHER, GODFATHER, GODFATHER, CLIENT, OTHER_CLIENT, CLIENT, OTHER_CLIENT):
        world.say(chat, "Hi")
    assert calls(world) == 5
    assert [reason for _state, reason in ends()[5:]] == ["limit_budget", "limit_budget"]
    assert all(text.startswith(POLITE) for text in sent(world)[5:])
    cost = UsageDay.objects.get(chat=world.chat(CLIENT)).cost
    assert cost == Decimal(140)
    assert world.say(GODFATHER, "Hi") == ["answer to: Hi"]


def test_a_reported_name_without_a_price_costs_as_the_configured_model(limited: Limiting) -> None:
    world = limited(prices={"gpt": (1_000_000.0, 0.0)}, model="gpt")
    answers(world)
    world.say(CLIENT, "Hi")
    assert UsageDay.objects.get().cost == Decimal(60)


def test_a_day_is_one_of_the_business(limited: Limiting) -> None:
    limits = UsageLimits(time_zone="Asia/Jerusalem")
    late = timezone.now().replace(month=7, day=1, hour=21, minute=30)
    assert limits.day_of(late).day == 2
    assert limits.day_ends(late) - late == timedelta(hours=23, minutes=30) - timedelta(
        seconds=late.second, microseconds=late.microsecond
    )


def test_a_turn_that_is_tried_again_still_tells(limited: Limiting) -> None:
    world = limited(model_calls_per_day=1)
    world.say(CLIENT, "one")
    world.receive(message_from(CLIENT, "two"))
    turn = Turn.objects.latest("id")
    UsageDay.objects.update(told_turn=turn.pk, reached="limit_model_calls")  # and died
    world.work()
    assert sent(world)[-1].startswith(POLITE)


def test_callers_of_the_api_are_told_each_time(limited: Limiting) -> None:
    world = limited(model_calls_per_day=1)
    replies = [world.talk("Hi").reply for _ in range(3)]
    assert replies[0] == "answer to: Hi"
    assert all(reply.startswith(POLITE) for reply in replies[1:])


def summing(world: World, limited: Limiting, **limits: Any) -> None:
    world.summarizing(every=2)
    limited(**limits)


def test_summaries_count_and_are_excerpts_beyond_a_limit(world: World, limited: Limiting) -> None:
    summing(world, limited, model_calls_per_day=2)
    world.say(CLIENT, "I would like a table for four")
    assert world.sum_up(CLIENT) == 1
    assert (calls(world), UsageDay.objects.get().model_calls) == (2, 2)
    world.receive(message_from(CLIENT, "At eight, by the window"))
    world.work()
    assert world.sum_up(CLIENT) == 1
    assert calls(world) == 2
    made_by = SummarizationMetadata.objects.values_list("model", flat=True)
    assert sorted(made_by) == ["extractive", "scripted"]


def test_in_a_busy_hour_summaries_dont_ask_the_model(world: World, limited: Limiting) -> None:
    summing(world, limited, messages_per_hour=2)
    for text in ("I would like a table", "for four", "at eight"):
        world.receive(message_from(CLIENT, text))
    world.sum_up(CLIENT)
    assert calls(world) == 0


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_never_pass_the_calls_together(limited: Limiting) -> None:
    world = limited(model_calls_per_day=3)
    world.receive(message_from(CLIENT, "one"))
    model = ScriptedChatModel(lambda _request: "text")
    metered = MeteredChatModel(model, world.chat(CLIENT).pk, False, world.dependencies.limits)

    def ask() -> str:
        try:
            return metered.complete(ChatRequest([])).text
        except LimitReachedError:
            return "refused"

    assert sorted(map(str, in_threads(ask, 8))) == ["refused"] * 5 + ["text"] * 3
    assert (len(model.requests), UsageDay.objects.get().model_calls) == (3, 3)


@pytest.mark.django_db(transaction=True)
def test_a_call_that_waited_is_refused_by_a_limit_reached_meanwhile(limited: Limiting) -> None:
    world = limited(daily_budget=Decimal(280))
    world.receive(message_from(CLIENT, "one"))
    chat, limits = world.chat(CLIENT), world.dependencies.limits
    metered = MeteredChatModel(ScriptedChatModel([]), chat.pk, False, limits)

    def first_call_of_the_day() -> str:
        with pytest.raises(LimitReachedError) as refused:
            metered.complete(ChatRequest([]))
        return refused.value.code

    with transaction.atomic():
        today = limits.day_of(timezone.now())
        UsageDay.objects.create(chat=chat, day=today, cost=Decimal(280))
        refused = begin_blocked(first_call_of_the_day)
    assert refused.result() == "limit_budget"


def test_a_call_that_fails_counts_and_costs_no_tokens(limited: Limiting) -> None:
    world = limited(model_calls_per_day=5)
    world.use(chat_model=ScriptedChatModel([LookupError()]))
    world.say(CLIENT, "Hi")
    used = UsageDay.objects.get()
    # A fault of ours is tried twice.
    assert (used.model_calls, used.tokens) == (2, 0)


def test_both_chats_of_one_person_count_as_one(limited: Limiting) -> None:
    world = limited(model_calls_per_day=3, messages_per_hour=4)
    for chat in (CLIENT, CLIENT, OTHER_CLIENT):
        world.say(chat, "Hi")
    merged = chat_merge(world.chat(CLIENT), world.chat(OTHER_CLIENT))
    assert UsageDay.objects.get(chat=merged).model_calls == 3
    assert ChatAccess.objects.get(chat=merged).hour_messages == 3
    assert Message.objects.filter(chat=merged).count() == 6
