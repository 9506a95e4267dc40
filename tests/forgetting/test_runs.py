"""Staff's choices are forgotten in the background: once, with one receipt each, whatever happens
meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.conversations.chat_addresses import addresses_lock
from sessions_app.conversations.preview_recorder import PreviewRecorder
from sessions_app.forgetting.runs import (
    MAX_ATTEMPTS,
    MAX_ITEMS,
    TooManyError,
    drafts_drop,
    run_confirm,
    run_draft,
    run_work,
    runs_abandoned,
)
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Chat, ForgetItem, ForgetReceipt, ForgetRun, Message
from tests.forgetting.dump import left_of
from tests.forgetting.forgetting_tools import dependencies_of
from tests.remembering import remember
from tests.threads import at_once, begin_blocked, elsewhere
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

FACTS = [
    "The gate of the yard opens with the number of the old tram",
    "Liora gets a discount of eleven percent on garden chairs",
    "The spare lamp lies in the third drawer below the counter",
]
STAFF = Actor("staff", name="dana")


def remembered(world: World) -> list[Memory]:
    return [remember(fact, embedder=world.dependencies.embedder) for fact in FACTS]


def chosen(*things: Any) -> list[tuple[str, UUID]]:
    kinds = {Memory: "memory", Message: "message", Chat: "chat"}
    return [(kinds[type(thing)], thing.pk) for thing in things]


def confirmed(*things: Any) -> ForgetRun:
    run = run_draft(chosen=chosen(*things), asked_by="dana")
    assert run_confirm(run_id=run.pk, actor=STAFF, enqueue=lambda _: None)
    return run


def work(world: World, run: ForgetRun, **options: Any) -> int:
    options.setdefault("enqueue", lambda _: None)
    return run_work(run_id=run.pk, dependencies=dependencies_of(world), **options)


def states(run: ForgetRun) -> list[str]:
    return list(run.items.order_by("number").values_list("state", flat=True))


def test_each_thing_is_forgotten_with_a_receipt(world: World) -> None:
    memories = remembered(world)
    run = confirmed(*memories)
    assert work(world, run) == 3
    run.refresh_from_db()
    assert (run.state, run.total, run.done, run.failed) == ("done", 3, 3, 0)
    assert run.finished_at is not None
    receipts = [item.receipt for item in run.items.select_related("receipt")]
    assert [receipt.object_id for receipt in receipts if receipt] == [each.pk for each in memories]
    assert {receipt.actor for receipt in receipts if receipt} == {"dana"}
    assert left_of(FACTS) == []
    event = AuditEvent.objects.get(action="forget.confirm")
    assert (event.actor, event.details) == ("dana", {"things": 3})


def test_a_draft_forgets_nothing_and_goes_after_a_day(world: World) -> None:
    memories = remembered(world)
    run = run_draft(chosen=chosen(*memories), asked_by="dana")
    assert work(world, run) == 0
    drafts_drop(timezone.now())
    assert runs_abandoned(timezone.now()) == []
    assert ForgetRun.objects.exists()
    assert Memory.objects.count() == 3
    ForgetRun.objects.update(created_at=timezone.now() - timedelta(hours=25))
    drafts_drop(timezone.now())
    assert not ForgetRun.objects.exists()


def test_two_clicks_start_one_run(world: World) -> None:
    run = run_draft(chosen=chosen(*remembered(world)), asked_by="dana")
    enqueued: list[UUID] = []
    begun = [run_confirm(run_id=run.pk, actor=STAFF, enqueue=enqueued.append) for _ in range(2)]
    assert begun == [True, False]
    assert enqueued == [run.pk]
    assert AuditEvent.objects.filter(action="forget.confirm").count() == 1


def test_nothing_and_too_much_are_refused() -> None:
    with pytest.raises(ValueError, match="Nothing"):
        run_draft(chosen=[], asked_by="dana")
    with pytest.raises(TooManyError, match="at most"):
        run_draft(chosen=[("memory", uuid4()) for _ in range(MAX_ITEMS + 1)], asked_by="dana")
    assert not ForgetRun.objects.exists()


def test_what_one_worker_left_another_goes_on_with(world: World) -> None:
    run = confirmed(*remembered(world))
    enqueued: list[UUID] = []
    assert work(world, run, seconds=0, enqueue=enqueued.append) == 1
    assert states(run) == ["forgotten", "waiting", "waiting"]
    assert enqueued == [run.pk]
    assert work(world, run) == 2
    assert ForgetReceipt.objects.count() == 3


def test_a_worker_that_lost_its_lease_forgets_nothing_more(world: World) -> None:
    memories = remembered(world)
    run = confirmed(*memories)

    class Robber(PreviewRecorder):
        def record(self, kind: object, key: object, text: str = "", *, left: str = "") -> None:
            ForgetRun.objects.update(lease_token=uuid4())

    dependencies = dependencies_of(world, recorder=Robber(most=1))
    run_work(run_id=run.pk, dependencies=dependencies, enqueue=lambda _: None)
    assert states(run) == ["waiting"] * 3
    assert Memory.objects.count() == 3
    assert not ForgetReceipt.objects.exists()


def test_a_thing_over_which_workers_die_is_left(world: World) -> None:
    run = confirmed(*remembered(world))
    ForgetItem.objects.filter(number=2).update(attempts=MAX_ATTEMPTS)
    work(world, run)
    assert states(run) == ["forgotten", "failed", "forgotten"]
    run.refresh_from_db()
    assert (run.state, run.done, run.failed) == ("done", 3, 1)
    assert Memory.objects.get().content == FACTS[1]


def test_a_fault_is_told_by_its_kind_and_holds_up_no_other(world: World) -> None:
    memories = remembered(world)
    run = confirmed(*memories)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE EXCEPTION 'not %', OLD.content; END$$"
        )
        cursor.execute(
            "CREATE TRIGGER refuse BEFORE DELETE ON memories_app_memory FOR EACH ROW "
            f"WHEN (OLD.memory_id = '{memories[0].pk}') EXECUTE FUNCTION refuse()"
        )
    try:
        work(world, run)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER refuse ON memories_app_memory; DROP FUNCTION refuse()")
    assert states(run) == ["failed", "forgotten", "forgotten"]
    error = run.items.get(number=1).error
    assert error.endswith("Error")
    assert FACTS[0] not in error


def test_two_staff_who_chose_the_same_get_one_receipt_for_it(world: World) -> None:
    first, second, third = remembered(world)
    one, other = confirmed(first, second), confirmed(second, third)
    at_once(partial(work, world, one), partial(work, world, other))
    assert not Memory.objects.exists()
    assert ForgetReceipt.objects.count() == 3
    assert sorted(states(one) + states(other)) == ["forgotten", "forgotten", "forgotten", "gone"]


def test_a_chat_that_was_merged_after_it_was_chosen_is_not_forgotten(world: World) -> None:
    world.say(CLIENT, FACTS[0])
    world.say(OTHER_CLIENT, FACTS[1])
    young = world.chat(OTHER_CLIENT)
    run = confirmed(young)
    with transaction.atomic():
        old = chat_merge(world.chat(CLIENT), young)
    work(world, run)
    item = run.items.get()
    assert (item.state, item.moved_to) == ("moved", old.pk)
    assert Message.objects.filter(content__in=FACTS[:2]).count() == 2
    assert not ForgetReceipt.objects.exists()


def test_a_merge_at_the_same_moment_waits_or_comes_first(world: World) -> None:
    world.say(CLIENT, FACTS[0])
    world.say(OTHER_CLIENT, FACTS[1])
    old, young = world.chat(CLIENT), world.chat(OTHER_CLIENT)
    run = confirmed(young)
    with transaction.atomic():
        addresses_lock([CLIENT, OTHER_CLIENT])
        erasing = begin_blocked(lambda: work(world, run))
        chat_merge(old, young)
    erasing.result()
    assert states(run) == ["moved"]
    assert Message.objects.filter(content__in=FACTS[:2]).count() == 2


def forget_while_it_thinks(world: World, forget: Callable[[], Any]) -> None:
    """The model of this world lets something be forgotten while it makes its first answer."""
    asked: list[ChatRequest] = []

    def answer(request: ChatRequest) -> str:
        asked.append(request)
        if len(asked) == 1:
            elsewhere(forget)
        read = "\n".join(message.content for message in request.messages)
        return f"I know: {FACTS[0]}" if FACTS[0] in read else "I know nothing."

    world.use(chat_model=ScriptedChatModel(answer))


def test_a_person_is_erased_while_a_turn_of_theirs_is_answered(world: World) -> None:
    world.remember(CLIENT, FACTS[0])
    chat = world.chat(CLIENT)
    run = confirmed(chat)
    forget_while_it_thinks(world, lambda: work(world, run))
    assert world.say(CLIENT, "How do I get into the yard?") == []
    assert states(run) == ["forgotten"]
    assert left_of([FACTS[0]]) == []
    assert not Chat.objects.filter(pk=chat.pk).exists()
    # The next one who writes is somebody new, and is answered.
    assert world.say(CLIENT, "How do I get into the yard?") == ["I know nothing."]


def test_a_message_is_forgotten_while_its_own_turn_is_answered(world: World) -> None:
    forgotten: list[ForgetRun] = []

    def forget() -> None:
        forgotten.append(confirmed(Message.objects.get(content=FACTS[0])))
        work(world, forgotten[0])

    forget_while_it_thinks(world, forget)
    assert world.say(CLIENT, FACTS[0]) == []
    assert states(forgotten[0]) == ["forgotten"]
    assert left_of([FACTS[0]]) == []
