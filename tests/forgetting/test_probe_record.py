"""The probe can find something, says where, and leaves a record of what it looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from django_q.models import Task

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.retrieval.fragments import Fragments
from sessions_app.forgetting.deletion_plan import MARGIN, DeletionPlan
from sessions_app.forgetting.execute import ForgetDependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.forgetting.probe import Prober, StillFoundError
from sessions_app.forgetting.redact_unscoped import statistics_stale, statistics_values
from sessions_app.forgetting.registry import swept_columns
from sessions_app.models import ForgetReceipt, Message, TurnReplay
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db(transaction=True)

FACT = "The gate of the yard opens with the number of the old tram"


@pytest.fixture
def world(transactional_db: None, rules: Any, dependencies: Any) -> World:
    return World(rules=rules, dependencies=dependencies)


class Watchful(Prober):
    """It looks for a text that nobody has forgotten, as if the sweep had left it out."""

    def probe_unscoped(self, *, texts: Fragments, since: Any) -> None:
        super().probe_unscoped(texts=Fragments(["Good morning to all of you"]), since=since)


def dependencies_of(world: World) -> ForgetDependencies:
    return ForgetDependencies(world.dependencies.embedder, world.dependencies.chat_memory)


def forget(world: World, prober: Prober | None = None) -> ForgetReceipt:
    key = Memory.objects.get().pk
    return object_forget(
        kind="memory", object_id=key, dependencies=dependencies_of(world), prober=prober
    )


def test_the_receipt_tells_what_was_asked_and_read(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, "How do I get into the yard?")
    details = forget(world).probe_details
    assert set(details) == {"columns", "recall", "staff search", "statistics"}
    # As staff and as the chat.
    assert details["recall"]["queries"] == 2
    assert any("memory" in name for name in details["recall"]["looked_at"])
    assert details["columns"]["rows"] > 5
    assert {"sessions_app_message.content", "django_q_task.result"} <= set(
        details["columns"]["looked_at"]
    )
    assert FACT not in str(details)


def test_each_column_that_is_read_through_is_registered_as_swept(world: World) -> None:
    world.remember(CLIENT, FACT)
    names = forget(world).probe_details["columns"]["looked_at"]
    assert {tuple(name.split(".")) for name in names} <= swept_columns()


def test_a_find_takes_the_forgetting_back_and_is_on_record(world: World) -> None:
    world.remember(CLIENT, FACT)
    user = User.objects.create_user("dana")
    LogEntry.objects.create(
        user=user, action_flag=2, object_repr="Good morning to all of you", object_id="1"
    )
    entry = LogEntry.objects.get()
    with pytest.raises(StillFoundError, match=f"log entry {entry.pk}"):
        forget(world, Watchful([FACT], world.dependencies.embedder))
    assert Memory.objects.get().content == FACT
    assert not ForgetReceipt.objects.exists()
    event = AuditEvent.objects.get(action="forget.still_found")
    assert event.object_id == str(Memory.objects.get().pk)
    assert event.details["probe"] == "found"
    assert event.details["where"] == f"It is still told in log entry {entry.pk}."
    assert event.details["probe_details"]["columns"]["rows"] > 0
    assert FACT not in str(event.details)


@pytest.mark.parametrize("place", ["replay", "task", "log"])
def test_whatever_the_sweep_overlooked_is_found(world: World, place: str) -> None:
    world.say(CLIENT, "Good morning")
    if place == "replay":
        TurnReplay.objects.update(prompt=[{"role": "user", "content": f"They said: {FACT}"}])
    elif place == "task":
        now = timezone.now()
        Task.objects.create(
            id="a", name="a", func="a", started=now, stopped=now, result={"said": [FACT]}
        )
    else:
        LogEntry.objects.create(
            user=User.objects.create_user("dana"), action_flag=2, object_repr=FACT, object_id="1"
        )
    prober, texts = Prober([], world.dependencies.embedder), Fragments([FACT])
    since = Message.objects.earliest("received_at").received_at - MARGIN
    plan = DeletionPlan(texts={FACT: None}, chats={world.chat(CLIENT).pk}, since=since)

    def look() -> None:
        prober.probe_chats(plan=plan, texts=texts)
        prober.probe_unscoped(texts=texts, since=since)

    with pytest.raises(StillFoundError, match="It is still told in"):
        look()


def test_values_of_statistics_go_too(world: World) -> None:
    world.remember(CLIENT, FACT)
    world.say(CLIENT, FACT)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_app_memory, sessions_app_message")
    texts = Fragments([FACT])
    # PostgreSQL may have analyzed other tables by itself, whose rows stay.
    analyzed = {Memory._meta.db_table, Message._meta.db_table}
    kept = {
        (table, column)
        for table, column, value in statistics_values()
        if FACT in value and table in analyzed
    }
    assert kept
    assert statistics_stale(statistics_values(), texts) == set()
    Memory.objects.all().delete()
    Message.objects.all().delete()
    assert kept <= statistics_stale(statistics_values(), texts)


def test_after_a_forgetting_no_statistics_hold_it(world: World) -> None:
    world.remember(CLIENT, FACT)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_app_memory, sessions_app_message")
    assert any(FACT in value for _, _, value in statistics_values())
    assert forget(world).probe_details["statistics"]["queries"] == 1
    assert not any(FACT in value for _, _, value in statistics_values())


@pytest.fixture(autouse=True)
def _one_connection_at_the_end() -> Iterator[None]:
    yield
    connection.close()
