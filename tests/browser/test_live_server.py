"""The server before which the browser stands."""

from __future__ import annotations

import http.client
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection, transaction
from pytest_django.live_server_helper import LiveServer

from tests.browser.visit import with_its_requests
from tests.processes.waiting import wait_until
from tests.threads import begin

WAITING = "SELECT pid FROM pg_locks WHERE NOT granted"


def rows(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


@pytest.mark.django_db(transaction=True)
def test_once_it_is_stopped_no_request_uses_the_database() -> None:
    # Servers of other tests may still answer.
    others = set(threading.enumerate())
    server = with_its_requests(LiveServer("localhost"))
    client = http.client.HTTPConnection(urlsplit(server.url).netloc)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE django_migrations")
        client.request("GET", "/readyz")
        (waiting,) = wait_until(lambda: rows(WAITING), "the request waits for the table")
        client.close()
        stopped = begin(server.stop)
        server.thread.join()
    stopped.result()
    own = set(threading.enumerate()) - others
    assert [each for each in own if "process_request" in each.name] == []
    # PostgreSQL's process ends a moment after its connection.
    wait_until(lambda: waiting not in rows("SELECT pid FROM pg_stat_activity"), "it has ended")
