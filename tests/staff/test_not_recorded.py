"""What can't be recorded isn't done: here the audit log's table takes no row, as on a full disk.
Each request commits as it does on a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection
from django.test import Client
from django_q.models import Failure, OrmQ, Schedule, Task

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Turn
from tests.jobs import failed_job
from tests.staff.people import PASSWORD, is_in, person, type_password
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db(transaction=True)

NEW = "a-quite-new-password"
USERS = "/admin/auth/user/"
ROOM = "/admin/operations/"
AUDIT_LOG = "audit_auditevent"


@contextmanager
def full(table: str) -> Iterator[None]:
    """Whoever adds a row to the table gets an error that no page knows."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT full_disk CHECK (false) NOT VALID")
    try:
        with pytest.raises(DatabaseError, match="full_disk"):
            yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT full_disk")


@pytest.fixture
def ada(client: Client) -> Client:
    person("ada", "Administrator")
    type_password(client, "ada")
    # What logging in wants sealed isn't what these tests look for.
    OrmQ.objects.all().delete()
    return client


@pytest.fixture
def failed() -> Task:
    return failed_job("cards")


@pytest.mark.parametrize("verb", ["retry", "drop"])
def test_a_failed_job_stays_failed(ada: Client, failed: Task, verb: str) -> None:
    address = f"{ROOM}queue/{failed.id}/{verb}/"
    with full(AUDIT_LOG):
        ada.post(address)
    kept = Failure.objects.get()
    assert (kept.id, kept.func, kept.args) == (failed.id, failed.func, failed.args)
    assert not OrmQ.objects.exists()
    # With room on the disk it goes.
    ada.post(address)
    assert not Failure.objects.exists()


def test_a_job_that_the_queue_refuses_stays_failed(ada: Client, failed: Task) -> None:
    """The queue is a table here."""
    with full("django_q_ormq"):
        ada.post(f"{ROOM}queue/{failed.id}/retry/")
    assert Failure.objects.get().id == failed.id
    assert not AuditEvent.objects.filter(action="job.retry").exists()


def test_neither_schedule_nor_stuck_turn_is_given_to_a_worker(ada: Client, world: World) -> None:
    schedule = Schedule.objects.create(name="Expire", func="sessions_app.tasks.expire_sessions")
    world.receive(message_from(CLIENT, "Good morning"))
    OrmQ.objects.all().delete()
    for path in (f"schedules/{schedule.pk}/run/", f"turns/{Turn.objects.get().pk}/take-up/"):
        with full(AUDIT_LOG):
            ada.post(f"{ROOM}{path}")
    assert not OrmQ.objects.exists()
    assert Schedule.objects.get().task is None


def test_no_password_is_changed(ada: Client) -> None:
    vera = person("vera", "Viewer")
    new = {"password1": NEW, "password2": NEW}
    own = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    for address, typed in ((f"{USERS}{vera.pk}/password/", new), ("/admin/password_change/", own)):
        with full(AUDIT_LOG):
            ada.post(address, typed)
    assert all(user.check_password(PASSWORD) for user in User.objects.all())
    assert is_in(ada)


def test_accounts_that_can_not_be_removed_were_not(ada: Client) -> None:
    """The other way round: the database refuses the removal, so no event may tell of one."""
    chosen: dict[str, Any] = {"action": "delete_selected", "post": "yes"}
    one, two = person("one"), person("two")
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE EXCEPTION 'refused'; END$$;"
            "CREATE TRIGGER refuse BEFORE DELETE ON auth_user "
            "FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    try:
        with pytest.raises(DatabaseError, match="refused"):
            ada.post(USERS, {**chosen, "_selected_action": [one.pk, two.pk]})
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER refuse ON auth_user; DROP FUNCTION refuse()")
    assert not AuditEvent.objects.filter(action="user.remove").exists()
