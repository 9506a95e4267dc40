"""Sessions that nobody goes on with: expiry, retention, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone as django_timezone
from django_q.models import Schedule

from sessions_app.conversations.session_lifecycle import session_open
from sessions_app.history.clear_session import (
    sessions_archive,
    sessions_due,
    sessions_expire,
    sessions_overdue,
)
from sessions_app.models import Chat, ChatSession, Turn
from sessions_app.schedules import PLANNED, schedules_install
from sessions_app.signals import session_expired
from sessions_app.turns.turn_claims import turn_claim
from tests.sessions.invariants import check_all
from tests.threads import in_threads
from tests.world import CLIENT, World, message_from

DAY = timedelta(hours=24)
SECOND = timedelta(seconds=1)
LAST = datetime(2026, 1, 10, 12, 0, 0, 999_999, tzinfo=timezone.utc)
DUE = datetime(2026, 1, 11, 12, 0, 0, tzinfo=timezone.utc)


def make_session(name: str = CLIENT, last_active: datetime = LAST, **values: object) -> ChatSession:
    chat, _ = Chat.objects.get_or_create(whatsapp_chat=name, defaults={"provider": "cloud"})
    return ChatSession.objects.create(
        chat=chat, created_at=last_active, last_active=last_active, **values
    )


@pytest.fixture
def told() -> Iterator[list[UUID]]:
    """The sessions of which session_expired told."""
    found: list[UUID] = []

    def receiver(session_id: UUID, **_: object) -> None:
        found.append(session_id)

    session_expired.connect(receiver)
    yield found
    session_expired.disconnect(receiver)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("now", "expires"),
    [(DUE - timedelta(microseconds=1), False), (DUE, True), (DUE + SECOND, True)],
)
def test_edge_004_a_session_expires_at_the_second(now: datetime, expires: bool) -> None:
    """EDGE-004: fractions of a second of last_active don't count."""
    session = make_session()
    assert sessions_expire(now=now, timeout=DAY) == int(expires)
    session.refresh_from_db()
    assert session.status == ("expired" if expires else "active")
    assert session.expired_at == (DUE if expires else None)


def test_ac_session_005_the_old_history_is_not_in_the_new_session(world: World) -> None:
    """AC-SESSION-005: a fresh session_id, the old one is expired and its messages stay."""
    world.summarizing(2)
    world.say(CLIENT, "My name is Dana")
    world.sum_up(CLIENT)
    old = world.session(CLIENT)
    ChatSession.objects.update(last_active=django_timezone.now() - DAY)
    world.say(CLIENT, "Hello again")
    new = world.session(CLIENT)
    assert new.pk != old.pk
    assert [message.content for message in world.prompt()[1:]] == ["Hello again"]
    assert "Summary of the conversation" not in world.prompt()[0].content
    old.refresh_from_db()
    assert old.status == "expired"
    assert old.messages.count() == 3


@pytest.mark.parametrize("state", ["pending", "running", "replied", "sending"])
def test_edge_009_a_session_is_not_expired_while_a_turn_is_open(world: World, state: str) -> None:
    """EDGE-009: first the answer is sent, then the session expires."""
    world.receive(message_from(CLIENT, "Anybody there?"))
    Turn.objects.update(state=state)
    later = django_timezone.now() + DAY + SECOND
    assert sessions_expire(now=later, timeout=DAY) == 0
    Turn.objects.update(state="pending")
    world.work()
    ChatSession.objects.update(last_active=later - DAY)
    assert sessions_expire(now=later, timeout=DAY) == 1


def test_edge_009_a_message_joins_the_session_in_which_a_worker_is_answering(world: World) -> None:
    world.receive(message_from(CLIENT, "Anybody there?"))
    session = world.session(CLIENT)
    lease = turn_claim(chat_id=session.chat_id)
    assert lease is not None
    later = django_timezone.now() + DAY + SECOND
    assert session_open(chat=session.chat, now=later, timeout=DAY).pk == session.pk
    # A dead worker's turn holds nothing up.
    Turn.objects.update(lease_until=django_timezone.now() - Turn.lease_length)
    assert session_open(chat=session.chat, now=later, timeout=DAY).pk != session.pk


@pytest.mark.django_db
def test_a_missed_schedule_catches_up_whatever_was_missed() -> None:
    for number in range(12):
        make_session(f"1555010{number:04}@c.us", LAST - timedelta(days=number * 40))
    make_session("15550200000@c.us", DUE)
    assert sessions_expire(now=DUE, timeout=DAY, batch=5) == 12
    assert ChatSession.objects.get(status="active").last_active == DUE
    retention = timedelta(days=30)
    assert sessions_archive(now=DUE, older_than=retention, batch=5) == 11
    assert sessions_archive(now=DUE, older_than=retention) == 0
    assert sessions_expire(now=DUE, timeout=DAY) == 0
    check_all()


