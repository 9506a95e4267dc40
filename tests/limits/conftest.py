"""A world whose clients have limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.limits.intake import UsageLimits
from sessions_app.models import Turn
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


# What tests of the limits read of turns, requests and the audit log.


def calls(world: World) -> int:
    """How often the chat model was asked."""
    return len(world.dependencies.chat_model.requests)  # type: ignore[attr-defined]


def sent(world: World) -> list[str]:
    return [part.text for part in world.provider.sent]


def ends() -> list[tuple[str, str]]:
    """State and reason of every turn."""
    return [(turn.state, getattr(turn.error, "code", "")) for turn in Turn.objects.order_by("id")]


def audited(*names: str) -> list[str]:
    found = AuditEvent.objects.filter(action__in=names).order_by("id")
    return list(found.values_list("action", flat=True))
