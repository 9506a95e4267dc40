"""A write of the turn or its parts fails, whichever it is: the answer still goes out once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection

from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import OutboundPart, Turn
from tests.database import break_connection
from tests.sessions.invariants import check_all
from tests.world import CLIENT, World, message_from

TABLES = ("sessions_app_turn", "sessions_app_outboundpart")


class FailingWrites:
    """PostgreSQL refuses one update of these tables as it does on a full disk."""

    def __init__(self) -> None:
        self._execute("CREATE SEQUENCE IF NOT EXISTS writes_made")
        for table in TABLES:
            self._execute(
                f"CREATE TRIGGER refused BEFORE UPDATE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION refuse_write()"
            )

    @staticmethod
    def _execute(statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    def refuse(self, number: int) -> None:
        """Refuse the update of this number from now on, and no other. 0: count only."""
        self._execute("ALTER SEQUENCE writes_made RESTART")
        self._execute(
            "CREATE OR REPLACE FUNCTION refuse_write() RETURNS trigger LANGUAGE plpgsql AS $$ "
            f"BEGIN IF nextval('writes_made') = {number} THEN "
            "RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END IF; "
            "RETURN NEW; END $$"
        )

    def made(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT last_value FROM writes_made")
            (number,) = cursor.fetchone()
        return int(number)

    def remove(self) -> None:
        for table in TABLES:
            self._execute(f"DROP TRIGGER IF EXISTS refused ON {table}")


@pytest.fixture
def writes(transactional_db: None) -> Iterator[FailingWrites]:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE FUNCTION refuse_write() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "BEGIN RETURN NEW; END $$"
        )
    made = FailingWrites()
    yield made
    made.remove()


def test_one_failed_write_loses_and_doubles_no_answer(world: World, writes: FailingWrites) -> None:
    world.say(CLIENT, "before")
    writes.refuse(0)
    world.say(CLIENT, "counted")
    most = writes.made()
    assert most > 3
    for number in range(1, most + 1):
        before = len(world.provider.sent)
        world.receive(message_from(CLIENT, f"write {number} fails"))
        writes.refuse(number)
        # The job of the worker fails, and the sweep takes its turn up again.
        with suppress(OperationalError):
            world.work()
        called = len(world.provider.sent) - before
        state = Turn.objects.latest("id").state
        # ``sending`` says that it may have gone out: it must not say so of what never did.
        assert called or state not in ("sending", "unconfirmed"), number
        assert called or not OutboundPart.objects.filter(state="sending").exists(), number
        writes.refuse(0)
        Turn.objects.update(not_before=None, lease_until=None)
        world.work()
        assert len(world.provider.sent) - before == 1, number
        assert world.provider.sent[-1].text == f"answer to: write {number} fails"


# The connection to the database ends while an answer is made, as in a restart of PostgreSQL.


@pytest.fixture
def breaking(world: World) -> Callable[[int], None]:
    """Lets the first calls of the chat model end the connection, as many as are asked for."""

    def prepare(times: int) -> None:
        left = [None] * times

        def answer(request: ChatRequest) -> str:
            if left:
                left.pop()
                break_connection()
            return f"answer to: {request.messages[-1].content}"

        world.use(chat_model=ScriptedChatModel(answer))

    return prepare


@pytest.mark.django_db(transaction=True)
def test_the_answer_is_made_again_at_once(world: World, breaking: Callable[[int], None]) -> None:
    breaking(1)
    world.receive(message_from(CLIENT, "Are you there?"))
    world.receive(message_from(CLIENT, "And now?"))
    world.work()
    assert [part.text for part in world.provider.sent] == [
        "answer to: Are you there?",
        "answer to: And now?",
    ]
    first = Turn.objects.earliest("id")
    assert (first.state, first.attempts, first.lease_token) == ("sent", 2, None)
    check_all()


class Breaking:
    """Ends the connection before the statement of this number, and before no other."""

    def __init__(self) -> None:
        self.number = self.left = 0

    def __call__(self, execute: Any, *statement: Any) -> Any:
        self.number += 1
        if self.number == self.left:
            break_connection()
        return execute(*statement)


@pytest.mark.django_db(transaction=True)
def test_no_chat_waits_for_its_lease_wherever_the_connection_ends(world: World) -> None:
    """Two messages of a burst, which are looked at before an answer is begun."""
    world.with_answer_rules(burst_gap=timedelta(seconds=5))
    breaking = Breaking()
    most, number = 1, 0
    while number < min(most, 24):
        before = len(world.provider.sent)
        world.receive(*(message_from(CLIENT, f"{number}: {text}") for text in ("Are you", "open?")))
        breaking.number, breaking.left = 0, number
        with connection.execute_wrapper(breaking), suppress(OperationalError):
            world.work()
        most = max(most, breaking.number)
        # Turns are looked for again, after the pause of a retry; no lease has ended meanwhile.
        connection.close()
        Turn.objects.update(not_before=None)
        world.work()
        sent = [part.text for part in world.provider.sent[before:]]
        assert sent == [f"answer to: {number}: open?"], number
        number += 1
    assert number > 20


@pytest.mark.django_db(transaction=True)
def test_a_turn_that_always_fails(world: World, breaking: Callable[[int], None]) -> None:
    breaking(10)
    world.receive(message_from(CLIENT, "Break it"))
    world.work()
    (sent,) = world.provider.sent
    assert sent.text.startswith("Sorry")
    assert [each.state for each in Turn.objects.order_by("id")] == ["deferred", "sent"]
