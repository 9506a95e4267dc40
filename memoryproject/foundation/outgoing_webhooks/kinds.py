"""The event types that integrators can receive."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

MEMORY_CREATED = "memory.created"
MEMORY_CHANGED = "memory.changed"
MEMORY_FORGOTTEN = "memory.forgotten"
MESSAGE_FORGOTTEN = "message.forgotten"
SESSION_FORGOTTEN = "session.forgotten"
DOCUMENT_FORGOTTEN = "document.forgotten"
CHAT_ERASED = "chat.erased"
SESSION_EXPIRED = "session.expired"
CARD_MADE = "card.made"
TURN_FAILED = "turn.failed"

EVENT_TYPES = {
    MEMORY_CREATED: _("a memory is stored"),
    MEMORY_CHANGED: _("a memory is edited, superseded, pinned, or seen by others"),
    MEMORY_FORGOTTEN: _("a memory is gone"),
    MESSAGE_FORGOTTEN: _("a message is erased"),
    SESSION_FORGOTTEN: _("a session is erased with its messages"),
    DOCUMENT_FORGOTTEN: _("a document is erased"),
    CHAT_ERASED: _("a chat is erased with everything in it"),
    SESSION_EXPIRED: _("a session has ended"),
    CARD_MADE: _("the memory card of a session is made, or made again"),
    TURN_FAILED: _("a message could not be answered, or its answer not be sent"),
}

# Receivers must erase what these are about, so they are sent even if the chat is erased.
ERASURES = (MEMORY_FORGOTTEN, MESSAGE_FORGOTTEN, SESSION_FORGOTTEN, DOCUMENT_FORGOTTEN, CHAT_ERASED)

# Sent on request, regardless of the endpoint's subscriptions.
TEST = "webhook.test"
