"""Verify a Green API webhook and convert its body to events; each body has one."""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from memoryproject.foundation.integrations import lenient
from memoryproject.foundation.integrations.whatsapp import events
from memoryproject.foundation.integrations.whatsapp.green.content import (
    read_call_end,
    read_content,
    read_vote,
    real_text,
    shared_metadata,
)
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    GROUP_DOMAIN,
    LID_DOMAIN,
    PERSON_DOMAINS,
    whatsapp_chat_of_provider,
)

RECEIVED = "incomingMessageReceived"
TYPED_ON_PHONE = "outgoingMessageReceived"
CALLED_BY_US = "outgoingCall"
SENT_BY_API = "outgoingAPIMessageReceived"
VOTE = "pollUpdateMessage"
_TO_MANY = ("broadcast", "newsletter")
_ABOUT_ANOTHER = ("reactionMessage", "editedMessage", "deletedMessage")


def verify_token(*, expected: str, header: str | None) -> bool:
    """Return whether the ``Authorization`` header's second word is the configured webhook token.

    Green API sends ``Bearer <token>``; the scheme is ignored, and a header of one word is the token
    itself. False while no token is configured. The comparison takes the same time for wrong tokens
    of any length, in any alphabet.
    """
    words = (header or "").split()
    if not expected or not 1 <= len(words) <= 2:
        return False
    return hmac.compare_digest(_digest(words[-1]), _digest(expected))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def parse_green(payload: Any, *, received_at: datetime | None = None) -> list[events.Event]:
    """Return the event of one webhook body, in a list (Ignored, if it requires no action).

    ``received_at`` (now, if not given; aware) replaces a timestamp that can't be read. Never
    raises, for any JSON payload.
    """
    found = lenient.storable(payload)
    known = isinstance(found, dict)
    body = Body(
        raw=lenient.Fields(found if known else {"payload": found}),
        received_at=received_at or datetime.now(timezone.utc),
    )
    if not known:
        return [body.ignored("the body is not an object")]
    reader = _READERS.get(body.type)
    # Green API's own examples show a quota under another type's name.
    if reader is None and body.raw.get("quotaData"):
        reader = _read_quota
    if reader is None:
        return [body.ignored(f"webhook type {body.type or '(none)'!r} needs nothing")]
    return [events.with_ids_that_fit(reader(body))]


@dataclass(frozen=True)
class Body:
    """One webhook body and the time when it arrived."""

    raw: lenient.Fields
    received_at: datetime

    @property
    def type(self) -> str:
        return self.raw.text("typeWebhook")

    @property
    def message_id(self) -> str:
        return self.raw.text("idMessage")

    @property
    def message_key(self) -> str:
        """A key that is unique for instance, type of webhook and message."""
        return f"{'message' if self.type == RECEIVED else self.type}:{self.message_id}"

    @property
    def wid(self) -> str:
        """Our own account, as ``…@c.us``; empty while the instance is not authorised."""
        return self.raw.at("instanceData").text("wid")

    @property
    def own_lid(self) -> str:
        """Our own hidden id, as ``…@lid``, which a message of ours may show; else empty."""
        chat, sender = self.sender.text("chatId"), self.sender.text("sender")
        lid = whatsapp_chat_of_provider(sender)
        is_ours = self.type != RECEIVED and sender != chat and lid.endswith(f"@{LID_DOMAIN}")
        return lid if is_ours else ""

    @property
    def sender(self) -> lenient.Fields:
        return self.raw.at("senderData")

    @property
    def timestamp(self) -> datetime:
        return self.raw.moment("timestamp", self.received_at)

    def head(self, key: str = "") -> dict[str, Any]:
        """Return the fields that every event has."""
        number_id = self.raw.at("instanceData").text("idInstance")
        return lenient.event_head("green", number_id, dict(self.raw), key=key, label=self.type)

    def ignored(self, reason: str, key: str = "") -> events.Ignored:
        return events.Ignored(**self.head(key), reason=reason)


# A message: received, typed on the phone, or sent by our API.


