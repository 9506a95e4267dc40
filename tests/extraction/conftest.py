from __future__ import annotations

import pytest

from tests.extraction.learning import Learning
from tests.world import World


@pytest.fixture
def learning(world: World) -> Learning:
    return Learning(world)
