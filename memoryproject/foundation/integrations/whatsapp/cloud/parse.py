"""Verify a Cloud API webhook body and turn it into events."""

import hashlib
import hmac
import re
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from typing import Any

from memoryproject.foundation.integrations import lenient
from memoryproject.foundation.integrations.whatsapp import events
from memoryproject.foundation.integrations.whatsapp.cloud import notices
from memoryproject.foundation.integrations.whatsapp.cloud.content import (
    Change,
    bsuid_of,
    error_details,
    party_of,
    read_content,
    unreadable,
)


def read_message(change: Change, message: Any, *, echo: bool = False) -> events.Event:
    """Return one member of ``messages``, or of ``message_echoes`` (``echo``), as an event."""
    part_name = "message_echoes" if echo else "messages"
    found = lenient.Fields.of(message)
    wamid = found.text("id")
    if not wamid:
        return change.ignored(change.part(**{part_name: [message]}), "a message without an id")
    party, parts = _party(change, found, echo=echo)
    parts[part_name] = [message]
    provider_type = found.text("type")
    if _lacks_its_object(found) and change.value.get("errors"):
        parts["errors"] = change.value["errors"]
    head = change.head(change.part(**parts), f"message:{wamid}")
    if provider_type == "system":
        return read_system(change, found, head)
    if not party.addresses():
        return events.Ignored(**head, reason="a message without a sender")
    about = {
        **head,
        "party": party,
        "timestamp": found.moment("timestamp", change.received_at),
        "group_id": found.text("group_id") or None,
    }
    if provider_type == "request_welcome":
        return events.Ignored(**head, reason="the person only opened the chat")
    if provider_type in ("reaction", "edit", "revoke"):
        event = _about_another(found, about, echo=echo)
        return events.Ignored(**head, reason=event) if isinstance(event, str) else event
    return _inbound(change, found, about, echo=echo)


def _party(
    change: Change, message: lenient.Fields, *, echo: bool
) -> tuple[events.Party, dict[str, Any]]:
    side = "to" if echo else "from"
    if echo and message.get("group_id"):
        return events.Party(phone=change.business_number or None), {}
    return party_of(
        address=message.get(side),
        user_ids=[message.get(f"{side}_user_id"), message.get(f"{side}_parent_user_id")],
        contacts=change.contacts,
    )


def _lacks_its_object(message: lenient.Fields) -> bool:
    """Return whether the message lacks its object.

    Meta sends a message that it can't pass on without its object and without errors of its own. The
    reason is then next to the messages.
    """
    return not message.get(message.text("type")) and not message.get("errors")


def _about_another(
    message: lenient.Fields, about: dict[str, Any], *, echo: bool
) -> events.Event | str:
    """Return a reaction, an edit or a revocation: all name another message of the same chat.

    Returns a text with the reason if it requires no action.
    """
    provider_type = message.text("type")
    found = message.at(provider_type)
    target = found.text("message_id" if provider_type == "reaction" else "original_message_id")
    if not target:
        return f"a {provider_type} that names no message"
    if provider_type == "revoke":
        return events.MessageRevoked(**about, original_id=target)
    if provider_type == "reaction":
        if echo:
            return "a reaction by the business itself"
        return events.Reaction(**about, target_id=target, emoji=found.text("emoji"))
    content = read_content(found.at("message"))
    if content.kind == "unsupported":
        return "an edit whose new content can't be read"
    return events.MessageEdited(**about, original_id=target, text=content.text, media=content.media)


def _inbound(
    change: Change, message: lenient.Fields, about: dict[str, Any], *, echo: bool
) -> events.InboundMessage:
    content = read_content(message)
    context = message.at("context")
    own = change.business_number
    return events.InboundMessage(
        **about,
        provider_message_id=message.text("id"),
        kind=content.kind,
        text=content.text,
        media=content.media,
        reply_to_id=context.text("id") or None,
        mentions_us=about["group_id"] is not None and events.names_number(content.text, own),
        replies_to_us=events.same_number(context.text("from"), own),
        from_business=echo,
        business_address=own,
        metadata=_metadata(change, message, content, about["party"]),
    )


