"""The page on which staff try an answer again and compare the results."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from memoryproject.foundation.integrations.llm.base import Completion
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import AnswerTrial, Turn, TurnReplay
from sessions_app.trials.run_trial import trial_run
from tests.dashboard.staff import staff_with
from tests.shown import words
from tests.world import CLIENT, World, new_world, remember

pytestmark = pytest.mark.django_db
FACT = "TestCorp pays its invoices within 30 days"
RIGHTS = ("sessions_app.view_turn", "sessions_app.rerun_turn")
PRICES = {"scripted": (1_000.0, 1_000.0), "other": (2_000.0, 2_000.0)}


@pytest.fixture(scope="module")
def answered(module_rows: None) -> None:
    world = new_world()
    remember(world, FACT)
    world.say(CLIENT, "When does TestCorp pay its invoices?")


@pytest.fixture
def asked(answered: None) -> Turn:
    return Turn.objects.latest("id")


@pytest.fixture
def models(settings: Any) -> None:
    settings.CHAT_MODEL, settings.OPENAI_API_KEY = "openai", "a-key"
    settings.OPENAI_MODEL, settings.COMPARISON_MODELS = "scripted", ["other", "scripted"]


def address(turn: Turn) -> str:
    return f"/admin/sessions_app/turn/{turn.pk}/trials/"


def form_of(client: Client, turn: Turn) -> dict[str, str]:
    shown = client.get(address(turn)).content.decode()
    (trial,) = re.findall(r'name="trial" value="([^"]+)"', shown)
    (model,) = re.findall(r'<option value="([^"]+)" selected>', shown)
    return {"trial": trial, "model": model, "memories": "then", "instructions": "then"}


def run(world: World, answer: str | Completion) -> AnswerTrial:
    """What the worker does, with a scripted model in the place of the server's."""
    trial = AnswerTrial.objects.latest("created_at")
    model = ScriptedChatModel(lambda _request: answer, name="other")
    trial_run(trial_id=trial.pk, dependencies=world.dependencies, model_named=lambda _name: model)
    trial.refresh_from_db()
    return trial


def test_the_answer_and_the_trial_stand_side_by_side(
    admin_client: Client, asked: Turn, world: World, models: None, settings: Any
) -> None:
    settings.MODEL_PRICES, settings.MODEL_CURRENCY = PRICES, "EUR"
    posted = {**form_of(admin_client, asked), "model": "other", "memories": "none"}
    assert admin_client.post(address(asked), posted).status_code == 302
    shown = words(admin_client.get(address(asked)))
    assert "A worker is asking the model." in shown
    assert admin_client.get(address(asked), headers={"X-Requested-With": "live"}).json() == {
        "open": True
    }
    run(world, Completion("answer to: When does TestCorp pay its bills?", "other", 400, 100))
    assert admin_client.get(address(asked), headers={"X-Requested-With": "live"}).json() == {
        "open": False
    }
    page = admin_client.get(address(asked))
    assert re.search(r"<del>\s*invoices</del>\s*<ins>\s*bills</ins>", page.content.decode())
    shown = words(page)
    assert "Trial 1 by admin" in shown
    assert "Memories: none. Instructions: as then." in shown
    assert "What it was given 0" in shown
    assert "Prompt tokens 400 Completion tokens 100 Time of the model" in shown
    assert "Estimated cost EUR 1.00" in shown
    assert "not given here" in shown
    assert shown.count(FACT) >= 2


def test_models_are_those_of_the_settings(admin_client: Client, asked: Turn, models: None) -> None:
    shown = admin_client.get(address(asked)).content.decode()
    assert re.findall(r'<option value="([^"]+)"', shown) == ["scripted", "other"]
    posted = {**form_of(admin_client, asked), "model": "gpt-secret"}
    answer = admin_client.post(address(asked), posted)
    assert "The model gpt-secret isn't among those to compare" in words(answer)
    assert not AnswerTrial.objects.exists()


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("no key", "No model can be asked: OPENAI_API_KEY isn't set."),
        ("no record", "What the model was sent isn't stored"),
        ("by hand", "Staff wrote this answer themselves"),
        ("no question", "The question isn't kept any more"),
    ],
)
def test_where_nothing_can_be_tried_the_page_says_why(
    admin_client: Client, asked: Turn, models: None, settings: Any, case: str, told: str
) -> None:
    if case == "no key":
        settings.OPENAI_API_KEY = ""
    elif case == "no record":
        TurnReplay.objects.update(prompt=[])
    elif case == "by hand":
        Turn.objects.update(by_hand=True)
    else:
        Turn.objects.update(message=None)
    page = admin_client.get(address(asked))
    assert told in words(page)
    assert 'id="trial-form"' not in page.content.decode()


def test_near_memories_are_offered_to_those_who_may_see_them(asked: Turn, world: World) -> None:
    near = remember(world, "In the garden there are old trees")
    shown = staff_with(*RIGHTS).get(address(asked)).content.decode()
    assert near.content not in shown
    client = staff_with(*RIGHTS, name="eli")
    posted = {**form_of(client, asked), "memories": "chosen", "text": [str(near.pk)]}
    client.post(address(asked), posted)
    assert AnswerTrial.objects.get().chosen == [], "nor is it given to who types its id"
    sees = staff_with(*RIGHTS, "memories_app.view_memory", name="noa").get(address(asked))
    assert near.content in sees.content.decode()