def _read_message(body: Body) -> events.Event:
    if not body.message_id:
        return body.ignored("a message without an id")
    key = body.message_key
    if body.sender.text("chatId").partition("@")[2].lower() in _TO_MANY:
        # Nobody's address: as one, it would make one person of all who write there.
        return body.ignored("a status update, or a message of a channel", key)
    data = body.raw.at("messageData")
    provider_type = data.text("typeMessage")
    if body.type == SENT_BY_API:
        if provider_type in (*_ABOUT_ANOTHER, VOTE):
            return body.ignored("a change that our own API call made", key)
        return events.OwnSend(
            **body.head(key),
            provider_message_id=body.message_id,
            whatsapp_chat=whatsapp_chat_of_provider(body.sender.text("chatId")),
            text=read_content(data).text,
            timestamp=body.timestamp,
            business_lid=body.own_lid,
        )
    party = _client_of(body) if body.type == TYPED_ON_PHONE else _sender_of(body.sender)
    if not party.addresses():
        return body.ignored("a message without a sender", key)
    group_id = _group_of(body.sender.text("chatId"))
    about = {**body.head(key), "party": party, "timestamp": body.timestamp, "group_id": group_id}
    if provider_type in _ABOUT_ANOTHER:
        return _about_another(body, data, about)
    return _inbound(body, data, about)


def _about_another(body: Body, data: lenient.Fields, about: dict[str, Any]) -> events.Event:
    """Return a reaction, an edit or a deletion: all name another message of the same chat."""
    provider_type, key = data.text("typeMessage"), body.message_key
    found, extended = data.at(f"{provider_type}Data"), data.at("extendedTextMessageData")
    target = (
        found.text("stanzaId")
        or data.at("quotedMessage").text("stanzaId")
        or extended.text("stanzaId")
    )
    if not target:
        return body.ignored(f"{provider_type} that names no message", key)
    if provider_type == "deletedMessage":
        return events.MessageRevoked(**about, original_id=target)
    if provider_type == "reactionMessage":
        if body.type == TYPED_ON_PHONE:
            return body.ignored("a reaction by the business itself", key)
        return events.Reaction(**about, target_id=target, emoji=real_text(extended.get("text")))
    text = real_text(found.text("textMessage", "text", "caption"))
    if not text:
        return body.ignored("an edit whose new content can't be read", key)
    return events.MessageEdited(**about, original_id=target, text=text)


def _inbound(body: Body, data: lenient.Fields, about: dict[str, Any]) -> events.InboundMessage:
    is_vote = data.text("typeMessage") == VOTE
    content = read_vote(data, body.sender.text("sender")) if is_vote else read_content(data)
    quoted, extended = data.at("quotedMessage"), data.at("extendedTextMessageData")
    # The object with a pressed button's message has another name for each type.
    pressed = next(
        (inner for inner in map(lenient.Fields.of, data.values()) if "stanzaId" in inner),
        lenient.Fields(),
    )
    quoted_sender = quoted.text("participant") or extended.text("participant")
    own = lenient.phone_digits(body.wid.partition("@")[0])
    in_group = about["group_id"] is not None
    return events.InboundMessage(
        **about,
        provider_message_id=body.message_id,
        kind=content.kind,
        text=content.text,
        media=content.media,
        group_name=body.sender.text("chatName") if about["group_id"] else "",
        reply_to_id=(
            quoted.text("stanzaId") or extended.text("stanzaId") or pressed.text("stanzaId") or None
        ),
        mentions_us=in_group and events.names_number(content.text, own),
        replies_to_us=bool(own) and events.same_number(quoted_sender, body.wid),
        from_business=body.type == TYPED_ON_PHONE,
        business_address=own,
        business_lid=body.own_lid,
        metadata={**content.metadata, **shared_metadata(data)},
    )


# The people of a message: phones, groups, and other forms of addresses.


def _phone_of(address: str) -> str:
    """Return the phone of ``79…@c.us``, else nothing: other forms hold no phone number."""
    name, _, domain = address.partition("@")
    return lenient.phone_digits(name.partition(":")[0]) if domain.lower() in PERSON_DOMAINS else ""


def _group_of(address: str) -> str | None:
    """Return the group's id before ``@g.us``, None for a person's chat."""
    name, _, domain = address.partition("@")
    return (name or None) if domain.lower() == GROUP_DOMAIN else None


def _person(*addresses: str, name: str = "", phone: str = "") -> events.Party:
    """Return a person with one or several addresses; ``phone`` is one given separately."""
    phones = [found for address in addresses if (found := _phone_of(address))]
    others = [
        whatsapp_chat_of_provider(address)
        for address in addresses
        if "@" in address and not _phone_of(address) and _group_of(address) is None
    ]
    return events.Party(
        phone=next(iter(phones), phone) or None, other=next(filter(None, others), None), name=name
    )


