"""The pages of the audit log: filters, the chain's state, verifying in the background, export."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from memoryproject.foundation.audit.audit_events import (
    SYSTEM,
    Actor,
    Event,
    audit_key,
    audit_record,
    audit_record_many,
    log_path,
    person_detach,
)
from memoryproject.foundation.audit.models import AuditEvent, AuditVerification
from memoryproject.foundation.audit.tasks import verification_ask, verification_run, verify
from sessions_app.models import Chat
from tests.audit.log import AuditLog, tamper
from tests.shown import words_of
from tests.world import CLIENT, new_world

LIST = "/admin/audit/auditevent/"
VERIFY = f"{LIST}verify/"
EXPORT = f"{LIST}export/"


def shown(client: Client, **filters: str) -> list[AuditEvent]:
    page = client.get(LIST, filters)
    assert page.status_code == 200
    return list(page.context["cl"].result_list)


def in_group(name: str) -> Client:
    user = User.objects.create_user(f"in {name}", is_staff=True)
    user.groups.add(Group.objects.get(name=name))
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.django_db
class TestFilters:
    @pytest.fixture(autouse=True)
    def events(self, admin_user: Any) -> None:
        audit_record_many(
            events=[
                Event("memory.update", Actor("staff", "dana"), "memory", "m1"),
                Event("memory.update", Actor("staff", "omer"), "memory", "m2"),
                Event("token.create", Actor("command"), "token", "7"),
            ]
        )

    def test_by_what_by_whom_and_to_what(self, admin_client: Client) -> None:
        assert {each.actor for each in shown(admin_client, action="memory.update")} == {
            "dana",
            "omer",
        }
        assert [each.object_id for each in shown(admin_client, actor="dana")] == ["m1"]
        assert [each.object_id for each in shown(admin_client, object_type="token")] == ["7"]
        assert [
            each.object_id for each in shown(admin_client, actor=" omer ", object_type="memory")
        ] == ["m2"]

    def test_by_days_in_the_business_time_zone(self, admin_client: Client, settings: Any) -> None:
        settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
        moments = {
            "m1": "2026-03-01T21:59:59Z",  # still the first of March there
            "m2": "2026-03-01T22:00:00Z",
        }
        for object_id, moment in moments.items():
            tamper("UPDATE audit_auditevent SET at = %s WHERE object_id = %s", moment, object_id)
        day = {"from": "2026-03-01", "until": "2026-03-01"}
        assert [each.object_id for each in shown(admin_client, **day)] == ["m1"]
        assert [
            each.object_id
            for each in shown(admin_client, **{"from": "2026-03-02", "until": "2026-03-02"})
        ] == ["m2"]
        page = admin_client.get(LIST, day).content.decode()
        assert 'value="2026-03-01"' in page

    @pytest.mark.parametrize("day", ["tomorrow", "2026-02-30", "0000-00-00", "99999-1-1", "1\0"])
    def test_what_is_no_day_is_told(self, admin_client: Client, day: str) -> None:
        page = admin_client.get(LIST, {"from": day})
        assert page.status_code == 200
        assert "That is no day" in page.content.decode()
        assert not page.context["cl"].result_list

    @pytest.mark.parametrize("name", ["\0", "x" * 5000, "<script>alert(1)</script>"])
    def test_any_name_is_only_a_name(self, admin_client: Client, name: str) -> None:
        page = admin_client.get(LIST, {"actor": name})
        assert page.status_code == 200
        assert "<script>alert" not in page.content.decode()

    def test_a_filter_keeps_the_others(self, admin_client: Client) -> None:
        page = admin_client.get(LIST, {"action": "memory.update", "q": "m1"}).content.decode()
        assert '<input type="hidden" name="action" value="memory.update">' in page
        assert '<input type="hidden" name="q" value="m1">' in page

    def test_an_event_shows_its_whole_line(self, admin_client: Client) -> None:
        event = AuditEvent.objects.get(object_id="7")
        page = admin_client.get(f"{LIST}{event.pk}/change/").content.decode()
        assert "&quot;action&quot;: &quot;token.create&quot;" in page


class TestVerifying:
    @pytest.fixture(autouse=True)
    def log_file(self, log: AuditLog, settings: Any, tmp_path: Path) -> None:
        settings.LOG_DIR = tmp_path / "server"
        (tmp_path / "server").mkdir(mode=0o700)

    def test_a_button_asks_a_worker_and_shows_it(self, log: AuditLog, admin_client: Client) -> None:
        log.record(2)
        assert "Not verified yet" in admin_client.get(LIST).content.decode()
        assert admin_client.post(VERIFY)["Location"] == VERIFY
        (job,) = [job.task for job in OrmQ.objects.all() if job.func().endswith("tasks.verify")]
        assert "as soon as a worker is free" in admin_client.get(VERIFY).content.decode()
        verify(*job["args"])
        for page in (admin_client.get(LIST), admin_client.get(VERIFY)):
            text = page.content.decode()
            assert "Verified: no tampering found." in text
            assert "3 sealed events and 3 lines of the log file were checked." in text
            assert "asked for by <bdi>admin</bdi>" in text
        event = AuditEvent.objects.get(action="audit.verify")
        assert (event.actor, event.details) == ("admin", {"events": 3, "found": 0})

    def test_what_is_wrong_is_told_in_words(self, log: AuditLog, admin_client: Client) -> None:
        log.record(2)
        self.verify_now()
        tamper("UPDATE audit_auditevent SET actor = 'x' WHERE seq = 1")
        self.verify_now()
        page = admin_client.get(VERIFY).content.decode()
        assert "NOT verified: 1 thing is wrong." in page
        assert "An event was edited, or moved to another place." in page
        assert "Event 1 (row " in page
        assert "NOT verified" in admin_client.get(LIST).content.decode()

    def test_its_progress_shows_meanwhile(self, log: AuditLog, admin_client: Client) -> None:
        log.record(5)
        asked = verification_ask(asked_by="dana", now=timezone.now())
        seen: list[str] = []

        def now() -> Any:
            if AuditVerification.objects.filter(pk=asked.pk, state="running").exists():
                seen.append(admin_client.get(VERIFY).content.decode())
            return timezone.now()

        verification_run(verification_id=asked.pk, key=audit_key(), log_path=log_path(), now=now)
        assert any("<progress" in page for page in seen)
        asked.refresh_from_db()
        assert asked.total == 6

    def test_asked_for_twice_it_is_done_once(self, log: AuditLog) -> None:
        first = verification_ask(asked_by="dana", now=timezone.now())
        assert verification_ask(asked_by="omer", now=timezone.now()) == first
        run: dict[str, Any] = {"key": audit_key(), "log_path": log_path(), "now": timezone.now}
        assert verification_run(verification_id=first.pk, **run) is not None
        assert verification_run(verification_id=first.pk, **run) is None

    def test_a_worker_that_died_holds_up_nothing(self, log: AuditLog) -> None:
        dead = verification_ask(asked_by="dana", now=timezone.now() - timedelta(minutes=4))
        fresh = verification_ask(asked_by="dana", now=timezone.now())
        assert fresh != dead
        dead.refresh_from_db()
        assert dead.state == "failed"

    def test_the_newest_fifty_are_kept(self, log: AuditLog) -> None:
        AuditVerification.objects.bulk_create([AuditVerification(state="done") for _ in range(60)])
        verification_ask(asked_by="dana", now=timezone.now())
        assert AuditVerification.objects.count() == 50

    def verify_now(self) -> None:
        verify(verification_ask(asked_by="dana", now=timezone.now()).pk)


class TestExport:
    def export(self, client: Client, kind: str, **filters: str) -> bytes:
        address = f"{EXPORT}?{'&'.join(f'{name}={value}' for name, value in filters.items())}"
        answer = client.post(address, {"format": kind})
        assert answer.status_code == 200
        assert answer["Content-Disposition"].startswith('attachment; filename="audit-')
        return answer.getvalue()

    def test_lines_are_those_of_the_log_file(self, log: AuditLog, admin_client: Client) -> None:
        log.record(3)
        log.seal()
        exported = self.export(admin_client, "jsonl").splitlines(keepends=True)
        assert exported == log.lines()

    def test_what_the_filters_show_and_an_event(self, log: AuditLog, admin_client: Client) -> None:
        log.record(2)
        log.record(3, "memory.forget")
        lines = self.export(admin_client, "jsonl", action="memory.forget").splitlines()
        assert [json.loads(line)["object_id"] for line in lines] == [
            f"memory.forget-{number}" for number in range(3)
        ]
        event = AuditEvent.objects.get(action="audit.export")
        assert event.actor == "admin"
        assert event.details == {"format": "jsonl", "events": 3, "filters": ["action"]}

    @pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", " =1", "\r=1"])
    def test_no_cell_of_a_table_is_a_formula(self, admin_client: Client, name: str) -> None:
        audit_record("memory.update", Actor("api", name), "memory", '"; , ä א')
        text = self.export(admin_client, "csv").decode("utf-8-sig")
        titles, *rows = csv.reader(io.StringIO(text))
        row = dict(zip(titles, rows[-1], strict=True))
        assert row["actor"] == f"'{name}"
        assert row["object_id"] == '"; , ä א'
        assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]

    def test_a_large_one_is_read_in_batches(self, admin_client: Client) -> None:
        audit_record_many(events=[Event("a.b", SYSTEM, "c", n) for n in range(4_500)])
        with CaptureQueriesContext(connection) as queries:
            exported = self.export(admin_client, "jsonl", action="a.b")
        assert exported.count(b"\n") == 4_500
        assert len([each for each in queries if "LIMIT 2000" in each["sql"]]) == 3

    def test_it_takes_a_right_of_its_own(self, admin_client: Client) -> None:
        viewer = User.objects.create_user("only sees", is_staff=True)
        viewer.user_permissions.set(
            Group.objects.get(name="Auditor").permissions.filter(codename="view_auditevent")
        )
        client = Client()
        client.force_login(viewer)
        assert "Export" not in client.get(LIST).content.decode()
        assert client.post(EXPORT, {"format": "csv"}).status_code == 403
        assert in_group("Auditor").post(EXPORT, {"format": "csv"}).status_code == 200
        assert admin_client.get(EXPORT).headers["Location"] == LIST
        assert admin_client.post(EXPORT, {"format": "exe"}).status_code == 400


@pytest.mark.django_db
class TestNames:
    """Events say whom they are about to those who may see chats, and to nobody else."""

    @pytest.fixture
    def dana(self) -> Chat:
        new_world().say(CLIENT, "/remember The gate code is 4321")
        Chat.objects.update(client_name="Dana Levi")
        details = {"labels": ["vip", "new"], "all": True}
        audit_record_many(events=[Event("chat.label", SYSTEM, details=details)])
        return Chat.objects.get()

    @pytest.fixture
    def auditor(self) -> Client:
        user = User.objects.create_user("auditor", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename="view_auditevent"))
        client = Client()
        client.force_login(user)
        return client

    @pytest.mark.parametrize("term", ["Dana Levi", "dana levi", "Levi", "+1 555-010-0123"])
    def test_a_name_finds_the_events_of_a_person(
        self, admin_client: Client, auditor: Client, dana: Chat, term: str
    ) -> None:
        assert "memory.remember" in {each.action for each in shown(admin_client, q=term)}
        assert shown(auditor, q=term) == []

    def test_the_person_is_named(self, admin_client: Client, auditor: Client, dana: Chat) -> None:
        event = AuditEvent.objects.get(action="memory.remember")
        for address in (LIST, f"{LIST}{event.pk}/change/"):
            assert (
                f'<a href="/admin/contacts/{dana.pk}/"'
                in admin_client.get(address).content.decode()
            )
            assert "Dana Levi" not in auditor.get(address).content.decode()
        assert event.chat in auditor.get(LIST).content.decode()

    def test_nobody_is_named_after_the_link_was_cut(self, admin_client: Client, dana: Chat) -> None:
        person_detach(chat_id=dana.pk)
        assert "Dana Levi" not in admin_client.get(LIST).content.decode()
        assert shown(admin_client, q="Dana Levi") == []

    def test_details_are_lines_of_words(self, admin_client: Client, dana: Chat) -> None:
        event = AuditEvent.objects.get(action="chat.label")
        text = words_of(admin_client.get(f"{LIST}{event.pk}/change/").content.decode())
        assert "labels: vip, new" in text
        assert "all: yes" in text
