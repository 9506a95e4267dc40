"""What fails is tried again, given up in the end, and never stands in an answer's way."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from memoryproject.foundation.integrations.context_limit import Overflow
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.integrations.llm.base import ChatModelError
from sessions_app.extraction.extraction_claims import MAX_ATTEMPTS, extractions_abandoned
from sessions_app.models import ExtractionWork, Turn
from tests.extraction.learning import DOWN, Learning, contents, fact, work
from tests.world import CLIENT

BOAT = "I own a boat"


def swept(now: datetime | None = None) -> list[Any]:
    return extractions_abandoned(now or timezone.now())


def test_a_model_that_is_down_is_asked_again_later(learning: Learning) -> None:
    learning.lessons = [DOWN]
    learning.world.say(CLIENT, BOAT)
    assert learning.learn() == 0
    assert work().due
    assert work().lease_token is None
    assert "could not be reached" in work().error
    assert swept() == []
    assert swept(now=timezone.now() + timedelta(minutes=1)) == [learning.world.chat(CLIENT).pk]
    learning.try_again()
    learning.teach(fact(BOAT))
    assert learning.learn() == 1
    assert (work().due, work().error) == (False, "")


def test_messages_that_are_too_long_for_the_model_are_read_in_two_parts(learning: Learning) -> None:
    learning.lessons = [ChatModelError("too long", permanent=True, overflow=Overflow())]
    learning.teach(fact(BOAT))
    learning.teach(fact("I like tea"))
    learning.world.say(CLIENT, f"{BOAT}. {'Nothing else happened. ' * 40}I like tea")
    assert learning.learn() == 2
    assert set(contents()) == {BOAT, "I like tea"}
    whole, first, second = (request.messages[1].content for request in learning.requests)
    assert BOAT in first
    assert "I like tea" in second
    assert max(len(first), len(second)) < len(whole) * 0.7


def test_it_is_given_up_with_the_error_and_the_next_turn_goes_on(learning: Learning) -> None:
    learning.lessons = [DOWN] * MAX_ATTEMPTS
    learning.world.say(CLIENT, BOAT)
    learning.world.say(CLIENT, "I like tea")
    for _ in range(MAX_ATTEMPTS - 1):
        assert learning.learn() == 0
        learning.try_again()
    learning.teach(fact("I like tea"))
    assert learning.learn() == 1
    first = ExtractionWork.objects.order_by("turn_id")[0]
    assert not first.due
    assert "could not be reached" in first.error
    assert contents() == ["I like tea"]
    assert Turn.objects.filter(state="sent").count() == 2
    assert swept() == []


def test_a_turn_waits_for_the_one_before_it(learning: Learning) -> None:
    """The newer fact counts, so they are learned in order."""
    learning.lessons = [DOWN]
    learning.world.say(CLIENT, "The price is 35")
    learning.world.say(CLIENT, "The price is 40")
    assert learning.learn() == 0
    assert len(learning.requests) == 1
    learning.try_again()
    learning.teach(fact("The price is 35"))
    learning.teach(fact("The price is 40"))
    assert learning.learn() == 2
    assert contents(status="active") == ["The price is 40"]


@pytest.mark.parametrize(
    "answer",
    [
        "I found nothing.",
        "",
        "[]",
        '{"facts": {}}',
        '{"facts": [], "more": 1}',
        '{"facts": [], "boat": 1}',
        '{"facts": ["I own a boat"]}',
        '{"facts": [{"fact": "I own a boat", "quote": "I own a boat"}]}',
        '{"facts": [{"fact": 1, "quote": "boat", "type": "fact", "confidence": 1}]}',
        '{"facts": [{"fact": "a", "quote": "boat", "type": "secret", "confidence": 1}]}',
        '{"facts": [{"fact": "a", "quote": "boat", "type": "fact", "confidence": "1"}]}',
        '{"facts": [{"fact": "a", "quote": "boat", "type": "fact", "confidence": 1.1}]}',
        '{"facts": [{"fact": "a", "quote": "boat", "type": "fact", "confidence": NaN}]}',
        '{"facts": [{"fact": "a", "quote": "boat", "type": "fact", "confidence": true}]}',
        '{"facts": [{"fact": "a", "quote": "boat", "type": ["fact"], "confidence": 1}]}',
        '{"facts": [{"fact": "a\\u0000", "quote": "boat", "type": "fact", "confidence": 1}]}',
        '{"facts": [{"fact": "\\ud800", "quote": "boat", "type": "fact", "confidence": 1}]}',
        '{"facts": [' + "[" * 100_000 + "]}",
    ],
)
def test_an_answer_of_another_form_stores_nothing_and_is_not_logged(
    learning: Learning, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    learning.lessons = [answer]
    learning.world.say(CLIENT, BOAT)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert learning.learn() == 0
    assert contents() == []
    assert work().error.startswith("FactsFormError: ")
    assert "boat" not in caplog.text + work().error


def test_words_or_a_code_fence_around_the_answer_do_no_harm(learning: Learning) -> None:
    text = '{"facts": [{"fact": "I own a boat", "quote": "own a boat", "type": "fact", '
    learning.lessons = ["Here you are:\n```json\n" + text + '"confidence": 1}]}\n```\nDone.']
    learning.world.say(CLIENT, BOAT)
    assert learning.learn() == 1


class _DownEmbedder(WordLlamaEmbedder):
    def embed(self, texts: Any) -> Any:
        raise EmbedderError("the embedder is down")


def test_without_an_embedder_nothing_is_stored_until_it_is_back(learning: Learning) -> None:
    learning.world.say(CLIENT, BOAT)
    embedder = learning.extractor.embedder
    learning.with_extractor(embedder=_DownEmbedder())
    learning.teach(fact(BOAT))
    assert learning.learn() == 0
    assert contents() == []
    assert work().due
    learning.with_extractor(embedder=embedder)
    learning.try_again()
    learning.teach(fact(BOAT))
    assert learning.learn() == 1


@pytest.mark.parametrize("error", [OperationalError("gone"), RuntimeError("a mistake of ours")])
def test_any_fault_leaves_the_turn_for_another_try(learning: Learning, error: Exception) -> None:
    learning.lessons = [error]
    learning.world.say(CLIENT, BOAT)
    assert learning.learn() == 0
    assert work().due
    assert type(error).__name__ in work().error


class TestLeases:
    def test_a_late_worker_stores_nothing(self, learning: Learning) -> None:
        learning.world.say(CLIENT, BOAT)

        def taken() -> None:
            ExtractionWork.objects.update(lease_token=uuid.uuid4())

        learning.during = taken
        learning.teach(fact(BOAT))
        assert learning.learn() == 0
        assert contents() == []
        assert work().due

    def test_a_turn_that_kills_its_workers_is_given_up(self, learning: Learning) -> None:
        learning.world.say(CLIENT, BOAT)
        ExtractionWork.objects.update(attempts=MAX_ATTEMPTS)
        assert learning.learn() == 0
        assert learning.requests == []
        assert (work().due, work().error) == (False, "The workers that were at it died.")
