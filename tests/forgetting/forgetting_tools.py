"""What a forgetting works with, of a world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sessions_app.forgetting.sweep import ForgetDependencies
from tests.world import World


def dependencies_of(world: World, **changes: Any) -> ForgetDependencies:
    return replace(ForgetDependencies(world.dependencies.chat_memory), **changes)
