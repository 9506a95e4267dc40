"""Each list of the admin as CSV: who may take it, what is in it, and that taking it is audited."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memoryproject.foundation.admin_kit.list_csv import MAX_ROWS
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Label
from tests.staff.expected import LISTS
from tests.staff.furnish import furnish
from tests.staff.roles import role_client
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db


def address(label: str) -> str:
    return reverse(f"admin:{label.replace('.', '_')}_changelist")


def taken(client: Client, label: str, **filters: Any) -> list[list[str]]:
    answer = client.get(address(label), {**filters, "_csv": "1"})
    assert answer.status_code == 200, label
    assert answer["Content-Type"] == "text/csv; charset=utf-8", label
    return list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))


def test_messages_have_whole_texts_and_are_audited(admin_client: Client, world: World) -> None:
    long = "=cmd and a long text. " * 30
    world.say(CLIENT, long)
    message = world.messages(CLIENT)[0]
    rows = taken(admin_client, "sessions_app.message", role__exact="user")
    assert rows[0][0] == "id"
    (row,) = rows[1:]
    assert row[0] == str(message.pk)
    assert f"'{long}".strip() in [cell.strip() for cell in row], "whole, and no formula"
    event = AuditEvent.objects.get(action="export")
    assert event.actor == "admin"
    assert event.details == {"list": "message", "rows": 1, "filters": ["role__exact"]}
    page = admin_client.get(address("sessions_app.message"), {"role__exact": "user"})
    assert 'href="?role__exact=user&amp;_csv=1"' in page.content.decode()


def test_a_file_of_a_longer_list_ends_at_its_limit(admin_client: Client) -> None:
    """It must not read the rest either: a list of a million rows would fill the memory."""
    Label.objects.bulk_create(Label(name=f"label {number}") for number in range(MAX_ROWS + 50))
    with CaptureQueriesContext(connection) as queries:
        rows = taken(admin_client, "sessions_app.label")
    assert len(rows) == 1 + MAX_ROWS
    table = f'"{Label._meta.db_table}"."name"'
    read = [query["sql"] for query in queries if table in query["sql"]]
    assert read
    assert all("LIMIT" in query for query in read)


def test_filters_that_make_no_sense_are_refused(admin_client: Client) -> None:
    asked = {"_csv": "1", "received_at__year": "nonsense"}
    assert admin_client.get(address("sessions_app.message"), asked).status_code == 400


def test_each_list_has_a_file_for_those_who_may_see_it(world: World) -> None:
    furnish(world)
    reader, _ = role_client("V")
    administrator, _ = role_client("S")
    for label, expected in LISTS.items():
        model_admin = admin.site._registry[apps.get_model(label)]
        if not getattr(model_admin, "has_csv", False):
            continue
        with CaptureQueriesContext(connection) as captured:
            rows = taken(administrator, label)
        assert len(captured) < 30, (label, len(captured))
        assert {len(row) for row in rows} == {len(rows[0])}, label
        assert "<" not in str(rows[0]), label
        seen = reader.get(address(label), {"_csv": "1"}).status_code
        assert seen == (200 if "V" in expected.view else 403), label
