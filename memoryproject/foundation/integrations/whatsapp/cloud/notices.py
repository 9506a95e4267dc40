"""Read the Cloud API's reports: on the account, messages that we sent, calls, and old messages."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from memoryproject.foundation.integrations.lenient import Fields, listed, text_of
from memoryproject.foundation.integrations.whatsapp import events
from memoryproject.foundation.integrations.whatsapp.cloud.content import (
    Change,
    error_details,
    party_of,
)
from memoryproject.foundation.integrations.whatsapp.cloud.error_policies import policy_for

_ACCOUNT_TROUBLE = (
    "ACCOUNT_VIOLATION",
    "ACCOUNT_RESTRICTION",
    "ACCOUNT_DELETED",
    "DISABLED_UPDATE",
    "PARTNER_REMOVED",
)
_TEMPLATE_TROUBLE = ("REJECTED", "PAUSED", "DISABLED", "FLAGGED", "PENDING_DELETION")
_NUMBER_TROUBLE = ("FLAGGED", "DOWNGRADE")
_GROUP_TROUBLE = "group_suspend"


def read_error(change: Change, error: Any) -> events.Event:
    """Return a notice for staff from one member of the value's own ``errors``."""
    raw = change.part(errors=[error])
    details = error_details([error])
    if not details:
        return change.ignored(raw, "an error that tells nothing")
    code = Fields(details[0]).whole("code")
    shown = [str(details[0][key]) for key in ("code", "title", "details") if key in details[0]]
    critical = policy_for(code).alert
    return events.Notice(
        **change.head(raw),
        level="critical" if critical else "warning",
        summary="WhatsApp reports error " + ": ".join(shown),
    )


def read_account_field(change: Change) -> events.Event:
    """Return the event for a field about the account, its number, templates or groups."""
    level = _level(change)
    if level is None:
        return change.ignored(change.whole(), f"field {change.field or '(none)'!r} needs nothing")
    value = change.value
    groups = [group.text("type") for group in value.objects("groups")]
    what = value.text("event", "decision", "alert_type") or ", ".join(filter(None, groups))
    why = [
        value.at("violation_info").text("violation_type"),
        value.text("alert_description", "message_template_name", "reason"),
    ]
    reasons = ", ".join(part for part in why if part)
    summary = f"WhatsApp {change.field.replace('_', ' ')}: {what or 'changed'}"
    if reasons:
        summary += f" ({reasons})"
    return events.Notice(**change.head(change.whole()), level=level, summary=summary)


def _level(change: Change) -> str | None:
    """Return the importance of the change for staff; None if it has none."""
    value = change.value
    event = value.text("event")
    if change.field == "account_update":
        return "critical" if event in _ACCOUNT_TROUBLE else "info"
    if change.field == "account_alerts":
        severity = value.text("alert_severity").lower()
        return {"critical": "critical", "warning": "warning"}.get(severity, "info")
    if change.field == "account_review_update":
        return "warning" if value.text("decision") == "REJECTED" else "info"
    if change.field == "phone_number_quality_update":
        return "warning" if event in _NUMBER_TROUBLE else "info"
    if change.field == "message_template_status_update":
        return "warning" if event in _TEMPLATE_TROUBLE else None
    if change.field == "security":
        return "warning"
    if change.field == "group_status_update":
        kinds = [group.text("type") for group in value.objects("groups")]
        return "warning" if _GROUP_TROUBLE in kinds else None
    return None


# Read the Cloud API's statuses of messages that we sent.

STATUSES = ("sent", "delivered", "read", "played", "failed")


def read_status(change: Change, status: Any) -> events.Event:
    """Return one member of ``statuses`` as an event."""
    found = Fields.of(status)
    wamid, reached = found.text("id"), found.text("status")
    party, details = party_of(
        address=found.get("recipient_id"),
        user_ids=[found.get("recipient_user_id"), found.get("recipient_parent_user_id")],
        contacts=change.contacts,
    )
    raw = change.part(**details, statuses=[status])
    if not wamid:
        return change.ignored(raw, "a status without an id")
    key = f"status:{wamid}:{reached}"
    if reached not in STATUSES:
        return change.ignored(raw, f"unknown status {reached!r}", key)
    in_group = found.get("recipient_type") == "group"
    if in_group:
        # Each participant of a group reads the message separately.
        key += ":" + found.text("recipient_participant_id", "recipient_participant_user_id")
    error = Fields(next(iter(error_details(found.get("errors"))), {}))
    return events.StatusUpdate(
        **change.head(raw, key),
        provider_message_id=wamid,
        status=reached,
        timestamp=found.moment("timestamp", change.received_at),
        callback_id=found.text("biz_opaque_callback_data") or None,
        party=None if in_group or not (party.phone or party.bsuid) else party,
        error_code=error.whole("code"),
        error_text=": ".join(error[key] for key in ("title", "details") if key in error),
        stops_marketing=error.whole("code") == 131050,
    )