def _metadata(
    change: Change, message: lenient.Fields, content: events.Content, party: events.Party
) -> dict[str, Any]:
    context = message.at("context")
    errors = error_details(message.get("errors"))
    if not errors and _lacks_its_object(message):
        errors = error_details(change.value.get("errors"))
    return {
        **content.metadata,
        **lenient.compact(
            errors=errors,
            forwarded=context.flag("forwarded"),
            frequently_forwarded=context.flag("frequently_forwarded"),
            referral=dict(message.at("referral")),
            referred_product=dict(context.at("referred_product")),
            username=party.username,
            origin=message.text("origin"),
        ),
    }


_PREFIX = "sha256="
_SIGNATURE = re.compile(r"sha256=\s*[0-9a-fA-F]{64}\s*")


def is_signature(header: str | None) -> bool:
    """Return whether the header (``X-Hub-Signature-256``) may be a signature at all."""
    return header is not None and _SIGNATURE.fullmatch(header) is not None


def verify_signature(*, secret: str, body: bytes, header: str | None) -> bool:
    """Return whether the header (``X-Hub-Signature-256``) is the body's HMAC with the app secret.

    ``body`` is the request's raw bytes: Meta signs them with non-ASCII characters escaped, so JSON
    that was parsed and written again has another signature. An empty secret or header is never
    valid. The comparison takes constant time.
    """
    if not secret or not header or not header.startswith(_PREFIX):
        return False
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    given = header[len(_PREFIX) :].strip().lower()
    return hmac.compare_digest(expected.encode(), given.encode(errors="replace"))


def parse_cloud(payload: Any, *, received_at: datetime | None = None) -> list[events.Event]:
    """Return all events of a webhook body in order, at least one (Ignored, if nothing else).

    ``received_at`` (now, if not given; aware) replaces timestamps that can't be read. Never raises,
    for any JSON payload.
    """
    received = received_at or datetime.now(timezone.utc)
    body = lenient.storable(payload)
    if not isinstance(body, dict):
        return [unreadable({"payload": body}, "the body is not an object")]
    every: list[events.Event] = []
    for entry in lenient.listed(body.get("entry")):
        every.extend(_entry_events(entry, received))
    fitting = [events.with_ids_that_fit(event) for event in every]
    return fitting or [unreadable(body, "the body has no entry")]


def _entry_events(entry: Any, received_at: datetime) -> list[events.Event]:
    every: list[events.Event] = []
    for found in lenient.listed(lenient.Fields.of(entry).get("changes")):
        if not isinstance(found, dict) or not isinstance(found.get("value"), dict):
            raw = {"entry": [{**entry, "changes": [found]}]}
            every.append(unreadable(raw, "a change without a value"))
            continue
        change = Change(
            entry=entry,
            field=lenient.Fields(found).text("field"),
            value=lenient.Fields(found["value"]),
            received_at=received_at,
        )
        every.extend(_change_events(change))
    return every or [unreadable({"entry": [entry]}, "an entry without changes")]


def _change_events(change: Change) -> list[events.Event]:
    if change.field == "history":
        every = notices.read_history(change, _inbound)
    elif change.field == "smb_app_state_sync":
        every = notices.read_address_book(change)
    else:
        every = [
            read(change, item)
            for name, read in _READERS.get(change.field, {}).items()
            for item in lenient.listed(change.value.get(name))
        ]
    if change.field == "messages" and not every:
        return [change.ignored(change.whole(), "a change with nothing in it")]
    return every or [notices.read_account_field(change)]


def read_preference(change: Change, preference: Any) -> events.Event:
    """Return one member of ``user_preferences``: whether a person wants marketing messages."""
    found = lenient.Fields.of(preference)
    is_named = found.text("wa_id", "user_id", "parent_user_id") or len(change.contacts) != 1
    person = found if is_named else change.contacts[0]
    party, details = party_of(
        address=person.get("wa_id"),
        user_ids=[person.get("user_id"), person.get("parent_user_id")],
        contacts=change.contacts,
    )
    raw = change.part(**details, user_preferences=[preference])
    category, value = found.text("category").lower(), found.text("value").lower()
    if category != "marketing_messages" or value not in ("stop", "resume"):
        return change.ignored(raw, f"user preference {category} {value}".strip())
    if not party.addresses():
        return change.ignored(raw, "a user preference of nobody")
    return events.MarketingChoice(
        **change.head(raw),
        party=party,
        is_stopped=value == "stop",
        timestamp=found.moment("timestamp", change.received_at),
    )


