"""Read the content of a Cloud API message by its type."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoryproject.foundation.integrations import lenient
from memoryproject.foundation.integrations.whatsapp import events
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import whatsapp_chat_of_provider
from memoryproject.foundation.text.phone_numbers import phone_forms

# Country code and an id, with ENT between them if it is a parent id.
_BSUID = re.compile(r"[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,160}")


def bsuid_of(*values: Any) -> str:
    """Return the first of the values that looks like a business-scoped user id."""
    return next((text for value in values if _BSUID.fullmatch(text := lenient.text_of(value))), "")


def party_of(
    *, address: Any, user_ids: list[Any], contacts: list[lenient.Fields]
) -> tuple[events.Party, dict[str, Any]]:
    """Return a person by their address (phone; may be absent since 2026) and user ids.

    Returns the person, and the part of the body with further details of the person, if there is
    one. A contact counts only if one of its ids is the person's, or if it is alone and has no id at
    all.
    """
    phone = lenient.phone_digits(address)
    bsuid = bsuid_of(*user_ids, address)
    other = "" if phone or bsuid else whatsapp_chat_of_provider(lenient.text_of(address))
    contact = _matching(contacts, phone, bsuid)
    profile = contact.at("profile")
    party = events.Party(
        phone=phone or contact.phone("wa_id") or None,
        bsuid=bsuid or bsuid_of(contact.get("user_id")) or None,
        other=other or None,
        name=profile.text("name"),
        username=(profile.text("username") or contact.text("username")).lstrip("@"),
    )
    return party, {"contacts": [contact]} if contact else {}


def _matching(contacts: list[lenient.Fields], phone: str, bsuid: str) -> lenient.Fields:
    # A contact's number may have another form than the sender's. The same form comes first.
    for form in phone_forms(phone):
        for contact in contacts:
            same_phone = phone and contact.phone("wa_id") == form
            if same_phone or (
                bsuid and bsuid in (contact.text("user_id"), contact.text("parent_user_id"))
            ):
                return contact
    alone = contacts[0] if len(contacts) == 1 else lenient.Fields()
    return lenient.Fields() if alone.get("wa_id") or alone.get("user_id") else alone


@dataclass(frozen=True)
class Change:
    """A change with its surrounding entry. ``value`` is empty where it was no object."""

    entry: dict[str, Any]
    field: str
    value: lenient.Fields
    received_at: datetime

    @property
    def number_id(self) -> str:
        return self.value.at("metadata").text("phone_number_id")

    @property
    def business_number(self) -> str:
        """Our own number's digits."""
        return self.value.at("metadata").phone("display_phone_number")

    @property
    def contacts(self) -> list[lenient.Fields]:
        return self.value.objects("contacts")

    def part(self, **parts: Any) -> dict[str, Any]:
        """Return a webhook body with only these parts of the value and our identification.

        It doesn't depend on the rest of the same delivery, because a retry may be batched
        differently.
        """
        names = ("messaging_product", "metadata")
        kept: dict[str, Any] = {name: self.value[name] for name in names if name in self.value}
        return self._body({**kept, **parts})

    def whole(self) -> dict[str, Any]:
        """Return a webhook body that holds this change alone."""
        return self._body(dict(self.value))

    def _body(self, value: dict[str, Any]) -> dict[str, Any]:
        around = {key: self.entry[key] for key in ("id", "time") if key in self.entry}
        change = {"field": self.field, "value": value}
        return {"object": "whatsapp_business_account", "entry": [{**around, "changes": [change]}]}

    def head(self, raw: dict[str, Any], key: str = "") -> dict[str, Any]:
        """Return the fields that every event has."""
        return lenient.event_head("cloud", self.number_id, raw, key=key, label=self.field)

    def ignored(self, raw: dict[str, Any], reason: str, key: str = "") -> events.Ignored:
        return events.Ignored(**self.head(raw, key), reason=reason)


def unreadable(raw: dict[str, Any], reason: str) -> events.Ignored:
    """Return the event for a body, or a part of one, that can't be read."""
    return events.Ignored(
        **lenient.event_head("cloud", "", raw, key="", label="unreadable"), reason=reason
    )


Reader = Callable[[lenient.Fields], events.Content | None]


def read_content(message: lenient.Fields) -> events.Content:
    """Return the content of a message.

    The kind is "unsupported" if the type is new or its object is missing.
    """
    provider_type = message.text("type")
    reader = _READERS.get(provider_type)
    content = reader(message) if reader else None
    if content is None:
        subtype = message.at("unsupported").text("type")
        return events.unsupported(provider_type or "(none)", unsupported_type=subtype)
    return content


