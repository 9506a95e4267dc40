"""/readyz where the database breaks off: 503 with the reason, and ready again afterwards."""

from __future__ import annotations

from contextlib import closing

import pytest
from django.db import connection
from django.test import Client


def break_connection() -> None:
    """End this process's session at the server, as a restart of PostgreSQL does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    other = connection.copy()
    with closing(other), other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


@pytest.mark.django_db(transaction=True)
def test_a_broken_connection_is_told_and_not_an_error(client: Client) -> None:
    break_connection()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["database"] not in ("", "ready")
    # Closed and not broken: psycopg reports that by another class of error.
    answer = client.get("/readyz")
    assert answer.status_code == 503
    connection.close()
    assert client.get("/readyz").json()["parts"]["database"] == "ready"
