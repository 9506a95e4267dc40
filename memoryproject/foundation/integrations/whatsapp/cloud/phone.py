"""Read what the owner's phone shares when it is connected: old messages, and the address book."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from memoryproject.foundation.integrations.whatsapp.cloud.content import Change, party_of
from memoryproject.foundation.integrations.whatsapp.cloud.notices import read_error
from memoryproject.foundation.integrations.whatsapp.events import (
    Event,
    InboundMessage,
    OldMessages,
    SavedContacts,
    same_number,
    with_ids_that_fit,
)
from memoryproject.foundation.integrations.whatsapp.lenient import Fields, listed

Inbound = Callable[..., InboundMessage]
# Messages with the thread of each.
Piece = Sequence[tuple[Fields, Any]]
# A body holds thousands of messages. The webhook stores the first piece, the sweep the others.
FIRST_PIECE, PIECE = 50, 500
_NOT_SAID = ("reaction", "edit", "revoke", "system", "request_welcome")


def read_history(change: Change, inbound: Inbound) -> list[Event]:
    """Return the change's old messages in pieces, and notices where the owner shares none.

    ``inbound`` builds a message, as for one that is written now.

    Each piece is a body of its own. The files of messages, without their threads, come later.
    """
    chunks = change.value.objects("history")
    written = [
        (thread, message)
        for chunk in chunks
        for thread in chunk.objects("threads")
        for message in listed(thread.get("messages"))
    ]
    details = [(Fields(), message) for message in listed(change.value.get("messages"))]
    pieces = [
        _old_messages(change, piece, inbound, is_first=not place)
        for some in (written, details)
        for place, piece in enumerate(
            [some[:FIRST_PIECE]]
            + [some[at : at + PIECE] for at in range(FIRST_PIECE, len(some), PIECE)]
        )
        if piece
    ]
    errors = [error for each in (change.value, *chunks) for error in listed(each.get("errors"))]
    return [*pieces, *(read_error(change, error) for error in errors)]


def _old_messages(change: Change, piece: Piece, inbound: Inbound, *, is_first: bool) -> OldMessages:
    threads = [{**thread, "messages": [message]} for thread, message in piece if thread]
    parts = {
        "history": [{"threads": threads}] if threads else [],
        "messages": [message for thread, message in piece if not thread],
        "contacts": change.value.get("contacts"),
    }
    raw = change.part(**{name: part for name, part in parts.items() if part})

    def read() -> list[InboundMessage]:
        events = [
            _old_message(change, thread, Fields.of(message), inbound) for thread, message in piece
        ]
        fitting = [with_ids_that_fit(event) for event in events if event is not None]
        return [event for event in fitting if isinstance(event, InboundMessage)]

    return OldMessages(**change.head(raw), read=read, is_first=is_first)


def _old_message(
    change: Change, thread: Fields, message: Fields, inbound: Inbound
) -> InboundMessage | None:
    """Return an old message; None for what is none. ``thread``: of the person, or empty."""
    wamid, own = message.text("id"), change.business_number
    if not wamid or message.text("type") in _NOT_SAID:
        return None
    sender, person = message.text("from"), thread.text("id")
    if person.endswith("@g.us") or message.text("group_id"):
        # Meta shares no groups; one is never stored as what a person wrote to us.
        return None
    is_ours = same_number(sender, own)
    if not own and person and sender:
        is_ours = not same_number(sender, person)
    side = "to" if is_ours else "from"
    context = thread.at("context")
    party, _ = party_of(
        address=person or message.get(side),
        user_ids=[message.get(f"{side}_user_id"), thread.get("user_id"), context.get("user_id")],
        contacts=change.contacts,
    )
    about = {
        **change.head({}, f"message:{wamid}"),
        "party": party,
        "timestamp": message.moment("timestamp", change.received_at),
        "group_id": None,
    }
    event = inbound(change, message, about, echo=is_ours)
    status = message.at("history_context").text("status").lower()
    return replace(event, metadata={**event.metadata, "history": status})


def read_address_book(change: Change) -> list[Event]:
    """Return the names that the owner saved. One that is removed stays as it is here."""
    names = {}
    for entry in change.value.objects("state_sync"):
        contact = entry.at("contact")
        name, phone = contact.text("full_name", "first_name"), contact.phone("phone_number")
        if name and phone and entry.text("action") != "remove":
            names[f"{phone}@c.us"] = name
    return [SavedContacts(**change.head(change.whole()), names=names)] if names else []
