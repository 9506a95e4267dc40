"""What the settings choose, and what staff see."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from memoryproject import checks
from sessions_app import tasks
from sessions_app.extraction.dependencies import build_extractor, enqueue_learning
from sessions_app.extraction.fact_store import NOTHING_LEARNED
from sessions_app.models import ExtractionWork, Turn
from sessions_app.turns.dependencies import build_turn_dependencies
from tests.extraction.learning import DOWN, Learning, fact
from tests.world import CLIENT

pytestmark = pytest.mark.django_db


@pytest.fixture
def on(settings: Any) -> Any:
    settings.EXTRACT_MEMORIES = True
    settings.CHAT_MODEL = "openai"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    return settings


class TestSettings:
    def test_by_default_nothing_is_learned(self, settings: Any) -> None:
        assert settings.EXTRACT_MEMORIES is False
        assert build_extractor() is None
        assert build_turn_dependencies().learn is None

    def test_on_with_a_chat_model(self, on: Any) -> None:
        on.EXTRACTION_MIN_CONFIDENCE = 0.8
        extractor = build_extractor()
        assert extractor is not None
        assert extractor.min_confidence == 0.8
        assert build_turn_dependencies().learn is enqueue_learning
        assert checks.extraction_has_a_model() == []

    @pytest.mark.parametrize(
        ("name", "value"), [("CHAT_MODEL", "offline"), ("LONGTERM_ENABLED", False)]
    )
    def test_without_a_model_or_long_term_memory_it_does_nothing(
        self, on: Any, name: str, value: object, learning: Learning
    ) -> None:
        learning.world.say(CLIENT, "I own a boat")
        setattr(on, name, value)
        assert build_turn_dependencies().learn is None
        assert "extractions" not in tasks.sweep_work()
        assert tasks.learn_from_chat(str(learning.world.chat(CLIENT).pk)) == 0
        assert ExtractionWork.objects.get().attempts == 0

    def test_without_a_model_a_check_warns(self, on: Any) -> None:
        on.CHAT_MODEL = "offline"
        (warning,) = checks.extraction_has_a_model()
        assert warning.id == "memory.W008"

    def test_the_sweep_enqueues_what_is_due(self, on: Any, learning: Learning) -> None:
        learning.world.say(CLIENT, "I own a boat")
        assert tasks.sweep_work()["extractions"] == 1


class TestStaff:
    def page(self, client: Client, turn: Turn | None = None) -> str:
        turn = turn or Turn.objects.order_by("-id")[0]
        return client.get(f"/admin/sessions_app/turn/{turn.pk}/change/").content.decode()

    def test_a_turn_shows_what_it_taught(self, admin_client: Client, learning: Learning) -> None:
        learning.say("I own a boat", fact("I own a boat"), fact("I own a plane"))
        page = self.page(admin_client)
        assert "/admin/memories_app/memory/" in page
        assert "I own a boat (active)" in page
        assert "1 learned, 1 unsaid" in page

    def test_a_turn_shows_why_it_is_none(self, admin_client: Client, learning: Learning) -> None:
        learning.lessons = [DOWN]
        learning.say("I own a boat")
        assert "will be tried again: ChatModelError" in self.page(admin_client)

    @pytest.mark.parametrize("noted", ["nothing", None])
    def test_a_turn_with_memories_does_not_say_that_there_was_nothing_to_learn(
        self, admin_client: Client, learning: Learning, noted: str | None
    ) -> None:
        learning.say("I own a boat", fact("I own a boat"))
        if noted is None:
            ExtractionWork.objects.all().delete()
        else:
            ExtractionWork.objects.update(outcome=NOTHING_LEARNED)
        page = self.page(admin_client)
        assert "I own a boat (active)" in page
        assert "nothing worth learning" not in page
        assert "Learning was off" not in page

    def test_a_turn_that_is_not_read(self, admin_client: Client, learning: Learning) -> None:
        learning.world.remember(CLIENT, "I own a boat")
        assert "Learning was off" in self.page(admin_client)

    def test_what_waits_can_be_approved(self, admin_client: Client, learning: Learning) -> None:
        learning.say("I own a boat", fact("I own a boat", confidence=0.2))
        listed = admin_client.get("/admin/memories_app/memory/?state=proposed").content.decode()
        assert "I own a boat" in listed


def test_every_field_of_the_work_has_a_meaning_when_it_is_over(learning: Learning) -> None:
    learning.say("I own a boat", fact("I own a boat"))
    values: dict[str, Any] = ExtractionWork.objects.values().get()
    del values["turn_id"], values["done_at"]
    assert values == {
        "due": False,
        "attempts": 1,
        "lease_token": None,
        "lease_owner": "",
        "lease_until": None,
        "not_before": None,
        "outcome": "1 learned",
        "error": "",
    }
