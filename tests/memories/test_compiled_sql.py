"""A queryset that is compiled once reads what the queryset itself would read."""

from __future__ import annotations

import tracemalloc
import uuid
from typing import Any, cast

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import BigIntegerField, Exists, F, OuterRef, QuerySet, TextField, UUIDField
from django.forms.models import model_to_dict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.compiled_sql import (
    Given,
    Update,
    compiled,
    compiled_models,
    read_prepared,
    row_add,
    rows_update,
    rows_update_chained,
)
from memoryproject.foundation.errors.stored_errors import ErrorText
from sessions_app.models import ChatAccess, Message, OutboundPart, Turn
from tests.world import CLIENT, World

FACTS = ["Tea costs 100% of 5", "TestCorp pays in 30 days", "The shop opens at 9"]


@pytest.mark.django_db
def test_it_reads_what_the_queryset_reads_with_the_values_of_each_call() -> None:
    memories = [
        Memory.objects.create(content=fact, visibility="owner", fact_key=fact) for fact in FACTS
    ]
    ids = Given("ids", UUIDField(), "(SELECT unnest(%s::uuid[]))")
    read = compiled(
        Memory.objects.filter(pk__in=ids, content__contains=Given("word", TextField()))
        .exclude(content__endswith="100%")
        .order_by("content")
        .values_list("content")
    )
    for word in ("Test", "%", "no such word"):
        for wanted in (memories, memories[:1]):
            keys = [memory.pk for memory in wanted]
            found = [content for (content,) in read_prepared(read, {"ids": keys, "word": word})]
            expected = Memory.objects.filter(pk__in=keys, content__contains=word)
            assert found == list(expected.order_by("content").values_list("content", flat=True))


@pytest.mark.django_db
def test_a_column_that_django_converts_is_refused() -> None:
    with pytest.raises(TypeError, match="Read columns .* of Memory as text"):
        compiled(Memory.objects.values_list("pk", "metadata"))


@compiled_models
def _turns_by_number() -> QuerySet[Turn]:
    """With models beside them, columns that Django converts, and one that is left out."""
    turns = Turn.objects.select_related("chat__access", "message").defer("message__terms")
    turns = turns.annotate(is_sent=Exists(OutboundPart.objects.filter(turn=OuterRef("pk"))))
    return turns.filter(pk__gte=Given("first", BigIntegerField())).order_by("id")


@pytest.mark.django_db
def test_models_are_read_as_the_queryset_reads_them(
    world: World, django_assert_num_queries: Any
) -> None:
    for text in ("hello", "what about the 100%?"):
        world.say(CLIENT, text)
    Turn.objects.update(error=ErrorText("disk_full"), context={"kind": "text", "of": [1, None]})
    first, second = cast("list[Any]", Turn.objects.order_by("id"))
    ChatAccess.objects.create(chat=first.chat, hour_began_at=timezone.now())
    for number, expected in ((0, [first, second]), (second.pk, [second]), (second.pk + 1, [])):
        with django_assert_num_queries(1):
            found: list[Any] = _turns_by_number(first=number)
            beside = [(turn.message.content, turn.chat.access.hour_told) for turn in found]
        assert beside == [(turn.message.content, False) for turn in expected]
        for turn, same in zip(found, expected, strict=True):
            assert model_to_dict(turn) == model_to_dict(same)
            assert (turn.created_at, turn.lease_until) == (same.created_at, same.lease_until)
            assert turn.error.code == "disk_full"
            assert turn.is_sent
            assert turn.message.get_deferred_fields() == {"terms"}
            assert turn.message.terms == same.message.terms
    (turn,) = _turns_by_number(first=second.pk)
    turn.attempts = 7
    turn.save(update_fields=["attempts"])
    assert list(Turn.objects.filter(attempts=7)) == [second]


