"""Convert a Green API webhook body to events; each body has one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import (
    Event,
    InboundMessage,
    MessageEdited,
    MessageRevoked,
    Notice,
    OwnSend,
    Reaction,
    StatusUpdate,
    names_number,
    same_number,
    with_ids_that_fit,
)
from memoryproject.foundation.integrations.whatsapp.green.content import (
    read_content,
    shared_metadata,
)
from memoryproject.foundation.integrations.whatsapp.green.envelope import Body, real_text
from memoryproject.foundation.integrations.whatsapp.green.people import (
    client_of,
    group_of,
    person,
    sender_of,
)
from memoryproject.foundation.integrations.whatsapp.lenient import (
    first_text,
    mapping,
    number_shown,
    storable,
    text_of,
)
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import whatsapp_chat_of_provider

# Convert a Green API message (received, typed on the phone, or sent by our API) to an event.

RECEIVED = "incomingMessageReceived"
TYPED_ON_PHONE = "outgoingMessageReceived"
SENT_BY_API = "outgoingAPIMessageReceived"

_ABOUT_ANOTHER = ("reactionMessage", "editedMessage", "deletedMessage")


def read_message(body: Body) -> Event:
    """Return a body of one of the three message types as an event."""
    if not body.message_id:
        return body.ignored("a message without an id")
    key = message_key(body)
    data = mapping(body.raw.get("messageData"))
    provider_type = text_of(data.get("typeMessage"))
    if provider_type == "pollUpdateMessage":
        return body.ignored("a vote in a poll", key)
    if body.type == SENT_BY_API:
        return _own_send(body, data, key)
    sender_data = mapping(body.raw.get("senderData"))
    typed = body.type == TYPED_ON_PHONE
    party = client_of(sender_data, body.wid) if typed else sender_of(sender_data)
    if not party.addresses():
        return body.ignored("a message without a sender", key)
    about = {**body.head(key), "party": party, "timestamp": body.timestamp}
    if provider_type in _ABOUT_ANOTHER:
        return _about_another(body, data, about)
    return _inbound(body, data, about)


def message_key(body: Body) -> str:
    """Return a key that is unique for instance, type of webhook and message."""
    return f"{'message' if body.type == RECEIVED else body.type}:{body.message_id}"


def _own_send(body: Body, data: dict[str, Any], key: str) -> Event:
    if text_of(data.get("typeMessage")) in _ABOUT_ANOTHER:
        return body.ignored("a change that our own API call made", key)
    chat = text_of(mapping(body.raw.get("senderData")).get("chatId"))
    return OwnSend(
        **body.head(key),
        provider_message_id=body.message_id,
        whatsapp_chat=whatsapp_chat_of_provider(chat),
        text=read_content(data).text,
        timestamp=body.timestamp,
    )


def _about_another(body: Body, data: dict[str, Any], about: dict[str, Any]) -> Event:
    """Return a reaction, an edit or a deletion: all name another message of the same chat."""
    about["group_id"] = group_of(text_of(mapping(body.raw.get("senderData")).get("chatId")))
    provider_type, key = text_of(data.get("typeMessage")), message_key(body)
    extended = mapping(data.get("extendedTextMessageData"))
    quoted = mapping(data.get("quotedMessage"))
    found = mapping(data.get(f"{provider_type}Data"))
    target = next(
        (name for holder in (found, quoted, extended) if (name := first_text(holder, "stanzaId"))),
        "",
    )
    if not target:
        return body.ignored(f"{provider_type} that names no message", key)
    if provider_type == "deletedMessage":
        return MessageRevoked(**about, original_id=target)
    if provider_type == "reactionMessage":
        if body.type == TYPED_ON_PHONE:
            return body.ignored("a reaction by the business itself", key)
        return Reaction(**about, target_id=target, emoji=real_text(extended.get("text")))
    text = real_text(first_text(found, "textMessage", "text", "caption"))
    if not text:
        return body.ignored("an edit whose new content can't be read", key)
    return MessageEdited(**about, original_id=target, text=text)


def _inbound(body: Body, data: dict[str, Any], about: dict[str, Any]) -> InboundMessage:
    sender_data = mapping(body.raw.get("senderData"))
    content = read_content(data)
    quoted = mapping(data.get("quotedMessage"))
    extended = mapping(data.get("extendedTextMessageData"))
    group_id = group_of(text_of(sender_data.get("chatId")))
    # The object with a pressed button's message has another name for each type.
    pressed = next((inner for inner in map(mapping, data.values()) if "stanzaId" in inner), {})
    quoted_sender = first_text(quoted, "participant") or first_text(extended, "participant")
    own = body.business_number
    return InboundMessage(
        **about,
        provider_message_id=body.message_id,
        kind=content.kind,
        text=content.text,
        media=content.media,
        group_id=group_id,
        group_name=text_of(sender_data.get("chatName")) if group_id else "",
        reply_to_id=(
            first_text(quoted, "stanzaId")
            or first_text(extended, "stanzaId")
            or first_text(pressed, "stanzaId")
            or None
        ),
        mentions_us=group_id is not None and names_number(content.text, own),
        replies_to_us=bool(own) and same_number(quoted_sender, body.wid),
        from_business=body.type == TYPED_ON_PHONE,
        business_address=own,
        metadata={**content.metadata, **shared_metadata(data)},
    )


# Read Green API's reports on sent messages, the instance and its quotas.

_REACHED = ("sent", "delivered", "read", "played", "failed")
_FAILURES = {
    "noAccount": "The number has no WhatsApp account",
    "notInGroup": "The account is not a member of the group",
    "yellowCard": "WhatsApp holds back messages of this account (yellow card)",
    "noActiveSession": "The person's 24-hour window is closed",
}
_STATE_LEVELS = {
    "authorized": "info",
    "starting": "info",
    "notAuthorized": "critical",
    "blocked": "critical",
    "yellowCard": "critical",
    "suspended": "critical",
    "sleepMode": "warning",
}


def read_status(body: Body) -> Event:
    """Return the status of a message from an ``outgoingMessageStatus``."""
    reported = text_of(body.raw.get("status"))
    if not body.message_id:
        return body.ignored("a status without an id")
    key = f"{body.type}:{body.message_id}:{reported}"
    status = "failed" if reported in _FAILURES else reported
    if status not in _REACHED:
        return body.ignored(f"unknown status {reported!r}", key)
    described = first_text(body.raw, "description")
    reasons = [_FAILURES.get(reported, ""), described] if status == "failed" else []
    chat = text_of(body.raw.get("chatId"))
    party = person(chat)
    return StatusUpdate(
        **body.head(key),
        provider_message_id=body.message_id,
        status=status,
        timestamp=body.timestamp,
        party=party if group_of(chat) is None and party.addresses() else None,
        error_text=": ".join(reason for reason in reasons if reason),
    )


def read_state(body: Body) -> Event:
    """Return the event of a ``stateInstanceChanged``: whether the instance can send at all."""
    state = first_text(body.raw, "stateInstance")
    if not state:
        return body.ignored("a state that is not told")
    return Notice(
        **body.head(),
        level=_STATE_LEVELS.get(state, "warning"),
        summary=f"The Green API instance is now {state}",
    )


def read_quota(body: Body) -> Event:
    """Return the notice of an exhausted quota: messages to or from further chats are dropped."""
    quota = mapping(body.raw.get("quotaData"))
    used, total = number_shown(quota.get("used")), number_shown(quota.get("total"))
    method = first_text(quota, "method") or "unknown"
    counted = f" ({used} of {total})" if used and total else ""
    described = first_text(quota, "description")
    summary = f"Green API quota exceeded: {method}{counted}"
    return Notice(
        **body.head(),
        level="warning",
        summary=f"{summary}. {described}" if described else summary,
    )


_READERS: dict[str, Callable[[Body], Event]] = {
    RECEIVED: read_message,
    TYPED_ON_PHONE: read_message,
    SENT_BY_API: read_message,
    "outgoingMessageStatus": read_status,
    "stateInstanceChanged": read_state,
    "quotaExceeded": read_quota,
}


def parse_green(payload: Any, *, received_at: datetime | None = None) -> list[Event]:
    """Return the event of one webhook body, in a list (Ignored, if it requires no action).

    ``received_at`` (now, if not given; aware) replaces a timestamp that can't be read. Never
    raises, for any JSON payload.
    """
    found = storable(payload)
    known = isinstance(found, dict)
    body = Body(
        raw=found if known else {"payload": found},
        received_at=received_at or datetime.now(timezone.utc),
    )
    if not known:
        return [body.ignored("the body is not an object")]
    reader = _READERS.get(body.type)
    # Green API's own examples show a quota under another type's name.
    if reader is None and body.raw.get("quotaData"):
        reader = read_quota
    if reader is None:
        return [body.ignored(f"webhook type {body.type or '(none)'!r} needs nothing")]
    return [with_ids_that_fit(reader(body))]
