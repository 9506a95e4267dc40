"""The event types that integrators can receive."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

MEMORY_CREATED = "memory.created"
MEMORY_CHANGED = "memory.changed"
MEMORY_FORGOTTEN = "memory.forgotten"
SESSION_EXPIRED = "session.expired"
CARD_MADE = "card.made"
TURN_FAILED = "turn.failed"

EVENT_TYPES = {
    MEMORY_CREATED: _("a memory is stored"),
    MEMORY_CHANGED: _("a memory is edited, superseded, pinned, or seen by others"),
    MEMORY_FORGOTTEN: _("a memory is gone"),
    SESSION_EXPIRED: _("a session has ended"),
    CARD_MADE: _("the memory card of a session is made, or made again"),
    TURN_FAILED: _("a message could not be answered, or its answer not be sent"),
}

# Sent on request, regardless of the endpoint's subscriptions.
TEST = "webhook.test"