# Read calls: Meta reports that one begins, and that it is over.

_REFUSED = ("REJECTED", "DECLINED")


def read_call(change: Change, call: Any) -> events.Event:
    """Return one member of ``calls`` as a message of kind "call", once it is over."""
    found = Fields.of(call)
    call_id, event = found.text("id"), found.text("event")
    is_ours = found.text("direction") == "BUSINESS_INITIATED"
    side = "to" if is_ours else "from"
    party, details = party_of(
        address=found.get(side),
        user_ids=[found.get(f"{side}_user_id"), found.get(f"{side}_parent_user_id")],
        contacts=change.contacts,
    )
    raw = change.part(**details, calls=[call])
    if event != "terminate":
        return change.ignored(raw, f"a call that isn't over: {event or '(none)'}")
    if not (call_id and party.addresses()):
        return change.ignored(raw, "a call without an id or a person")
    content = events.call_content(*_call_end(found), is_ours=is_ours)
    return events.InboundMessage(
        **change.head(raw, f"call:{call_id}"),
        party=party,
        timestamp=found.moment("timestamp", change.received_at),
        provider_message_id=call_id,
        **vars(content),
        from_business=is_ours,
        business_address=change.business_number,
    )


def _call_end(call: Fields) -> tuple[str, int | None]:
    """Return how a call ended, and its length in seconds; one that was missed has none."""
    began, ended = call.whole("start_time"), call.whole("end_time")
    seconds = call.seconds("duration")
    if seconds is None and began is not None and ended is not None:
        seconds = ended - began
    if seconds and seconds > 0:
        return events.ENDED, seconds
    # Meta's documents show the status as a list, its webhooks as a text.
    statuses = {text_of(status).upper() for status in listed(call.get("status"))}
    return events.REJECTED if statuses.intersection(_REFUSED) else events.MISSED, None


# What the owner's phone shares when it is connected: old messages, and the address book.

Inbound = Callable[..., events.InboundMessage]
# Messages with the thread of each.
Piece = Sequence[tuple[Fields, Any]]
# A body holds thousands of messages. The webhook stores the first piece, the sweep the others.
FIRST_PIECE, PIECE = 50, 500
_NOT_SAID = ("reaction", "edit", "revoke", "system", "request_welcome")


def read_history(change: Change, inbound: Inbound) -> list[events.Event]:
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


def _old_messages(
    change: Change, piece: Piece, inbound: Inbound, *, is_first: bool
) -> events.OldMessages:
    threads = [{**thread, "messages": [message]} for thread, message in piece if thread]
    parts = {
        "history": [{"threads": threads}] if threads else [],
        "messages": [message for thread, message in piece if not thread],
        "contacts": change.value.get("contacts"),
    }
    raw = change.part(**{name: part for name, part in parts.items() if part})

    def read() -> list[events.InboundMessage]:
        every = [
            _old_message(change, thread, Fields.of(message), inbound) for thread, message in piece
        ]
        fitting = [events.with_ids_that_fit(event) for event in every if event is not None]
        return [event for event in fitting if isinstance(event, events.InboundMessage)]

    return events.OldMessages(**change.head(raw), read=read, is_first=is_first)


def _old_message(
    change: Change, thread: Fields, message: Fields, inbound: Inbound
) -> events.InboundMessage | None:
    """Return an old message; None for what is none. ``thread``: of the person, or empty."""
    wamid, own = message.text("id"), change.business_number
    if not wamid or message.text("type") in _NOT_SAID:
        return None
    sender, person = message.text("from"), thread.text("id")
    if person.endswith("@g.us") or message.text("group_id"):
        # Meta shares no groups; one is never stored as what a person wrote to us.
        return None
    is_ours = events.same_number(sender, own)
    if not own and person and sender:
        is_ours = not events.same_number(sender, person)
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


def read_address_book(change: Change) -> list[events.Event]:
    """Return the names that the owner saved. One that is removed stays as it is here."""
    names = {}
    for entry in change.value.objects("state_sync"):
        contact = entry.at("contact")
        name, phone = contact.text("full_name", "first_name"), contact.phone("phone_number")
        if name and phone and entry.text("action") != "remove":
            names[f"{phone}@c.us"] = name
    return [events.SavedContacts(**change.head(change.whole()), names=names)] if names else []