def error_details(errors: Any) -> list[dict[str, Any]]:
    """Return the errors with their code, title and details, in both formats that Meta has used."""
    found = []
    for error in map(lenient.Fields.of, lenient.listed(errors)):
        found.append(
            lenient.compact(
                code=error.get("code") if isinstance(error.get("code"), (int, str)) else None,
                title=error.text("title", "message"),
                details=error.at("error_data").text("details") or error.text("details"),
            )
        )
    return [error for error in found if error]


def _text(message: lenient.Fields) -> events.Content | None:
    body = message.at("text").get("body")
    return events.Content(kind="text", text=body) if isinstance(body, str) else None


def _media(kind: str) -> Reader:
    def read(message: lenient.Fields) -> events.Content | None:
        found = message.at(kind)
        media = events.Media(
            media_id=found.text("id"),
            url=found.text("url"),
            mime_type=found.text("mime_type"),
            sha256=found.text("sha256"),
            filename=found.text("filename"),
        )
        if not media.as_dict():
            return None
        return events.Content(
            kind="voice" if kind == "audio" and found.flag("voice") else kind,
            text=found.text("caption"),
            media=media,
            metadata=lenient.compact(animated=found.flag("animated")),
        )

    return read


def _location(message: lenient.Fields) -> events.Content | None:
    place = message.at("location")
    return events.location_content(
        name=place.text("name"), address=place.text("address"), place=place
    )


def _contacts(message: lenient.Fields) -> events.Content | None:
    return events.contacts_content(map(_card, message.objects("contacts")))


def _card(card: lenient.Fields) -> events.Card:
    named, work = card.at("name"), card.at("org")
    parts = [named.text(key) for key in ("first_name", "last_name")]
    name = named.text("formatted_name") or " ".join(part for part in parts if part)
    phones = [phone for entry in card.objects("phones") if (phone := entry.text("phone", "wa_id"))]
    emails = [email for entry in card.objects("emails") if (email := entry.text("email"))]
    if phones or emails or work:
        return events.Card(
            name, phones, emails, work.text("company"), work.text("title", "department")
        )
    return events.vcard_card(card.text("vcard"), name)


def _interactive(message: lenient.Fields) -> events.Content | None:
    found = message.at("interactive")
    subtype = found.text("type")
    reply = found.at(subtype)
    if subtype in ("button_reply", "list_reply"):
        return events.button_content(
            kind="interactive",
            title=reply.text("title"),
            id=reply.get("id"),
            description=reply.get("description"),
        )
    if subtype == "nfm_reply":
        return _flow(reply)
    if subtype == "call_permission_reply" and reply.text("response"):
        return events.Content("interactive", text=f"Call permission: {reply['response']}")
    # A question with buttons, or a list, that the business's phone has sent.
    return events.unsupported(f"interactive {subtype}".strip(), found.at("body").text("text"))


def _flow(reply: lenient.Fields) -> events.Content:
    try:
        answers = lenient.Fields.of(json.loads(reply.text("response_json")))
    except (ValueError, RecursionError):
        answers = lenient.Fields()
    answers.pop("flow_token", None)
    fields = [f"{key}: {_answer_shown(value)}" for key, value in answers.items()]
    return events.Content(
        kind="interactive",
        text="; ".join(fields) or reply.text("body"),
        metadata=lenient.compact(flow=lenient.compact(name=reply.text("name"), response=answers)),
    )


def _answer_shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _button(message: lenient.Fields) -> events.Content | None:
    pressed = message.at("button")
    return events.button_content(
        kind="button", title=pressed.text("text"), payload=pressed.get("payload")
    )


def _order(message: lenient.Fields) -> events.Content | None:
    order = message.at("order")
    lines = [_order_line(item) for item in order.objects("product_items")]
    items = "; ".join(line for line in lines if line)
    note = order.text("text")
    if not (items or note):
        return None
    return events.Content(
        kind="order",
        text="\n".join(part for part in (note, items) if part),
        metadata={"order": dict(order)},
    )


def _order_line(item: lenient.Fields) -> str:
    product = item.text("product_retailer_id")
    price = lenient.number_shown(item.get("item_price"))
    cost = " ".join(part for part in (price, item.text("currency")) if part)
    if not product:
        return ""
    counted = f"{lenient.number_shown(item.get('quantity')) or '1'} × {product}"
    return f"{counted} ({cost})" if price else counted


_READERS: dict[str, Reader] = {
    "text": _text,
    **{kind: _media(kind) for kind in ("image", "video", "audio", "document", "sticker")},
    "location": _location,
    "contacts": _contacts,
    "interactive": _interactive,
    "button": _button,
    "order": _order,
}
