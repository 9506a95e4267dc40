"""The names of the metrics are those of the docs, and no scrape reads what has grown."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from sessions_app.models import Turn
from tests.docs.sources import read
from tests.plans import rows_read
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

ROW = re.compile(r"^\| `(memory_\w+)` \| (\w+) \| ([^|]*)\| (?:`(\w+)` )?\|", re.M)
MANY = 3_000


def test_names_types_and_labels_are_those_of_the_docs(client: Client, world: World) -> None:
    """Whatever language the caller reads."""
    world.say(CLIENT, "hello")
    answer = client.get(
        "/metrics", headers={"accept": "application/openmetrics-text", "accept-language": "he"}
    )
    there = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        name, *_others = (sample.name for sample in family.samples)
        labels = {label for sample in family.samples for label in sample.labels}
        there[name] = (family.type, labels)
        assert all(text.isascii() for each in family.samples for text in each.labels.values())
    documented = {
        name: (kind, {label} if label else set())
        for name, kind, _unit, label in ROW.findall(read("docs/operations.md"))
    }
    # Only where there is a replica: tests/processes/test_replica.py.
    of_replica: dict[str, Any] = {
        f"memory_replica_{each}": ("gauge", set()) for each in ("usable", "lag_seconds")
    }
    assert there | of_replica == documented


def test_a_scrape_reads_only_what_is_open_or_recent(client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    chat = world.chat(CLIENT)
    now = timezone.now()
    ended = {"state": "sent", "asked_at": now, "finished_at": now, "user_role": "client"}
    Turn.objects.bulk_create([Turn(chat=chat, **ended) for _ in range(MANY)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_turn")
    with CaptureQueriesContext(connection) as queries:
        assert client.get("/metrics").status_code == 200
    # Only how the last hour's ended is found from the newest 10,000 turns, in four steps.
    assert rows_read(queries) < MANY * 5
