"""The server before which the browser stands."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest
from django.db import connection, transaction
from pytest_django.live_server_helper import LiveServer

from tests.browser.visit import with_its_requests
from tests.processes.waiting import wait_until
from tests.threads import begin, connections_waiting

OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.mark.django_db(transaction=True)
def test_once_it_is_stopped_no_request_uses_the_database() -> None:
    server = with_its_requests(LiveServer("localhost"))
    client = http.client.HTTPConnection(urlsplit(server.url).netloc)
    with connection.cursor() as cursor:
        with transaction.atomic():
            cursor.execute("LOCK TABLE django_migrations")
            client.request("GET", "/readyz")
            wait_until(connections_waiting, "the request waits for the table")
            client.close()
            stopped = begin(server.stop)
            server.thread.join()
        stopped.result()
        cursor.execute(OTHERS)
        assert cursor.fetchone() == (0,)
