"""What grows around the conversations of a crowd: see tests/staff/crowd.py."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.utils import timezone
from django_q.models import OrmQ, Schedule, Task
from django_q.signing import SignedPackage

from memoryproject.foundation.audit.models import AuditEvent, AuditVerification
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.foundation.rest_kit.models import ApiToken
from sessions_app.models import Chat, ForgetItem, ForgetReceipt, ForgetRun

# A word that stands in everything which pages look for by words.
WORD = "harbour"
RECEIPT = "sessions_app.forgetreceipt.receipt_id"

# Of each list the key of a row.
Keys = Mapping[str, Any]


def forgettings_grow(number: int, keys: Keys, runs: list[uuid.UUID], chat: Chat) -> None:
    """New runs, and more things and receipts in the one that is looked at."""
    states = ("forgotten", "gone", "moved", "found", "failed", "waiting")
    fresh = ForgetRun.objects.create(asked_by="role M", state="waiting")
    for run in ForgetRun.objects.filter(pk__in=[fresh.pk, *runs]):
        for place, state in enumerate(states):
            receipt = _receipt(number) if state == "forgotten" else None
            ForgetItem.objects.create(
                run=run,
                number=number * len(states) + place + 1,
                kind="memory",
                object_id=uuid.uuid4(),
                state=state,
                receipt=receipt,
                moved_to=chat.pk if state == "moved" else None,
            )
        run.total = run.done = run.items.count()
        run.failed = run.total // 2
        run.save()
    known = ForgetReceipt.objects.get(receipt_id=keys[RECEIPT])
    known.swept |= {f"table_{number}": number}
    known.save()


def _receipt(number: int) -> ForgetReceipt:
    return ForgetReceipt.objects.create(
        kind="memory",
        object_id=uuid.uuid4(),
        actor_kind="staff",
        actor=f"{WORD} {number}",
        content_hash="ab" * 32,
        swept={f"table_{number}": 1},
        probe="absent",
    )


def integrations_grow(number: int, keys: Keys, chat: Chat) -> None:
    now = timezone.now()
    token = ApiToken.objects.create(
        name=f"{WORD} {number}", prefix="abcd", digest=f"{number}", scopes=["read"]
    )
    endpoint = WebhookEndpoint.objects.create(
        name=f"{WORD} {number}", url="https://hooks.example/", secret="whsec_", failing_since=now
    )
    for model, pair in (
        (ApiToken, (token.pk, keys["api.apitoken"])),
        (WebhookEndpoint, (endpoint.pk, keys["hooks.webhookendpoint"])),
    ):
        for each in model._default_manager.filter(pk__in=pair):
            each.chat_ids = [*(each.chat_ids or []), chat.pk]
            each.save()
    for state in ("pending", "delivered", "failed"):
        for key in (endpoint.pk, keys["hooks.webhookendpoint"]):
            WebhookDelivery.objects.create(
                endpoint_id=key,
                event_type="memory.created",
                occurred_at=now,
                due_at=now,
                state=state,
                chat_id=chat.pk,
            )


def jobs_grow(number: int) -> None:
    now = timezone.now()
    function = f"memoryproject.foundation.audit.tasks.job_{number}"
    for place, success in enumerate((True, False)):
        Task.objects.create(
            id=f"{number}x{place}".ljust(32, "0"),
            name=f"task {number} {success}",
            func=function,
            started=now,
            stopped=now,
            success=success,
            result="boom : Traceback (most recent call last):\nValueError: boom",
        )
    last = Task.objects.filter(func=function).latest("id")
    Schedule.objects.create(name=f"s{number}", func=function, task=last.id)
    for lock in (now - timedelta(hours=1), now + timedelta(hours=1)):
        job = {"id": "x", "name": "x", "func": function, "args": (), "kwargs": {}}
        OrmQ.objects.create(key="memory", payload=SignedPackage.dumps(job), lock=lock)
    AccessAttempt.objects.create(
        username=f"x{number}",
        ip_address=f"192.0.2.{number % 250}",
        user_agent="b",
        get_data="",
        post_data="",
        http_accept="",
        path_info="",
        failures_since_start=9,
    )


def log_grow(number: int, keys: Keys, staff: User) -> None:
    AuditEvent.objects.create(
        action=f"thing.{number}",
        actor_kind="staff",
        actor=staff.username,
        object_type=f"thing {number}",
        object_id=str(keys["sessions_app.chat"]),
    )
    AuditVerification.objects.create(
        state="done", ended_at=timezone.now(), report=None, asked_by=staff.username
    )
