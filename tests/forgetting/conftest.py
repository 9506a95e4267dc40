"""What tests of forgetting share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection


@pytest.fixture
def new_connection_after() -> Iterator[None]:
    """Leave the next test a connection without this one's locks and settings."""
    yield
    connection.close()
