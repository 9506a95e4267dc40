"""The dashboard's figures are what a plain count over the tables says, whatever happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from datetime import timezone as zones
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.utils import timezone
from django_q.models import Schedule

from memories_app.models import Memory
from memoryproject.foundation.admin_kit.periods import (
    UnknownSpanError,
    period_named,
    span_key,
    span_of,
)
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.llm.base import model_tokens
from memoryproject.foundation.process.narrowing import present
from memoryproject.staff_site import tasks
from memoryproject.staff_site.dashboard.figures import figures_of, usual_until
from memoryproject.staff_site.dashboard.rollups import (
    SUMS,
    quarters_recount,
    rollups_recount,
    slots_read,
)
from memoryproject.staff_site.models import Day, Mark, Quarter
from sessions_app.forgetting.execute import ForgetDependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import AnswerRating, ForgetReceipt, Message, Turn, TurnReplay
from sessions_app.schedules import schedules_install
from sessions_app.turns.pauses import chat_pause
from sessions_app.turns.rerun import turn_rerun
from tests.dashboard.counting import assert_right
from tests.events import edit, revocation
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, asked, message_from

JERUSALEM = ZoneInfo("Asia/Jerusalem")
CHANGES = ((3, 26), (3, 27), (10, 25))


def forget_tools(world: World) -> ForgetDependencies:
    return ForgetDependencies(world.dependencies.embedder, world.dependencies.chat_memory)


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


@pytest.mark.django_db
def test_nothing_is_all_zeros() -> None:
    found = figures_of(period_named("30", now=timezone.now()))
    assert found.is_empty
    assert len(found.slots) == 30
    assert found.whole.p50 is None
    assert_right()


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
    object_forget(
        kind="memory", object_id=Memory.objects.get().pk, dependencies=forget_tools(world)
    )
    assert_right()
    spoken = Message.objects.get(content="good morning")
    object_forget(kind="message", object_id=spoken.pk, dependencies=forget_tools(world))
    assert_right()
    object_forget(kind="chat", object_id=world.chat(CLIENT).pk, dependencies=forget_tools(world))
    figures = figures_of(period_named("today", now=timezone.now())).whole
    assert (figures.chats, figures.receipts, figures.memories_added) == (1, 3, 0)
    assert figures.memories_forgotten >= 1
    assert_right()


def test_edits_and_revocations(world: World) -> None:
    event = message_from(CLIENT, "good mornign")
    world.receive(event)
    world.work()
    rollups_recount(now=timezone.now(), most_seconds=60)
    world.receive(edit(event.provider_message_id, "good morning"))
    assert_right()
    world.receive(revocation(event.provider_message_id))
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


def test_chats_that_turn_out_to_be_one(world: World) -> None:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "hello")
    rollups_recount(now=timezone.now(), most_seconds=60)
    with transaction.atomic():
        chat_merge(world.chat(CLIENT), world.chat(OTHER_CLIENT))
    assert figures_of(period_named("today", now=timezone.now())).whole.chats == 1
    assert_right()


@pytest.mark.parametrize(
    ("zone", "now"),
    [
        # Jerusalem goes to summer time at 2 on 27 March 2026, back on 25 October.
        (JERUSALEM, datetime(2026, 3, 27, 12, tzinfo=zones.utc)),
        (JERUSALEM, datetime(2026, 3, 28, 12, tzinfo=zones.utc)),
        (JERUSALEM, datetime(2026, 10, 25, 12, tzinfo=zones.utc)),
        (JERUSALEM, datetime(2026, 10, 26, 12, tzinfo=zones.utc)),
        # Where there is no midnight on that day, and where half an hour is turned.
        (ZoneInfo("Asia/Beirut"), datetime(2026, 3, 29, 12, tzinfo=zones.utc)),
        (ZoneInfo("Australia/Lord_Howe"), datetime(2026, 4, 4, 15, tzinfo=zones.utc)),
        (ZoneInfo("Asia/Kathmandu"), datetime(2026, 1, 1, 12, tzinfo=zones.utc)),
    ],
)
def test_at_the_borders_of_days(world: World, zone: ZoneInfo, now: datetime) -> None:
    for _ in range(8):
        world.say(CLIENT, "hello")
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


def test_days_of_changes_have_their_hours() -> None:
    days = [datetime(2026, month, day, 12, tzinfo=zones.utc) for month, day in CHANGES]
    with timezone.override(JERUSALEM):
        lengths = [len(period_named("today", now=day).borders) - 1 for day in days]
    assert lengths == [24, 23, 25]


@pytest.mark.django_db
def test_a_stretch_is_named_and_found_again() -> None:
    now = timezone.now()
    period = period_named("today", now=now)
    assert span_of("today", now=now) == (period.start, period.end)
    assert span_of(span_key(period.start, period.end), now=now) == (period.start, period.end)
    for wrong in ("", "yesterday", "--", "20261122T0000Z", "00010101T0000Z--99991231T0000Z"):
        with pytest.raises(UnknownSpanError):
            span_of(wrong, now=now)


def test_a_backlog_is_counted_in_pieces(world: World) -> None:
    for number in range(5):
        world.say(CLIENT, "hello")
        moved = timezone.now() - timedelta(days=number + 1)
        newest = Turn.objects.latest("id")
        Turn.objects.filter(pk=newest.pk).update(created_at=moved)
        Message.objects.filter(pk__in=[newest.message_id, newest.reply_id]).update(
            received_at=moved
        )
    marked = Mark.objects.values("quarter").distinct().count()
    assert marked >= 6
    assert quarters_recount(at_once=2) == 2
    # The newest first: it is what staff look at.
    left = Mark.objects.values("quarter").distinct()
    assert left.count() == marked - 2
    assert Quarter.objects.count() <= 2
    assert left.latest("quarter")["quarter"] < timezone.now() - timedelta(hours=12)
    assert_right()
    assert tasks.recount() == 0
    assert not Mark.objects.exists()


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


def test_most_changes_mark_nothing(world: World) -> None:
    world.say(CLIENT, "hello")
    rollups_recount(now=timezone.now(), most_seconds=60)
    Turn.objects.update(lease_owner="somebody", attempts=3)
    Message.objects.update(delivery_status="read", tokens=5)
    Memory.objects.update(told_count=2)
    assert not Mark.objects.exists()


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


@pytest.mark.django_db
def test_the_schedule_is_installed() -> None:
    schedules_install()
    planned = Schedule.objects.get(func="memoryproject.staff_site.tasks.recount")
    assert planned.minutes == 1


def test_prices() -> None:
    prices = {"small": (0.15, 0.6)}
    priced = model_tokens("small-2024-07-18", 2_000_000, 1_000_000, prices)
    assert priced.cost == pytest.approx(0.9)
    assert model_tokens("small", 1_000_000, 0, prices).cost == pytest.approx(0.15)
    assert model_tokens("smaller", 1_000_000, 0, prices).cost is None


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
    object_forget(
        kind="message", object_id=present(known.message_id), dependencies=forget_tools(world)
    )
    assert figures_of(period_named("today", now=now)).whole.unknown == 0
    assert_right()


def rate(turn: Turn, *, is_good: bool) -> None:
    AnswerRating.objects.update_or_create(
        turn=turn,
        user_name="dana",
        defaults={"is_good": is_good, "is_open": not is_good, "rated_at": timezone.now()},
    )


class TestUsual:
    """At 12:00 of a Wednesday in Jerusalem, in winter and after the clocks went forward."""

    NOW = datetime(2026, 11, 25, 12, tzinfo=JERUSALEM)

    @pytest.fixture(autouse=True)
    def in_jerusalem(self, db: None) -> Iterator[None]:
        with timezone.override(JERUSALEM):
            yield

    def test_without_an_earlier_day_nothing_is_compared(self) -> None:
        assert usual_until(self.NOW).days == 0
        quarter(self.NOW, answers=3)
        assert usual_until(self.NOW).days == 0

    def test_in_the_first_week_it_is_yesterday_until_this_time(self) -> None:
        quarter(self.NOW - timedelta(days=1, hours=1), answers=3)
        quarter(self.NOW - timedelta(days=1, hours=-1), answers=50)
        found = usual_until(self.NOW)
        assert (found.days, found.is_yesterday, found.means["answers"]) == (1, True, 3)

    def test_later_it_is_the_mean_of_the_same_weekdays_that_are_known(self) -> None:
        quarter(self.NOW - timedelta(weeks=3, hours=2), answers=6, held=1)
        quarter(self.NOW - timedelta(weeks=2, hours=12), answers=1)
        quarter(self.NOW - timedelta(weeks=1, hours=3), answers=2)
        quarter(self.NOW - timedelta(weeks=1, hours=-1), answers=100)
        quarter(self.NOW - timedelta(days=1), answers=100)
        found = usual_until(self.NOW)
        assert (found.days, found.is_yesterday) == (3, False)
        assert found.means["answers"] == 3
        assert found.means["held"] == pytest.approx(1 / 3)

    def test_days_are_those_of_the_clock_when_it_is_changed(self) -> None:
        now = datetime(2026, 4, 1, 12, tzinfo=JERUSALEM)
        before = datetime(2026, 3, 25, 11, 45, tzinfo=JERUSALEM)
        quarter(before, answers=4)
        quarter(datetime(2026, 3, 25, 12, 0, tzinfo=JERUSALEM), answers=90)
        assert usual_until(now).means["answers"] == 4


def quarter(at: datetime, **figures: int) -> None:
    zeros = dict.fromkeys(SUMS, 0)
    lists: dict[str, list[Any]] = {
        name: []
        for name in (
            *("answer_bins", "answer_counts"),
            *("model_names", "prompt_tokens", "completion_tokens"),
        )
    }
    Quarter.objects.create(starts_at=at, **{**zeros, **figures}, **lists)
