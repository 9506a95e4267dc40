"""The replay record stands beside its turn: what reads it, also before there is one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin import site
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.staff_site.models import Mark
from sessions_app.conversations.redact_derived import exposure_of
from sessions_app.forgetting.person_export import person_export
from sessions_app.models import Turn, TurnReplay
from sessions_app.turns.admin.replay import replay_of
from sessions_app.turns.admin.turn_filters import MODEL_FILTER
from sessions_app.turns.turn_api import TurnSerializer
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

EMPTY: dict[str, Any] = {
    "summary_message_id": None,
    "prompt": [],
    "recalled": [],
    "left_out": {},
    "model": "",
    "prompt_tokens": None,
    "completion_tokens": None,
    "timings": {},
}
NAMES = [
    "turn_id",
    "whatsapp_chat",
    "session_id",
    "message_id",
    "reply_message_id",
    "summary_message_id",
    "state",
    "user_role",
    "prompt",
    "recalled",
    "left_out",
    "model",
    "prompt_tokens",
    "completion_tokens",
    "timings",
    "outcome",
    "error_code",
    "error",
    "attempts",
    "asked_at",
    "created_at",
    "finished_at",
]


@pytest.fixture
def waiting(world: World) -> Turn:
    """A turn that nobody has answered yet."""
    world.receive(message_from(CLIENT, "Hello"))
    return Turn.objects.select_related("chat", "replay").get()


def test_a_turn_that_waits_has_no_replay_and_reads_as_an_empty_one(waiting: Turn) -> None:
    assert not TurnReplay.objects.exists()
    with CaptureQueriesContext(connection) as queries:
        told = dict(TurnSerializer(TurnReplay.of(waiting)).data)
    assert len(queries) == 0
    assert list(told) == NAMES
    assert {name: told[name] for name in EMPTY} == EMPTY
    assert told["state"] == "pending"
    shown = replay_of(waiting)
    assert (shown.prompt, shown.recalled, shown.left_out, shown.summary) == ([], [], [], None)
    assert not TurnReplay.objects.exists(), "reading stores nothing"


def test_an_answer_is_stored_with_its_replay(world: World) -> None:
    world.say(CLIENT, "Hello")
    told = TurnSerializer(TurnReplay.of(Turn.objects.get())).data
    assert list(told) == NAMES
    assert told["model"] == "scripted"
    assert told["prompt"] == [message.as_dict() for message in world.prompt()]
    assert told["timings"].keys() >= {"waited_ms", "total_ms"}


def test_the_replay_of_an_earlier_answer_is_replaced(world: World) -> None:
    world.receive(message_from(CLIENT, "Hello"))
    before = {"model": "before", "prompt": [{"role": "user"}], "left_out": {"messages": 3}}
    TurnReplay.objects.create(turn=Turn.objects.get(), prompt_tokens=7, **before)
    world.work()
    replay = TurnReplay.objects.get()
    assert replay.model == "scripted"
    assert replay.prompt_tokens != 7
    assert replay.prompt == [message.as_dict() for message in world.prompt()]
    assert replay.left_out != before["left_out"]


def test_a_person_is_given_each_turn_with_its_replay_in_it(world: World) -> None:
    world.say(CLIENT, "Hello")
    world.receive(message_from(CLIENT, "And?"))
    lines = person_export(chat=world.chat(CLIENT), actor=SYSTEM)
    turns = [line for line in map(json.loads, lines) if line["record"] == "turn"]
    assert [turn["model"] for turn in turns] == ["scripted", ""]
    assert [bool(turn["prompt"]) for turn in turns] == [True, False]
    assert [turn["state"] for turn in turns] == ["sent", "pending"]


def test_where_a_memory_was_told_is_found_in_answers_and_in_lists(world: World) -> None:
    recalled, listed, other = uuid4(), uuid4(), uuid4()
    world.say(CLIENT, "Hello")
    world.say(OTHER_CLIENT, "Hello")
    ours = TurnReplay.objects.filter(turn__chat=world.chat(CLIENT))
    ours.update(recalled=[{"id": str(recalled)}, {"id": str(other)}])
    theirs = TurnReplay.objects.filter(turn__chat=world.chat(OTHER_CLIENT))
    theirs.update(shown=[str(listed), str(recalled)])
    assert exposure_of([recalled, listed]) == {
        world.chat(CLIENT).pk: {recalled},
        world.chat(OTHER_CLIENT).pk: {recalled, listed},
    }
    assert exposure_of([uuid4()]) == {}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


def indexes_used(queries: CaptureQueriesContext, *, off: str = "seqscan") -> set[str]:
    """The indexes by which the statements are answered where the plans in ``off`` are avoided."""
    found: set[str] = set()
    with connection.cursor() as cursor:
        for plan in off.split():
            cursor.execute(f"SET LOCAL enable_{plan} = off")
        for query in list(queries):
            if "sessions_app_turnreplay" in query["sql"]:
                cursor.execute("EXPLAIN (FORMAT JSON) " + query["sql"])
                (plan,) = cursor.fetchone()[0]
                found |= {
                    node["Index Name"] for node in nodes(plan["Plan"]) if "Index Name" in node
                }
    return found


def test_an_index_finds_where_a_memory_was_told(world: World) -> None:
    with CaptureQueriesContext(connection) as queries:
        exposure_of([uuid4()])
    # A GIN index is read into a bitmap. Of so few rows, all could as well be read by their key.
    used = indexes_used(queries, off="seqscan indexscan indexonlyscan nestloop")
    assert "turns_telling" in used


def add_answered_turns(world: World, count: int, model: str) -> None:
    """Add turns by a model, and let PostgreSQL count them: what it assumes of a table that it
    never counted depends on what other tests left there."""
    world.say(CLIENT, "Hello")
    turn = Turn.objects.get()
    turns = [
        Turn(
            chat=turn.chat,
            provider=turn.provider,
            provider_message_id=f"m{number}",
            state="sent",
            asked_at=turn.asked_at,
        )
        for number in range(count)
    ]
    Turn.objects.bulk_create(turns)
    TurnReplay.objects.bulk_create(TurnReplay(turn=each, model=model) for each in turns)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_turn, sessions_app_turnreplay")


def test_an_index_finds_the_turns_of_a_model_newest_first(world: World, rf: RequestFactory) -> None:
    add_answered_turns(world, 500, "another")
    turn_admin = site._registry[Turn]
    request = rf.get("/", {"model": "gpt-4o"})
    chosen = MODEL_FILTER(request, {"model": ["gpt-4o"]}, Turn, turn_admin)
    turns = turn_admin.get_queryset(request).select_related("chat", "replay")
    with CaptureQueriesContext(connection) as queries:
        found = chosen.queryset(request, turns)
        assert found is not None
        list(found.order_by("-id")[:100])
    assert "turns_by_model" in indexes_used(queries)


def test_a_replay_that_changes_marks_the_quarter_of_its_turn(world: World) -> None:
    world.say(CLIENT, "Hello")
    Mark.objects.all().delete()
    TurnReplay.objects.update(left_out={"recalled": 1})
    assert not Mark.objects.exists(), "no figure changes"
    TurnReplay.objects.update(prompt_tokens=1234)
    assert Mark.objects.count() == 1
    Mark.objects.all().delete()
    replay = TurnReplay.objects.get()
    TurnReplay.objects.all().delete()
    replay.save(force_insert=True)
    assert Mark.objects.count() == 1
