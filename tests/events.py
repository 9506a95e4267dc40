"""What providers tell of messages besides the messages themselves."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.events import (
    AddressChanged,
    MessageEdited,
    MessageRevoked,
    Party,
    Reaction,
    StatusUpdate,
)
from tests.world import NUMBER_ID


def _head(kind: str, **raw: str) -> dict[str, Any]:
    return {
        "provider": "cloud",
        "number_id": NUMBER_ID,
        "delivery_key": f"{NUMBER_ID}:{kind}:{uuid.uuid4().hex}",
        "raw": raw,
    }


def edit(original_id: str, text: str) -> MessageEdited:
    return MessageEdited(
        **_head("edit", text=text),
        original_id=original_id,
        party=Party(phone="15550100123"),
        timestamp=timezone.now(),
        text=text,
    )


def revocation(original_id: str | None, **changes: Any) -> MessageRevoked:
    revoked = MessageRevoked(
        **_head("revoke"),
        original_id=original_id or "",
        party=Party(phone="15550100123"),
        timestamp=timezone.now(),
    )
    return replace(revoked, **changes)


def reaction(target_id: str, emoji: str, phone: str = "15550100123") -> Reaction:
    return Reaction(
        **_head("reaction"),
        target_id=target_id,
        party=Party(phone=phone),
        timestamp=timezone.now(),
        emoji=emoji,
    )


def status(
    message_id: str,
    reached: str,
    *,
    callback_id: str | None = None,
    party: Party | None = None,
    error_text: str = "",
    participant: str = "",
    provider: str = "cloud",
) -> StatusUpdate:
    """``participant``: in a group every one of them reads for themselves."""
    key = f"{NUMBER_ID}:status:{message_id}:{reached}" + (f":{participant}" if participant else "")
    return StatusUpdate(
        provider=provider,
        number_id=NUMBER_ID,
        delivery_key=key,
        provider_message_id=message_id,
        status=reached,
        timestamp=timezone.now(),
        callback_id=callback_id,
        party=party,
        error_text=error_text,
    )


def moved(old: Party, new: Party, at: datetime | None = None) -> AddressChanged:
    return AddressChanged(**_head("system"), old=old, new=new, timestamp=at or timezone.now())