@pytest.mark.django_db
def test_thirty_days_after_its_end_a_session_is_archived_to_the_second() -> None:
    retention = timedelta(days=30)
    session = make_session(status="expired", expired_at=DUE)
    assert sessions_archive(now=DUE + retention - SECOND, older_than=retention) == 0
    assert sessions_archive(now=DUE + retention, older_than=retention) == 1
    session.refresh_from_db()
    assert (session.status, session.expired_at) == ("archived", DUE)


def test_archived_messages_are_still_recalled(world: World) -> None:
    world.say(CLIENT, "My daughter Noa is allergic to peanuts")
    past = django_timezone.now() - timedelta(days=60)
    ChatSession.objects.update(last_active=past)
    sessions_expire(now=django_timezone.now(), timeout=DAY)
    sessions_archive(now=django_timezone.now(), older_than=timedelta(days=30))
    assert ChatSession.objects.get().status == "archived"
    assert "peanuts" in world.seen_by_model(CLIENT, "What is Noa allergic to?")


class TestTheSignal:
    """session_expired: once for each session, on every way to its end, after the commit."""

    @pytest.mark.django_db(transaction=True)
    def test_by_the_schedule(self, told: list[UUID]) -> None:
        sessions = [make_session(f"1555010{number:04}@c.us") for number in range(3)]
        sessions_expire(now=DUE, timeout=DAY, batch=2)
        sessions_expire(now=DUE, timeout=DAY)
        assert sorted(told) == sorted(session.pk for session in sessions)

    def test_by_reset(
        self, world: World, told: list[UUID], django_capture_on_commit_callbacks: object
    ) -> None:
        world.say(CLIENT, "hello")
        old = world.session(CLIENT)
        with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
            world.receive(message_from(CLIENT, "/reset"))
        assert told == [old.pk]
        assert ChatSession.objects.get(pk=old.pk).status == "expired"

    @pytest.mark.django_db(transaction=True)
    def test_a_failing_receiver(self, told: list[UUID], caplog: pytest.LogCaptureFixture) -> None:
        def broken(**_: object) -> None:
            raise RuntimeError("no card today")

        session_expired.connect(broken)
        try:
            session = make_session()
            assert sessions_expire(now=DUE, timeout=DAY) == 1
        finally:
            session_expired.disconnect(broken)
        assert told == [session.pk]
        assert "no card today" in caplog.text

    @pytest.mark.django_db(transaction=True)
    def test_two_clusters_at_once_do_each_session_once(self, told: list[UUID]) -> None:
        for number in range(200):
            make_session(f"1555010{number:04}@c.us")
        counts = in_threads(lambda: sessions_expire(now=DUE, timeout=DAY, batch=7), 4)
        # Who finds all that is left locked by others leaves it to them.
        assert sum(counts) + sessions_expire(now=DUE, timeout=DAY) == 200
        assert len(told) == len(set(told)) == 200


@pytest.mark.django_db
def test_what_is_due_is_found_by_an_index_among_many_sessions() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sessions_app_chat (id, whatsapp_chat, provider, number_id, is_group, "
            "client_name, client_phone, language, created_at, updated_at) "
            "SELECT gen_random_uuid(), number || '@c.us', 'cloud', '', false, '', '', '', "
            "now(), now() FROM generate_series(1, 20000) number"
        )
        cursor.execute(
            "INSERT INTO sessions_app_chatsession (session_id, chat_id, status, created_at, "
            "last_active, expired_at, message_counter, total_tokens, window_start, "
            "summarized_until) "
            "SELECT gen_random_uuid(), id, 'archived', now(), now(), now(), 0, 0, 1, 0 "
            "FROM sessions_app_chat"
        )
        cursor.execute("ANALYZE sessions_app_chatsession")
    make_session()
    due = sessions_due(now=DUE, timeout=DAY)[:500]
    assert "sessions_to_expire" in due.explain()
    old = sessions_overdue(now=DUE, older_than=DAY)[:500]
    assert "sessions_to_archive" in old.explain()


@pytest.mark.django_db
class TestTheCommand:
    def test_it_does_both_and_tells_how_many(self, capsys: pytest.CaptureFixture[str]) -> None:
        make_session()
        call_command("expire_sessions", "--dry-run", "--json")
        assert capsys.readouterr().out == '{"expired": 1, "archived": 0}\n'
        assert ChatSession.objects.get().status == "active"
        call_command("expire_sessions")
        # Expired as of long ago, it is archived at once.
        assert capsys.readouterr().out == "1 sessions expired, 1 archived.\n"
        assert ChatSession.objects.get().status == "archived"


@pytest.mark.django_db
def test_schedules_are_installed_once_and_kept_up_to_date() -> None:
    assert all(schedules_install().values())
    Schedule.objects.filter(name="Expire sessions").update(minutes=99)
    Schedule.objects.create(name="Old work", func="sessions_app.tasks.gone", schedule_type="I")
    Schedule.objects.create(name="Not ours", func="elsewhere.task", schedule_type="I")
    assert not any(schedules_install().values())
    names = sorted(Schedule.objects.values_list("name", flat=True))
    assert names == sorted([*(planned.name for planned in PLANNED), "Not ours"])
    assert Schedule.objects.get(name="Expire sessions").minutes == 1
