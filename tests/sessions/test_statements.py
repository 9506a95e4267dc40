"""How many statements a message and its answer take: one more of them slows every message."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.events import status
from tests.webhooks.conftest import cloud_text, configured  # noqa: F401
from tests.webhooks.posting import post_cloud
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db(transaction=True)

MAX_TO_TAKE_IN = 13
MAX_TO_ANSWER = 33
# With the word to the programs that answer.
MAX_OF_A_WEBHOOK = 15
MAX_OF_A_REPEATED_WEBHOOK = 3
# Of both together. Statements that are sent together are waited for once.
MAX_ROUND_TRIPS = 36
# Of both together, with those that triggers write.
MAX_ROWS = 26


def fresh(recorded: dict[str, Any]) -> dict[str, Any]:
    """The recorded webhook as a new message that comes now."""
    body = deepcopy(recorded)
    (message,) = body["entry"][0]["changes"][0]["value"]["messages"]
    message["id"] = f"wamid.{uuid.uuid4().hex}"
    message["timestamp"] = str(int(time.time()))
    return body


def statements(queries: CaptureQueriesContext) -> str:
    return "\n".join(query["sql"][:160] for query in queries)


def test_a_message_in_a_conversation_takes_few_statements(world: World) -> None:
    for number in range(6):
        world.say(CLIENT, f"number {number} about the invoice of March")
    world.remember(CLIENT, "The invoice of March was paid")
    with CaptureQueriesContext(connection) as queries:
        world.receive(message_from(CLIENT, "what about the invoice of March?"))
    assert len(queries) <= MAX_TO_TAKE_IN, statements(queries)
    with CaptureQueriesContext(connection) as queries:
        world.work()
    assert len(queries) <= MAX_TO_ANSWER, statements(queries)
    assert "paid" in "\n".join(message.content for message in world.prompt())


def test_a_webhook_takes_one_commit(
    client: Client,
    world: World,
    cloud_text: dict[str, Any],  # noqa: F811
) -> None:
    """Each commit waits for the disk: message and turn are one transaction."""
    for _ in range(2):
        assert post_cloud(client, fresh(cloud_text)).status_code == 200
    body = fresh(cloud_text)
    with CaptureQueriesContext(connection) as queries:
        assert post_cloud(client, body).status_code == 200
    assert len(queries) <= MAX_OF_A_WEBHOOK, statements(queries)
    assert [query["sql"] for query in queries].count("COMMIT") == 1
    assert "NOTIFY turns" in [query["sql"] for query in queries]
    with CaptureQueriesContext(connection) as queries:
        assert post_cloud(client, body).status_code == 200
    assert len(queries) <= MAX_OF_A_REPEATED_WEBHOOK, statements(queries)


@contextmanager
def traced(path: Path) -> Iterator[list[str]]:
    """The direction of each message between us and PostgreSQL within the block: F or B."""
    connection.ensure_connection()
    found: list[str] = []
    with path.open("wb") as file:
        connection.connection.pgconn.trace(file.fileno())
        yield found
        connection.connection.pgconn.untrace()
        found += [line.split("\t")[1] for line in path.read_text().splitlines() if "\t" in line]


def rows_written() -> int:
    """How many rows were inserted, updated and deleted so far, as PostgreSQL counts them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables")
        return int(cursor.fetchone()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="psycopg traces on Linux alone")
def test_a_message_waits_for_postgresql_a_few_times(
    client: Client,
    world: World,
    tmp_path: Path,
    cloud_text: dict[str, Any],  # noqa: F811
) -> None:
    for _ in range(3):
        assert post_cloud(client, fresh(cloud_text)).status_code == 200
        world.work()
    body, rows_before = fresh(cloud_text), rows_written()
    with traced(tmp_path / "trace") as directions:
        assert post_cloud(client, body).status_code == 200
        world.work()
    assert "".join(directions).count("FB") <= MAX_ROUND_TRIPS
    assert rows_written() - rows_before <= MAX_ROWS


def test_a_status_that_tells_nothing_new_changes_only_its_delivery(world: World) -> None:
    world.say(CLIENT, "hello")
    (sent,) = world.provider.sent
    for name, tables in [("sent", 1), ("delivered", 3)]:
        with CaptureQueriesContext(connection) as queries:
            world.receive(status(sent.provider_message_id, name))
        changes = [query["sql"] for query in queries if query["sql"].startswith("UPDATE")]
        assert len(changes) == tables, statements(queries)
