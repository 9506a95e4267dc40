"""The question set is asked again: what staff marked as right, and what they wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories_app.models import Memory
from memories_app.store.change import memory_patch
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.embedding.facade import embedder
from sessions_app.models import AssistantProfile, CheckDay, CheckQuestion, Message, Turn
from sessions_app.tasks import check_questions
from sessions_app.turns.answer_review import answer_rate, rating_remove
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.question_set import questions_check_store
from tests.remembering import remember
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db
NOTHING: Mapping[str, Any] = {"questions": 0, "lost": [], "percent": 100.0}


def check(*options: str) -> Any:
    out = StringIO()
    try:
        call_command("questions_check", "--json", *options, stdout=out)
    except CommandError as error:
        return {**json.loads(out.getvalue()), "error": str(error)}
    return json.loads(out.getvalue())


def rate(*, is_good: bool = True, name: str = "rater") -> Turn:
    turn = Turn.objects.exclude(message__content__startswith="/").latest("id")
    user, _made = User.objects.get_or_create(username=name)
    answer_rate(turn_id=turn.pk, user=user, actor=SYSTEM, is_good=is_good, reason="")
    return turn


def make_wrong(memory: Memory) -> None:
    change = {"content": "Our bakery sells bread on Sundays"}
    memory_patch(memory_id=memory.pk, changes=change, actor=SYSTEM, embedder=embedder())


@pytest.fixture
def marked(world: World) -> Memory:
    world.remember(CLIENT, "The gate code is 4321")
    world.say(CLIENT, "What is the gate code?")
    rate()
    return Memory.objects.get()


def test_nothing_marked_is_no_failure(world: World) -> None:
    world.say(CLIENT, "What is the gate code?")
    assert check() == NOTHING
    out = StringIO()
    call_command("questions_check", stdout=out)
    assert "nothing to check" in out.getvalue()


def test_a_memory_that_is_not_found_any_more_fails(marked: Memory) -> None:
    assert check() == {**NOTHING, "questions": 1}
    said = Message.objects.count()
    make_wrong(marked)
    found = check()
    assert found["error"] == "0.0 of 100 are found, fewer than 100."
    (row,) = found["lost"]
    assert row["memory_id"] == str(marked.pk)
    assert "gate" not in json.dumps(found), "people's texts are printed on request only"
    (row,) = check("--min", "0", "--texts")["lost"]
    assert row["question"] == "What is the gate code?"
    assert row["memory"] == "Our bakery sells bread on Sundays"
    assert Message.objects.count() == said
    assert CheckQuestion.objects.get().state == "new", "the command stores no result"


def test_what_was_erased_or_replaced_does_not_count(marked: Memory) -> None:
    Memory.objects.update(status="superseded")
    assert check()["questions"] == 0
    newer = remember("The gate code is 9876 now", visibility="public")
    Memory.objects.filter(pk=marked.pk).update(superseded_by=newer)
    assert check() == {**NOTHING, "questions": 1}, "the newer one counts for it"
    Memory.objects.filter(pk=newer.pk).update(expires_at=timezone.now() - timedelta(days=1))
    assert check()["questions"] == 0


def test_the_question_is_in_the_set_while_somebody_rates_the_answer_good(marked: Memory) -> None:
    question = CheckQuestion.objects.get()
    assert (question.asked, question.memory_id) == ("What is the gate code?", marked.pk)
    assert (question.user_role, question.language) == ("client", "en")
    turn = rate(name="other")
    rate(is_good=False)
    assert CheckQuestion.objects.get() == question
    other = User.objects.get(username="other")
    rating_remove(turn_id=turn.pk, user=other, actor=SYSTEM)
    assert not CheckQuestion.objects.exists()


@pytest.mark.parametrize(
    ("expected", "role", "passes"),
    [
        ("parking", "client", True),
        ("parks", "client", True),
        ("parking elephants", "client", False),
        ("gold", "client", False),
        ("gold", "godfather", True),
        ("חניה", "client", False),
    ],
)
def test_words_are_looked_for_in_what_that_person_is_told(
    world: World, expected: str, role: str, passes: bool
) -> None:
    remember("There is parking behind the house", visibility="public")
    remember("The parking of gold members is free", visibility="owner")
    CheckQuestion.objects.create(
        text="Is there parking for members?", expected=expected, user_role=role
    )
    assert (check("--min", "0")["percent"] == 100) is passes


def test_the_opening_hours_answer_questions_about_them(world: World) -> None:
    asked = {"When do you open?": "open", "What are your working hours?": "hours"}
    for text, expected in {**asked, "When do you open the pool?": "open"}.items():
        CheckQuestion.objects.create(text=text, expected=expected, language="en")
    assert check()["percent"] == 0
    AssistantProfile.objects.update_or_create(pk=1, defaults={"hours": {"sunday": "9:00-17:00"}})
    check_questions()
    passed = CheckQuestion.objects.filter(state="passes").values_list("text", flat=True)
    assert {*passed} == {*asked}


def test_the_nightly_run_tells_what_passed_before_and_fails_now(marked: Memory) -> None:
    assert check_questions() == {"passed": 1, "failed": 0}
    passed = CheckQuestion.objects.get()
    assert (passed.state, passed.recalled_then[0][0]) == ("passes", str(marked.pk))
    make_wrong(marked)
    other = remember("The gate is painted green", visibility="public")
    assert check_questions() == {"passed": 0, "failed": 1}
    failed = CheckQuestion.objects.get()
    assert failed.state == "fails"
    assert failed.recalled_then == passed.recalled_then
    assert str(other.pk) in [key for key, _score in failed.recalled_now]
    assert CheckDay.objects.values_list("passed", "failed").get() == (0, 1)


@pytest.mark.parametrize("kind", ["message", "memory", "chat"])
def test_a_question_goes_with_what_it_is_of(world: World, marked: Memory, kind: str) -> None:
    turn = Turn.objects.get(message__content="What is the gate code?")
    assert turn.message is not None
    CheckQuestion.objects.create(text="What is the code?", expected="The gate code is 4321")
    keys = {"message": turn.message.pk, "memory": marked.pk, "chat": turn.chat_id}
    world.forget(kind, keys[kind])
    left = [question.expected for question in CheckQuestion.objects.all()]
    assert left == (["The gate code is 4321"] if kind == "message" else [])


def test_answers_that_were_rated_good_before_are_put_into_the_set(marked: Memory) -> None:
    made = CheckQuestion.objects.values().get()
    CheckQuestion.objects.all().delete()
    migration = import_module("sessions_app.migrations.0025_rated_questions")
    for _again in range(2):
        migration.questions_add(apps, None)
    found = CheckQuestion.objects.values().get()
    changing = {"id", "created_at", "language"}
    assert {key: found[key] for key in found.keys() - changing} == {
        key: made[key] for key in made.keys() - changing
    }


def test_an_embedder_that_is_away_changes_no_result(marked: Memory) -> None:
    class Away:
        def __getattr__(self, name: str) -> Any:
            return getattr(embedder(), name)

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            raise EmbedderError("away")

    dependencies: Any = replace(build_turn_dependencies(), embedder=Away())
    with pytest.raises(EmbedderError):
        questions_check_store(dependencies=dependencies, now=timezone.now())
    assert CheckQuestion.objects.get().state == "new"
    assert not CheckDay.objects.exists()


def test_without_long_term_memory_nothing_is_told(marked: Memory, settings: Any) -> None:
    settings.LONGTERM_ENABLED = False
    assert check_questions() == {"passed": 0, "failed": 0}
    assert CheckQuestion.objects.get().state == "new"
