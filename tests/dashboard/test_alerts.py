"""Alerts: told once at the beginning and once at the end, by log, webhook and e-mail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from memoryproject.foundation.audit.models import AuditVerification
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from memoryproject.foundation.outside_services.models import OutsideService
from memoryproject.staff_site.alerts import (
    ChannelError,
    Condition,
    Notice,
    alerts_update,
    current_conditions,
    notice_mail,
    notice_post,
)
from memoryproject.staff_site.models import Alert
from memoryproject.staff_site.tasks import check_alerts
from sessions_app.models import Turn, UsageDay
from tests.dashboard.test_health import beat
from tests.loopback.httpd import FaultyServer
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db

WRONG = Condition("disk", ErrorText("alert_disk", free=12))


class Receiver(FaultyServer):
    """Takes alerts."""

    status = 200

    def handle(self, request: Request) -> Answer:
        return Answer(self.status, {})

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.requests]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@dataclass
class Kept:
    """A channel that keeps what it is told, or fails."""

    notices: list[Notice] = field(default_factory=list)
    fails: bool = False

    def __call__(self, notice: Notice) -> None:
        if self.fails:
            raise ChannelError("it is out of reach")
        self.notices.append(notice)


def update(found: list[Condition], channel: Kept) -> int:
    return alerts_update(found, [channel], timezone.now())


def test_an_alert_is_told_at_its_beginning_and_at_its_end() -> None:
    channel = Kept()
    for found in ([WRONG], [WRONG], [WRONG], [], []):
        update(found, channel)
    lines = [notice.line for notice in channel.notices]
    assert lines == [WRONG.text, f"Over: {WRONG.text}"]
    update([WRONG], channel)
    assert len(channel.notices) == 3
    update([], channel)
    Alert.objects.update(over_at=timezone.now() - timedelta(days=91))
    update([], channel)
    assert not Alert.objects.exists(), "old ones are removed"


def test_a_channel_that_fails_is_told_later_of_what_is_not_over_by_then() -> None:
    channel = Kept(fails=True)
    assert update([WRONG], channel) == 1
    channel.fails = False
    update([WRONG], channel)
    assert [notice.is_over for notice in channel.notices] == [False]
    update([], channel)
    unheard = Kept(fails=True)
    update([WRONG], unheard)
    unheard.fails = False
    update([], unheard)
    assert unheard.notices == []


def keys() -> set[str]:
    return {condition.key for condition in current_conditions(timezone.now())}


def test_programs_services_and_the_audit_log() -> None:
    beat("Idle", ["answer"])
    assert keys() == {"program:qcluster"}
    beat("Idle")
    assert keys() == set()
    OutsideService.objects.create(name="chat_model", target="a at b", state="open")
    assert keys() == {"service:chat_model:a at b"}
    OutsideService.objects.all().delete()
    for is_good, found in ((False, {"audit"}), (True, set())):
        AuditVerification.objects.create(state="done", report={"verified": is_good})
        assert keys() == found


def test_messages_jobs_and_schedules_that_wait_for_long(world: World) -> None:
    beat("Idle")
    world.receive(message_from(CLIENT, "Hello"))
    now = timezone.now()
    OrmQ.objects.create(key="memory", payload="", lock=now)
    Schedule.objects.create(name="Sweep", func="a.b", next_run=now)
    assert keys() == set()
    long_ago = now - timedelta(minutes=11)
    Turn.objects.update(created_at=long_ago)
    OrmQ.objects.update(lock=long_ago)
    Schedule.objects.update(next_run=long_ago)
    assert keys() == {"answers", "queue", "schedule:Sweep"}
    Turn.objects.update(not_before=now + timedelta(minutes=1))
    assert "answers" not in keys()


def test_a_budget_that_is_used_up(settings: Any, world: World) -> None:
    beat("Idle")
    world.say(CLIENT, "Hello")
    settings.CLIENTS_DAILY_BUDGET = Decimal("1.50")
    today = timezone.localdate()
    values = {"chat": world.chat(CLIENT), "day": today}
    UsageDay.objects.update_or_create(**values, defaults={"cost": Decimal("1.49")})
    assert keys() == set()
    UsageDay.objects.update(cost=Decimal("1.50"))
    assert keys() == {f"budget:{today}"}
    settings.CLIENTS_DAILY_BUDGET = None
    assert keys() == set()


def test_the_task_tells_every_channel(settings: Any, receiver: Receiver) -> None:
    settings.ALERT_WEBHOOK_URL = receiver.url
    settings.ALERT_EMAILS = ["ops@example.com"]
    beat("Idle")
    OutsideService.objects.create(
        name="whatsapp_cloud", target="graph", state="open", error="It answered 401."
    )
    assert check_alerts() == 1
    OutsideService.objects.update(state="closed")
    assert check_alerts() == 0
    text = "WhatsApp Cloud API (graph) doesn't answer: It answered 401."
    assert [(body["event"], body["text"]) for body in receiver.bodies] == [
        ("alert.raised", text),
        ("alert.over", f"Over: {text}"),
    ]
    assert [message.subject for message in mail.outbox] == [
        f"[WhatsApp memory] {text}",
        f"[WhatsApp memory] Over: {text}",
    ]
    assert mail.outbox[0].to == ["ops@example.com"]


def test_an_alert_leads_to_the_admin_of_the_address(settings: Any, receiver: Receiver) -> None:
    settings.BASE_URL = "https://memory.example.com:8443/bot"
    address = "https://memory.example.com:8443/bot/admin/"
    notice_post(receiver.url, Notice("a", "The disk is full.", "c", False))
    notice_mail(["owner@example.com"], Notice("a", "The disk is full.", "c", False))
    (body,) = receiver.bodies
    assert (body["text"], body["url"]) == (f"The disk is full. {address}", address)
    assert str(mail.outbox[0].body).splitlines()[-1] == address


def test_the_command_says_what_is_missing(settings: Any, receiver: Receiver, capsys: Any) -> None:
    with pytest.raises(CommandError, match="set ALERT_WEBHOOK_URL or ALERT_EMAILS"):
        call_command("send_test_alert")
    settings.ALERT_WEBHOOK_URL = receiver.url
    call_command("send_test_alert")
    assert "1 channel(s) were notified." in capsys.readouterr().out
    receiver.status = 403
    with pytest.raises(ChannelError, match="ALERT_WEBHOOK_URL answered 403") as caught:
        notice_post(f"{receiver.url}/secret-token", Notice("a", "b", "c", False))
    assert "secret-token" not in str(caught.value)
    receiver.status = 500
    with pytest.raises(CommandError, match="ALERT_WEBHOOK_URL answered 500"):
        call_command("send_test_alert")


@pytest.mark.parametrize(("language", "text"), [("en", "has only 12 MB left"), ("he", "DATA_DIR")])
def test_staff_and_monitors_see_open_alerts(admin_client: Client, language: str, text: str) -> None:
    update([WRONG], Kept())
    for page in ("/admin/", "/admin/operations/"):
        answer = admin_client.get(page, headers={"accept-language": language})
        assert text in answer.content.decode()
    metrics = admin_client.get("/metrics").content.decode()
    assert "memory_alerts_open 1.0" in metrics
    assert 'memory_service_sick{service="chat_model"} 0.0' in metrics
    update([], Kept())
    assert "has only 12 MB" not in admin_client.get("/admin/operations/").content.decode()