# Read the Cloud API's changes of a person's addresses: a new number, a new user id.


# The names of a change of address; "customer_…" is the older spelling.
_CHANGES = (
    "user_changed_number",
    "customer_changed_number",
    "user_changed_user_id",
    "customer_changed_user_id",
)
_FROM_TO = re.compile(r"from (\S+) to (\S+)")


def read_system(change: Change, message: lenient.Fields, head: dict[str, Any]) -> events.Event:
    """Convert a message of type ``system`` to an AddressChanged, or to Ignored with the reason."""
    system = message.at("system")
    kind, choice = system.text("type"), system.text("marketing").lower()
    bsuid = bsuid_of(message.get("from_user_id"), message.get("from"))
    person = events.Party(phone=message.phone("from") or None, bsuid=bsuid or None)
    if kind == "user_preference_changed" and choice in ("stop", "resume") and person.addresses():
        at = message.moment("timestamp", change.received_at)
        return events.MarketingChoice(
            **head, party=person, is_stopped=choice == "stop", timestamp=at
        )
    if kind not in _CHANGES:
        return events.Ignored(**head, reason=f"system message {kind or 'without a type'}")
    old, new = _old(message, system), _new(system)
    if not old.addresses() or not new.addresses():
        return events.Ignored(**head, reason=f"{kind} that names only one address")
    return events.AddressChanged(
        **head, old=old, new=new, timestamp=message.moment("timestamp", change.received_at)
    )


def _old(message: lenient.Fields, system: lenient.Fields) -> events.Party:
    written = _FROM_TO.search(system.text("body"))
    before = written.group(1) if written else ""
    current = _new_user_id(system)
    named = bsuid_of(
        system.get("previous_user_id"),
        system.get("old_user_id"),
        system.at("user_id").get("previous"),
        before,
        message.get("from_user_id"),
        message.get("from"),
    )
    phone = message.phone("from") or system.phone("customer")
    return events.Party(
        phone=phone or lenient.phone_digits(before) or None,
        bsuid=named if named != current else None,
    )


def _new(system: lenient.Fields) -> events.Party:
    written = _FROM_TO.search(system.text("body"))
    after = written.group(2).rstrip(".") if written else ""
    phone = lenient.phone_digits(system.text("wa_id", "new_wa_id")) or lenient.phone_digits(after)
    return events.Party(phone=phone or None, bsuid=_new_user_id(system) or bsuid_of(after) or None)


def _new_user_id(system: lenient.Fields) -> str:
    return bsuid_of(
        system.get("user_id"), system.get("new_user_id"), system.at("user_id").get("current")
    )


def read_user_id_update(change: Change, update: Any) -> events.Event:
    """Return one member of ``user_id_update``: a person's old and new business-scoped id."""
    found = lenient.Fields.of(update)
    ids = found.at("user_id")
    current, previous = bsuid_of(ids.get("current")), bsuid_of(ids.get("previous"))
    party, details = party_of(
        address=found.get("wa_id"), user_ids=[current], contacts=change.contacts
    )
    raw = change.part(**{"contacts": [], **details}, user_id_update=[update])
    if not (current and previous):
        return change.ignored(raw, "user_id_update that doesn't name both ids")
    return events.AddressChanged(
        **change.head(raw),
        old=events.Party(bsuid=previous),
        new=party,
        timestamp=found.moment("timestamp", change.received_at),
    )


Readers = dict[str, Callable[[Change, Any], events.Event]]
# The readers of what the lists of a field's change hold.
_ECHOES: Readers = {"message_echoes": partial(read_message, echo=True)}
_READERS: dict[str, Readers] = {
    "messages": {
        "messages": read_message,
        "statuses": notices.read_status,
        "errors": notices.read_error,
    },
    "smb_message_echoes": _ECHOES,
    "message_echoes": _ECHOES,
    "calls": {"calls": notices.read_call},
    "user_id_update": {"user_id_update": read_user_id_update},
    "user_preferences": {"user_preferences": read_preference},
}
