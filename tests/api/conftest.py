"""A caller of the API."""

from __future__ import annotations

import pytest

from tests.api.calling import Api, api_with


@pytest.fixture
def api(db: None) -> Api:
    """Calls with a token that may do everything."""
    return api_with()
