"""A world whose clients have limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.limits.intake import UsageLimits
from tests.sessions.conftest import desk
from tests.world import World

__all__ = ["desk"]

Limiting = Callable[..., World]


@pytest.fixture
def limited(world: World) -> Limiting:
    """Set the limits of intake and answers from here on."""

    def limit(**changes: Any) -> World:
        limits = UsageLimits(**changes)
        world.with_rules(limits=limits)
        strategy: Any = world.rules.chat_memory.strategy
        if hasattr(strategy, "limits"):
            world.with_chat_memory(strategy=replace(strategy, limits=limits))
        world.use(limits=limits)
        return world

    return limit
