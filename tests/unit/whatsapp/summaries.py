"""Tells an event in one line, so that a table of expectations can be read."""

from memoryproject.foundation.integrations.whatsapp.events import (
    AddressChanged,
    Event,
    Ignored,
    InboundMessage,
    MarketingChoice,
    MessageEdited,
    MessageRevoked,
    Notice,
    OwnSend,
    Party,
    Reaction,
    StatusUpdate,
)


def told(event: Event) -> str:
    if isinstance(event, InboundMessage):
        return _message(event)
    if isinstance(event, MessageEdited):
        return f"edit of {event.original_id} by {_who(event.party)}: {event.text}"
    if isinstance(event, MessageRevoked):
        return f"revocation of {event.original_id} by {_who(event.party)}"
    if isinstance(event, Reaction):
        return f"reaction {event.emoji or 'removed'} to {event.target_id} by {_who(event.party)}"
    if isinstance(event, StatusUpdate):
        return _status(event)
    if isinstance(event, OwnSend):
        return f"own send to {event.whatsapp_chat}: {event.text}"
    if isinstance(event, AddressChanged):
        return f"{_who(event.old)} is now {_who(event.new)}"
    if isinstance(event, MarketingChoice):
        return f"{_who(event.party)} {'stops' if event.is_stopped else 'allows'} marketing"
    if isinstance(event, Notice):
        return f"{event.level}: {event.summary}"
    assert isinstance(event, Ignored)
    return f"ignored: {event.reason}"


def _message(event: InboundMessage) -> str:
    direction = "to" if event.from_business else "from"
    place = f" in {event.group_id}" if event.group_id else ""
    media = " +media" if event.media else ""
    return f"{event.kind}{media} {direction} {_who(event.party)}{place}: {event.text}"


def _status(event: StatusUpdate) -> str:
    whom = f" to {_who(event.party)}" if event.party else ""
    error = f" ({event.error_code}) {event.error_text}" if event.status == "failed" else ""
    return f"{event.status} {event.provider_message_id}{whom}{error}"


def _who(party: Party) -> str:
    return "/".join(party.addresses())