@pytest.mark.django_db
def test_rows_are_updated_as_the_queryset_updates_them(world: World) -> None:
    for text in ("hello", "and now?"):
        world.say(CLIENT, text)
    first, second = Turn.objects.order_by("id")
    token, message = uuid.uuid4(), first.message
    changes = {
        "lease_token": token,
        "not_before": first.created_at,
        "context": {"kind": "100%", "of": [1, None]},
        "error": ErrorText("disk_full"),
        "attempts": F("attempts") + 1,
        "message": None,
    }
    for _ in range(2):
        free = {"pk": first.pk, "lease_token": None}
        assert rows_update(Turn, free, changes) == 1
        assert rows_update(Turn, free, changes) == 0
        held = {"pk": first.pk, "lease_token": token, "state__in": ("sent", "failed")}
        assert rows_update(Turn, {**held, "state__in": ("failed",)}, {"lease_token": None}) == 0
        assert rows_update(Turn, {**held, "attempts__lt": 2}, {"lease_token": None}) == 0
        first.refresh_from_db()
        assert (first.lease_token, first.not_before) == (token, first.created_at)
        assert (first.context, first.message_id) == ({"kind": "100%", "of": [1, None]}, None)
        assert first.error.code == "disk_full"
        assert first.attempts == 2
        undo = {"lease_token": None, "not_before": None, "attempts": 1, "message": message}
        assert rows_update(Turn, held, undo) == 1
        first.refresh_from_db()
        assert (first.lease_token, first.not_before, first.attempts) == (None, None, 1)
        assert first.message == message
    assert Turn.objects.get(pk=second.pk).context == second.context
    assert rows_update(Turn, {"chat_id": first.chat_id}, {"unstored_text": ""}) == 2
    newer = {"chat_id": first.chat_id, "pk__gt": F("attempts") + first.pk - 1}
    assert rows_update(Turn, newer, {"unstored_text": "newer"}) == 1
    assert Turn.objects.get(unstored_text="newer") == second


@pytest.mark.django_db
def test_a_chained_update_is_made_where_the_first_found_a_row(
    world: World, django_assert_num_queries: Any
) -> None:
    world.say(CLIENT, "hello")
    turn, part = Turn.objects.get(), OutboundPart.objects.get()

    def update(**where: Any) -> int:
        first = Update(Turn, {"pk": turn.pk, **where}, {"attempts": F("attempts") + 1})
        then = Update(OutboundPart, {"pk": part.pk}, {"content": "chained", "state": "sending"})
        with django_assert_num_queries(1):
            return rows_update_chained(first, then)

    assert update(state="failed") == 0
    part.refresh_from_db()
    assert (part.content, part.state) == ("", "sent")
    assert update(state="sent") == 1
    part.refresh_from_db()
    assert (part.content, part.state) == ("chained", "sending")
    part.delete()
    assert update(state="sent") == 1, "the row of the second may be gone"
    turn.refresh_from_db()
    assert turn.attempts == 3


@pytest.mark.django_db(transaction=True)
def test_only_the_commit_of_an_update_itself_may_not_be_awaited(world: World) -> None:
    """Not that of a transaction around it, and none of those that follow."""
    world.say(CLIENT, "hello")

    def is_awaited() -> bool:
        (value,) = read_prepared("SELECT current_setting('synchronous_commit')", {})[0]
        return bool(value != "off")

    with connection.cursor() as cursor:
        # The server of the tests waits for no commit.
        cursor.execute("SET synchronous_commit TO on")
    with CaptureQueriesContext(connection) as queries:
        for awaited in (True, False):
            where, changes = {"attempts__lt": 9}, {"not_before": timezone.now()}
            assert rows_update(Turn, where, changes, is_awaited=awaited) == 1
    assert ["synchronous_commit" in query["sql"] for query in queries] == [False, True]
    assert Turn.objects.get().not_before == changes["not_before"]
    assert is_awaited()
    with transaction.atomic():
        assert rows_update(Turn, where, changes, is_awaited=False) == 1
        assert is_awaited()
    with connection.cursor() as cursor:
        cursor.execute("RESET synchronous_commit")


@pytest.mark.django_db
def test_a_row_is_added_as_its_model_saves_it(world: World) -> None:
    world.say(CLIENT, "hello")
    session = world.session(CLIENT)

    def new(number: int) -> Message:
        return Message(
            session=session,
            chat=session.chat,
            order_num=number,
            role="user",
            content='100% "quoted" \\ שלום',
            timestamp=timezone.now(),
            tokens=3,
            metadata={"of": ["100%", None, {"a": 1}]},
            terms=["a,b", "{}", 'c"d'],
            answers=None,
        )

    added, saved = new(10), new(11)
    row_add(added)
    saved.save(force_insert=True)
    assert not added._state.adding
    for message in (added, saved):
        message.content += "!"
        message.save(update_fields=["content"])
    first, second = (Message.objects.filter(order_num=number).values().get() for number in (10, 11))
    own = {"message_id", "order_num", "timestamp", "received_at"}
    assert {**first, **dict.fromkeys(own)} == {**second, **dict.fromkeys(own)}
    assert first["message_id"] == added.pk
    assert first["timestamp"] == added.timestamp
    with pytest.raises(IntegrityError), transaction.atomic():
        row_add(added)


@pytest.mark.django_db
def test_the_driver_keeps_no_other_statements_with_their_values() -> None:
    read = compiled(Memory.objects.filter(content=Given("text", TextField())).values_list("pk"))
    read_prepared(read, {"text": "nothing"})
    tracemalloc.start()
    for number in range(20):
        assert not Memory.objects.filter(content=f"{number}" + "x" * 1_000_000).exists()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 5_000_000
