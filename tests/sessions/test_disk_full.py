"""A full disk: the person is told, nothing is corrupted, and it goes on with space.

PostgreSQL's own error (53100) is raised by a trigger; tests/processes/test_disk_full.py fills
a real file system.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from memoryproject.foundation.process.storage import (
    SLOTS,
    TIME,
    SharedTimes,
    is_caused_by_full_disk,
    is_disk_full,
)
from memoryproject.staff_site.middleware import StorageFull
from sessions_app.models import Message, Turn
from sessions_app.turns.dependencies import build_storage_notices
from sessions_app.turns.statuses import EVERY_SECONDS, StorageNotices
from tests.database import accept_rows, refuse_rows
from tests.doubles.recording_provider import RecordingProvider
from tests.loopback.graph import GraphServer
from tests.processes.waiting import wait_until
from tests.sessions.invariants import check_all
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

FULL = "⚠️ Cannot save conversation history - system storage full. Please contact administrator."


class AtOnce(Executor):
    """Runs what it is given before it returns."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*args, **kwargs))
        return done


class Disk:
    """The disk as the database sees it."""

    def fill(self) -> None:
        refuse_rows("sessions_app_message")

    def free(self) -> None:
        accept_rows("sessions_app_message")


@pytest.fixture
def disk(transactional_db: None) -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.free()


@pytest.fixture
def told(tmp_path: Path) -> SharedTimes:
    return SharedTimes(tmp_path / "told.times")


@pytest.fixture
def notices(world: World, told: SharedTimes) -> StorageNotices:
    made = StorageNotices(lambda: world.dependencies.providers, AtOnce(), told)
    world.use(storage_notices=made)
    return made


def test_err_session_002_told_once(disk: Disk, world: World, notices: StorageNotices) -> None:
    """ERR-SESSION-002: the provider repeats what was not stored."""
    world.say(CLIENT, "before")
    disk.fill()
    event = message_from(CLIENT, "while it is full")
    for _ in range(3):
        with pytest.raises(OperationalError) as caught:
            world.receive(event)
        assert is_disk_full(caught.value)
        notices.notify_sender(event)
    assert [sent.text for sent in world.provider.sent[1:]] == [FULL]
    assert Message.objects.count() == 2
    check_all()

    disk.free()
    world.receive(event)
    world.work()
    assert world.provider.sent[-1].text == "answer to: while it is full"
    assert [message.order_num for message in world.messages(CLIENT)] == [1, 2, 3, 4]


def test_err_session_002_and_recovery_004_an_answer_that_cannot_be_stored_is_made_again(
    disk: Disk, world: World, notices: StorageNotices, caplog: pytest.LogCaptureFixture
) -> None:
    """RECOVERY-004: the session stays as it was; nothing half-stored, no turn lost, and the
    tries that met the full disk don't count."""
    world.receive(message_from(CLIENT, "Are you there?"))
    before = world.session(CLIENT)
    disk.fill()
    for _ in range(6):
        world.work()
        Turn.objects.update(not_before=None)
    assert [sent.text for sent in world.provider.sent] == [FULL]
    turn = Turn.objects.get()
    assert (turn.state, turn.attempts, turn.lease_token) == ("pending", 0, None)
    after = world.session(CLIENT)
    assert (after.message_counter, after.total_tokens) == (1, before.total_tokens)
    assert any(record.levelno == logging.CRITICAL for record in caplog.records)
    assert "Are you there" not in caplog.text
    check_all()

    disk.free()
    world.work()
    assert [sent.text for sent in world.provider.sent] == [FULL, "answer to: Are you there?"]
    assert Turn.objects.get().state == "sent"


def test_the_notice_speaks_the_language(disk: Disk, world: World, notices: StorageNotices) -> None:
    notices.notify_sender(message_from(CLIENT, "שלום, מה נשמע?"))
    assert "שטח האחסון מלא" in world.provider.sent[0].text


def test_each_chat_is_told_again_after_a_while(world: World, told: SharedTimes) -> None:
    now = 0.0
    notices = StorageNotices(
        lambda: world.dependencies.providers, AtOnce(), told, clock=lambda: now
    )
    for at, who in ((0, CLIENT), (1, CLIENT), (2, OTHER_CLIENT), (EVERY_SECONDS, CLIENT)):
        now = 1e9 + at
        notices.notify_sender(message_from(who, "hello"))
    heard = [sent.to.whatsapp_chat for sent in world.provider.sent]
    assert heard == [CLIENT, OTHER_CLIENT, CLIENT]


def test_a_chat_that_another_process_told_is_not_told_again(world: World, tmp_path: Path) -> None:
    for _ in range(3):
        other = SharedTimes(tmp_path / "shared.times")
        notices = StorageNotices(lambda: world.dependencies.providers, AtOnce(), other)
        notices.notify_sender(message_from(CLIENT, "hello"))
    assert len(world.provider.sent) == 1
    size = (tmp_path / "shared.times").stat().st_size
    assert size == SLOTS * TIME.size, "the file never grows: there is no space for it"


def connections_open() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND backend_type = 'client backend'"
        )
        (count,) = cursor.fetchone()
        return int(count)


def test_a_notice_leaves_no_connection(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    """It is sent in a thread of its own, which asks the database how the provider does."""
    before = connections_open()
    with GraphServer(access_token="a-token") as graph:
        settings.DATA_DIR = tmp_path
        settings.WHATSAPP_CLOUD_API_URL = f"{graph.url}/v24.0"
        settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = graph.phone_number_id
        settings.WHATSAPP_CLOUD_ACCESS_TOKEN = "a-token"
        notices = build_storage_notices.__wrapped__()
        for who in (CLIENT, OTHER_CLIENT):
            notices.notify_sender(message_from(who, "hello"))
        wait_until(lambda: len(graph.sent) == 2, "both are told")
    wait_until(lambda: connections_open() == before, "as many connections as before", seconds=20)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"from_business": True}, 0),
        ({"group_id": "120363000000000001@g.us"}, 0),
        ({"group_id": "120363000000000001@g.us", "mentions_us": True}, 1),
        ({"group_id": "120363000000000001@g.us", "replies_to_us": True}, 1),
    ],
)
def test_only_who_waits_is_told(changes: dict[str, Any], count: int, told: SharedTimes) -> None:
    provider = RecordingProvider(name="cloud")
    notices = StorageNotices(lambda: {"cloud": provider}, AtOnce(), told)
    notices.notify_sender(message_from(CLIENT, "hello", **changes))
    assert len(provider.sent) == count


def test_the_terminal_says_it_too(disk: Disk) -> None:
    disk.fill()
    with pytest.raises(CommandError) as caught:
        call_command("chat", "--message", "hello")
    assert str(caught.value) == FULL


@pytest.mark.parametrize("path", ["/admin/somewhere/", "/api/v1/sessions/"])
def test_a_page_says_it_plainly(path: str) -> None:
    def view(_: HttpRequest) -> HttpResponse:
        return HttpResponse()

    error = OSError(errno.ENOSPC, "No space left on device")
    request = RequestFactory().get(path)
    answer = StorageFull(view).process_exception(request, error)
    assert answer is not None
    assert answer.status_code == 507
    assert b"Nothing that is stored was harmed" in answer.content  # type: ignore[attr-defined]
    assert StorageFull(view).process_exception(request, ValueError()) is None


def test_other_errors_are_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    assert not is_disk_full(OperationalError("the connection was lost"))
    assert not is_caused_by_full_disk(OperationalError("the connection was lost"), tmp_path)
    assert not is_disk_full(OSError(errno.EACCES, "not allowed"))
