"""/readyz where the database breaks off: 503 with the reason, and ready again afterwards."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client

from tests.database import break_connection


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
