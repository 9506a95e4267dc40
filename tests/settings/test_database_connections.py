"""What each connection to the database is set to."""

from __future__ import annotations

import pytest
from django.db import connection


@pytest.mark.django_db
def test_no_connection_compiles_statements_although_the_server_would() -> None:
    fresh = connection.copy()
    fresh.settings_dict["OPTIONS"] = {**fresh.settings_dict["OPTIONS"], "options": "-c jit=on"}
    try:
        with fresh.cursor() as cursor:
            cursor.execute("SELECT setting, reset_val FROM pg_settings WHERE name = 'jit'")
            assert cursor.fetchone() == ("off", "on")
    finally:
        fresh.close()
