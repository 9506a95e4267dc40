"""The dashboard's figures are what a plain count over the tables says, whatever happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone as zones
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.admin_kit.list_filters import period_named
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.process.narrowing import present
from memoryproject.staff_site.dashboard.figures import figures_of, usual_until
from memoryproject.staff_site.dashboard.rollups import (
    SUMS,
    quarters_recount,
    rollups_recount,
    slots_read,
)
from memoryproject.staff_site.models import Day, Quarter
from sessions_app.models import AnswerRating, ForgetReceipt, Message, Turn, TurnReplay
from sessions_app.turns.rerun import turn_rerun
from sessions_app.turns.turn_claims import chat_pause
from tests.dashboard.counting import assert_right
from tests.events import edit, revocation
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, asked, message_from

JERUSALEM = ZoneInfo("Asia/Jerusalem")


def messages_today() -> int:
    return figures_of(period_named("today", now=timezone.now())).whole.messages


@contextmanager
def transaction_of(other: Any) -> Iterator[Any]:
    """A transaction of another process, as it were; committed at the end of the block."""
    other.set_autocommit(False)
    with other.cursor() as cursor:
        yield cursor
    other.commit()
    other.set_autocommit(True)


def test_a_day_of_conversations(world: World) -> None:
    for number in range(3):
        world.say(CLIENT, f"question {number}")
    world.remember(GODFATHER, "The shop opens at nine")
    world.say(OTHER_CLIENT, "hello")
    world.receive(message_from(CLIENT, "too late", timestamp=timezone.now() - timedelta(days=2)))
    figures = figures_of(period_named("today", now=timezone.now())).whole
    assert (figures.messages, figures.messages_in, figures.messages_out) == (11, 6, 5)
    assert (figures.chats, figures.answers, figures.missed) == (3, 5, 1)
    assert figures.memories_added == 1
    assert figures.tokens_in > 0
    assert_right()
    world.say(CLIENT, "one more after it was counted")
    assert_right()


def test_what_is_forgotten_leaves_the_figures(world: World) -> None:
    world.remember(CLIENT, "My dog is called Rex")
    world.say(CLIENT, "good morning")
    world.say(OTHER_CLIENT, "hello")
    rollups_recount(now=timezone.now(), most_seconds=60)
    world.forget("memory", Memory.objects.get().pk)
    assert_right()
    spoken = Message.objects.get(content="good morning")
    world.forget("message", spoken.pk)
    assert_right()
    event = message_from(CLIENT, "good mornign")
    world.receive(event)
    world.work()
    rollups_recount(now=timezone.now(), most_seconds=60)
    world.receive(edit(event.provider_message_id, "good morning"))
    assert_right()
    world.receive(revocation(event.provider_message_id))
    assert_right()
    world.forget("chat", world.chat(CLIENT).pk)
    figures = figures_of(period_named("today", now=timezone.now())).whole
    assert (figures.chats, figures.receipts, figures.memories_added) == (1, 3, 0)
    assert figures.memories_forgotten >= 1
    assert_right()


def test_a_turn_that_ends_days_later(world: World) -> None:
    """It counts where it was asked for."""
    world.say(CLIENT, "hello")
    asked = timezone.now() - timedelta(days=3)
    Turn.objects.update(created_at=asked, state="failed", finished_at=asked)
    assert_right()
    turn = Turn.objects.get()
    turn.parts.update(state="failed", content="an answer that didn't get out")
    turn_rerun(
        turn_id=turn.pk,
        actor=SYSTEM,
        max_age=timedelta(days=1),
        enqueue=world.enqueued.append,
        now=timezone.now(),
    )
    assert_right()
    world.work()
    assert Turn.objects.get().state == "sent"
    assert_right()
    in_a_week = figures_of(period_named("7", now=timezone.now()))
    assert [slot.answers for slot in in_a_week.slots] == [0, 0, 0, 1, 0, 0, 0]
    assert present(in_a_week.whole.p50) > 200_000


BORDERS = [
    # Jerusalem goes to summer time at 2 on 27 March 2026, back on 25 October.
    (JERUSALEM, datetime(2026, 3, 27, 12, tzinfo=zones.utc)),
    (JERUSALEM, datetime(2026, 3, 28, 12, tzinfo=zones.utc)),
    (JERUSALEM, datetime(2026, 10, 25, 12, tzinfo=zones.utc)),
    (JERUSALEM, datetime(2026, 10, 26, 12, tzinfo=zones.utc)),
    # Where there is no midnight on that day, and where half an hour is turned.
    (ZoneInfo("Asia/Beirut"), datetime(2026, 3, 29, 12, tzinfo=zones.utc)),
    (ZoneInfo("Australia/Lord_Howe"), datetime(2026, 4, 4, 15, tzinfo=zones.utc)),
    (ZoneInfo("Asia/Kathmandu"), datetime(2026, 1, 1, 12, tzinfo=zones.utc)),
]


def test_at_the_borders_of_days(world: World) -> None:
    for _ in range(8):
        world.say(CLIENT, "hello")
    for zone, now in BORDERS:
        with transaction.atomic():
            assert_right_at_borders(zone, now)
            transaction.set_rollback(True)


def assert_right_at_borders(zone: ZoneInfo, now: datetime) -> None:
    with timezone.override(zone):
        borders = period_named("today", now=now).borders
        assert borders[0].astimezone(zone).date() == now.astimezone(zone).date()
        before = (borders[0] - timedelta(microseconds=1)).astimezone(zone).date()
        assert before == now.astimezone(zone).date() - timedelta(days=1)
        least = timedelta(microseconds=1)
        moments = [
            moment
            for border in (borders[0], borders[-1])
            for moment in (border - least, border, border + timedelta(minutes=15) - least)
        ]
        moments += [borders[2], borders[3] - least]
        for turn, moment in zip(Turn.objects.order_by("id"), moments, strict=True):
            Turn.objects.filter(pk=turn.pk).update(
                created_at=moment, finished_at=moment + timedelta(seconds=turn.pk % 7)
            )
            Message.objects.filter(pk__in=[turn.message_id, turn.reply_id]).update(
                received_at=moment
            )
        assert_right(now)
        figures = figures_of(period_named("today", now=now)).whole
        # PostgreSQL has its own opinion of what that day is.
        day = now.astimezone(zone).date()
        assert figures.messages == Message.objects.filter(received_at__date=day).count() == 10
        assert figures.answers == Turn.objects.filter(created_at__date=day).count() == 5


def test_a_month_is_read_from_its_days(world: World) -> None:
    world.say(CLIENT, "hello")
    now = timezone.now()
    borders = period_named("30", now=now).borders
    assert slots_read(borders).fresh == list(range(30))
    rollups_recount(now=now, most_seconds=60)
    assert slots_read(borders).fresh == [29]
    assert Day.objects.count() == 29
    Message.objects.filter(role="user").update(received_at=borders[10])
    assert slots_read(borders).fresh == [10, 29]
    assert_right()
    assert slots_read(borders).slots[10]["chats"] == 1
    # Tomorrow the days are others, and what nobody asks for any more goes.
    rollups_recount(now=now + timedelta(days=1), most_seconds=60)
    assert Day.objects.count() == 29
    assert Day.objects.latest("starts_at").starts_at == borders[29]


def test_many_rows_at_once_and_a_table_emptied(world: World) -> None:
    world.say(CLIENT, "hello")
    _receipts(world)
    rollups_recount(now=timezone.now(), most_seconds=60)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE sessions_app_forgetreceipt CASCADE")
    assert_right()
    assert figures_of(period_named("30", now=timezone.now())).whole.receipts == 0
    _receipts(world)
    assert figures_of(period_named("30", now=timezone.now())).whole.memories_forgotten == 12
    assert_right()


def _receipts(world: World) -> None:
    ForgetReceipt.objects.bulk_create(
        ForgetReceipt(
            kind="memory",
            object_id=world.chat(CLIENT).pk,
            actor_kind="staff",
            content_hash="x",
            swept={"memories_app_memory": 3},
            forgotten_at=timezone.now() - timedelta(days=days),
        )
        for days in range(4)
    )


@pytest.mark.django_db(transaction=True)
def test_two_recounts_at_once_and_a_change_meanwhile(transactional_db: None, world: World) -> None:
    world.say(CLIENT, "hello")
    other = connection.copy()
    try:
        # Another process counts: this one leaves the work to it, and its figures are right.
        with transaction_of(other) as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [0xDA58B0A2D])
            assert quarters_recount() == 0
            assert messages_today() == 2
        # A message is deleted, not yet committed, while the quarter is counted.
        with transaction_of(other) as cursor:
            cursor.execute("DELETE FROM sessions_app_messageembedding")
            cursor.execute("UPDATE sessions_app_turn SET reply_id = NULL")
            cursor.execute("DELETE FROM sessions_app_message WHERE role = 'assistant'")
            assert quarters_recount() >= 1
            assert messages_today() == 2
    finally:
        other.close()
    assert messages_today() == Message.objects.count() == 1
    assert_right()


def test_how_well_the_assistant_did(world: World) -> None:
    now = timezone.now()
    world.with_answer_rules(min_similarity=0.0)
    world.remember(OTHER_CLIENT, "Parking is behind the house")
    known = asked(world, "Where can I park?", OTHER_CLIENT)
    unknown = asked(world, "Do you deliver to Haifa?")
    asked(world, "Thank you!")
    rate(known, is_good=True)
    rate(unknown, is_good=False)
    chat_pause(chat_id=world.chat(CLIENT).pk, until=None, by=None, actor=SYSTEM, now=now)
    asked(world, "Is anybody there who can help me?")
    figures = figures_of(period_named("today", now=now)).whole
    assert (figures.held, figures.unknown) == (1, 1)
    assert (figures.rated_good, figures.rated_bad) == (1, 1)
    assert_right()
    # What changes later is counted in the quarter of the answer.
    rate(unknown, is_good=True)
    assert_right()
    AnswerRating.objects.all().delete()
    assert_right()
    TurnReplay.objects.filter(turn=known).update(recalled=[])
    assert figures_of(period_named("today", now=now)).whole.unknown == 2
    assert_right()
    Message.objects.filter(turn=unknown).update(terms=[])
    assert figures_of(period_named("today", now=now)).whole.unknown == 1
    assert_right()
    world.forget("message", known.message_id)
    assert figures_of(period_named("today", now=now)).whole.unknown == 0
    assert_right()


def rate(turn: Turn, *, is_good: bool) -> None:
    AnswerRating.objects.update_or_create(
        turn=turn,
        user_name="dana",
        defaults={"is_good": is_good, "is_open": not is_good, "rated_at": timezone.now()},
    )


@pytest.mark.django_db
def test_what_is_usual_by_this_time() -> None:
    """At 12:00 of a Wednesday in Jerusalem, in winter."""
    now = datetime(2026, 11, 25, 12, tzinfo=JERUSALEM)
    with timezone.override(JERUSALEM):
        quarter(now, answers=3)
        assert usual_until(now).days == 0, "without an earlier day nothing is compared"
        # In the first week it is yesterday until this time.
        quarter(now - timedelta(days=1, hours=1), answers=3)
        quarter(now - timedelta(days=1, hours=-1), answers=50)
        found = usual_until(now)
        assert (found.days, found.is_yesterday, found.means["answers"]) == (1, True, 3)
        # Later it is the mean of the same weekdays that are known.
        quarter(now - timedelta(weeks=3, hours=2), answers=6, held=1)
        quarter(now - timedelta(weeks=2, hours=12), answers=1)
        quarter(now - timedelta(weeks=1, hours=3), answers=2)
        quarter(now - timedelta(weeks=1, hours=-1), answers=100)
        found = usual_until(now)
        assert (found.days, found.is_yesterday) == (3, False)
        assert found.means["answers"] == 3
        assert found.means["held"] == pytest.approx(1 / 3)
        # By the clock, also when it is changed in between.
        quarter(datetime(2026, 3, 25, 11, 45, tzinfo=JERUSALEM), answers=4)
        quarter(datetime(2026, 3, 25, 12, 0, tzinfo=JERUSALEM), answers=90)
        summer = datetime(2026, 4, 1, 12, tzinfo=JERUSALEM)
        assert usual_until(summer).means["answers"] == 4


def quarter(at: datetime, **figures: int) -> None:
    zeros = dict.fromkeys(SUMS, 0)
    names = ("answer_bins", "answer_counts", "model_names", "prompt_tokens", "completion_tokens")
    lists: dict[str, list[Any]] = {name: [] for name in names}
    Quarter.objects.create(starts_at=at, **{**zeros, **figures}, **lists)
