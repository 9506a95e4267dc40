"""Takes a text out of the records that were derived from its message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sessions_app.models import InboundDelivery, Message, OutboundPart, Turn

GONE = "[deleted by the sender]"


def text_scrub(*, message: Message, texts: Iterable[str]) -> None:
    """Remove a revoked message's texts from the raw deliveries about it and from the replay
    of the turns that had it in their prompt."""
    InboundDelivery.objects.filter(
        provider=message.provider, subject_id=message.provider_message_id
    ).update(raw=None, change=None)
    wanted = [text for text in texts if text.strip()]
    later = Turn.objects.filter(chat_id=message.chat_id, created_at__gte=message.received_at)
    for turn in later.iterator(chunk_size=100):
        prompt, recalled = _without(turn.prompt, wanted), _without(turn.recalled, wanted)
        if prompt != turn.prompt or recalled != turn.recalled:
            Turn.objects.filter(pk=turn.pk).update(prompt=prompt, recalled=recalled)


def unstored_forget(turn: Turn) -> None:
    """Memory is off: once the answer is out, what was said and answered goes; the ids stay."""
    InboundDelivery.objects.filter(
        provider=turn.provider, subject_id=turn.provider_message_id
    ).update(raw=None, change=None)
    OutboundPart.objects.filter(turn=turn).update(content="")
    Turn.objects.filter(pk=turn.pk).update(
        unstored_text="", unstored_reply="", prompt=[], recalled=[]
    )


def _without(value: Any, texts: list[str]) -> Any:
    if isinstance(value, str):
        for text in texts:
            value = value.replace(text, GONE)
        return value
    if isinstance(value, list):
        return [_without(item, texts) for item in value]
    if isinstance(value, dict):
        return {key: _without(item, texts) for key, item in value.items()}
    return value
