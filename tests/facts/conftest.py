"""Callers of the API, and a world that learns."""

from __future__ import annotations

import pytest

from tests.api.calling import Api, api_with
from tests.extraction.learning import Learning
from tests.world import World


@pytest.fixture
def api(db: None) -> Api:
    return api_with()


@pytest.fixture
def learning(world: World) -> Learning:
    return Learning(world)
