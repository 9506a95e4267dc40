"""Tell who is behind a chat's address."""

from __future__ import annotations

from memoryproject.foundation.integrations.whatsapp.events import Party


def party_of(whatsapp_chat: str) -> Party:
    """Return the party behind an address in ``whatsapp_chat`` form."""
    name, _, domain = whatsapp_chat.partition("@")
    if domain == "c.us" and name.isdigit():
        return Party(phone=name)
    if domain == "bsuid":
        return Party(bsuid=name)
    return Party(other=whatsapp_chat)
