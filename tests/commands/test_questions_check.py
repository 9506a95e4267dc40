"""The questions that staff marked as answered rightly are asked again."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from memories_app.models import Memory
from memories_app.store.change import memory_patch
from memoryproject.foundation.audit.audit_events import SYSTEM
from sessions_app.embedding.facade import embedder
from sessions_app.models import Message, Turn
from sessions_app.turns.answer_review import answer_rate
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db


def check(*options: str) -> Any:
    out = StringIO()
    try:
        call_command("questions_check", "--json", *options, stdout=out)
    except CommandError as error:
        return {**json.loads(out.getvalue()), "error": str(error)}
    return json.loads(out.getvalue())


@pytest.fixture
def marked(world: World) -> Memory:
    world.remember(CLIENT, "The gate code is 4321")
    world.say(CLIENT, "What is the gate code?")
    turn = Turn.objects.order_by("id").last()
    assert turn is not None
    rater = User.objects.create_user("rater")
    answer_rate(turn_id=turn.pk, user=rater, actor=SYSTEM, is_good=True, reason="")
    return Memory.objects.get()


def test_nothing_marked_is_no_failure(world: World) -> None:
    world.say(CLIENT, "What is the gate code?")
    assert check() == {"questions": 0, "lost": [], "percent": 100.0}
    out = StringIO()
    call_command("questions_check", stdout=out)
    assert "nothing to check" in out.getvalue()


def test_a_memory_that_is_not_found_any_more_fails(marked: Memory) -> None:
    assert check() == {"questions": 1, "lost": [], "percent": 100.0}
    said = Message.objects.count()
    change = {"content": "Our bakery sells bread on Sundays"}
    memory_patch(memory_id=marked.pk, changes=change, actor=SYSTEM, embedder=embedder())
    found = check()
    assert found["error"] == "0.0 of 100 are found, fewer than 100."
    assert [row["memory_id"] for row in found["lost"]] == [str(marked.pk)]
    assert "gate" not in json.dumps(found), "people's texts are printed on request only"
    assert found["lost"] == [
        {**row, "turn_id": row["turn_id"]} for row in check("--min", "0")["lost"]
    ]
    (row,) = check("--min", "0", "--texts")["lost"]
    assert row["question"] == "What is the gate code?"
    assert row["memory"] == change["content"]
    assert Message.objects.count() == said


def test_what_was_erased_or_replaced_does_not_count(marked: Memory) -> None:
    Memory.objects.update(status="superseded")
    assert check()["questions"] == 0
