"""What tests of the limits read of turns, requests and the audit log."""

from __future__ import annotations

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Turn
from tests.world import World


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
