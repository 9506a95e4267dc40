"""What a forgetting works with, of a world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sessions_app.forgetting.execute import ForgetTools
from tests.world import World


def tools_of(world: World, **changes: Any) -> ForgetTools:
    return replace(ForgetTools(world.tools.embedder, world.tools.chat_memory), **changes)