def _sender_of(sender_data: lenient.Fields) -> events.Party:
    """Return the author of an incoming message: in a group the sender, else the chat's person."""
    chat, sender = sender_data.text("chatId"), sender_data.text("sender")
    name = sender_data.text("senderName", "senderContactName")
    phone = sender_data.phone("senderPhoneNumber")
    if _group_of(chat) is not None:
        return _person(sender, name=name, phone=phone)
    return _person(chat, sender, name=name or sender_data.text("chatName"), phone=phone)


def _client_of(body: Body) -> events.Party:
    """Return the person that the owner wrote to from the phone; in a group, only ourselves."""
    chat = body.sender.text("chatId")
    if _group_of(chat) is not None:
        return _person(body.sender.text("sender") or body.wid)
    return _person(chat, name=body.sender.text("chatName"))


# Reports on sent messages, the instance and its quotas.

_REACHED = ("sent", "delivered", "read", "played", "failed")
_FAILURES = {
    "noAccount": "The number has no WhatsApp account",
    "notInGroup": "The account is not a member of the group",
    "yellowCard": "WhatsApp holds back messages of this account (yellow card)",
    "noActiveSession": "The person's 24-hour window is closed",
}
_STATE_LEVELS = {
    **{"authorized": "info", "starting": "info", "sleepMode": "warning"},
    **dict.fromkeys(("notAuthorized", "blocked", "yellowCard", "suspended"), "critical"),
}


# Of the other states nothing is known: the instance may send again in a moment.
_ACCEPTED = {"authorized": True, "notAuthorized": False, "blocked": False, "suspended": False}


def _read_status(body: Body) -> events.Event:
    """Return the status of a message from an ``outgoingMessageStatus``."""
    reported = body.raw.text("status")
    if not body.message_id:
        return body.ignored("a status without an id")
    key = f"{body.type}:{body.message_id}:{reported}"
    status = "failed" if reported in _FAILURES else reported
    if status not in _REACHED:
        return body.ignored(f"unknown status {reported!r}", key)
    reasons = [_FAILURES.get(reported, ""), body.raw.text("description")]
    chat = body.raw.text("chatId")
    party = _person(chat)
    return events.StatusUpdate(
        **body.head(key),
        provider_message_id=body.message_id,
        status=status,
        timestamp=body.timestamp,
        party=party if _group_of(chat) is None and party.addresses() else None,
        error_text=": ".join(filter(None, reasons)) if status == "failed" else "",
    )


def _read_state(body: Body) -> events.Event:
    """Return the event of a ``stateInstanceChanged``: whether the instance can send at all."""
    state = body.raw.text("stateInstance")
    if not state:
        return body.ignored("a state that is not told")
    return events.Notice(
        **body.head(),
        level=_STATE_LEVELS.get(state, "warning"),
        summary=f"The Green API instance is now {state}",
        accepts=_ACCEPTED.get(state),
        state=state,
    )


def _read_quota(body: Body) -> events.Event:
    """Return the notice of an exhausted quota: messages to or from further chats are dropped."""
    quota = body.raw.at("quotaData")
    used, total = lenient.number_shown(quota.get("used")), lenient.number_shown(quota.get("total"))
    summary = f"Green API quota exceeded: {quota.text('method') or 'unknown'}"
    if used and total:
        summary += f" ({used} of {total})"
    if described := quota.text("description"):
        summary += f". {described}"
    return events.Notice(**body.head(), level="warning", summary=summary)


def _read_call(body: Body) -> events.Event:
    """Return a call that is over as a message of kind "call"."""
    is_ours = body.type == CALLED_BY_US
    party = _person(body.raw.text("to", "from") if is_ours else body.raw.text("from"))
    content = read_call_end(body.raw, is_ours=is_ours)
    if content is None:
        return body.ignored(f"a call that isn't over: {body.raw.text('status') or '(none)'}")
    if not (body.message_id and party.addresses()):
        return body.ignored("a call without an id or a person")
    return events.InboundMessage(
        **body.head(f"call:{body.message_id}"),
        party=party,
        timestamp=body.timestamp,
        provider_message_id=body.message_id,
        **vars(content),
        from_business=is_ours,
        business_address=lenient.phone_digits(body.wid.partition("@")[0]),
    )


_READERS: dict[str, Callable[[Body], events.Event]] = {
    RECEIVED: _read_message,
    TYPED_ON_PHONE: _read_message,
    SENT_BY_API: _read_message,
    "outgoingMessageStatus": _read_status,
    "stateInstanceChanged": _read_state,
    "quotaExceeded": _read_quota,
    "incomingCall": _read_call,
    CALLED_BY_US: _read_call,
}
