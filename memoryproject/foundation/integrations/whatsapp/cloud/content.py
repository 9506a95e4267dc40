"""Read the content of a Cloud API message by its type."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.integrations.whatsapp.lenient import (
    compact,
    first_text,
    flag,
    listed,
    mapping,
    number_shown,
    text_of,
)
from memoryproject.foundation.integrations.whatsapp.message_content import (
    Content,
    button_content,
    contacts_content,
    location_content,
    unsupported,
    vcard_person,
)


def read_content(message: dict[str, Any]) -> Content:
    """Return the content of a message.

    The kind is "unsupported" if the type is new or its object is missing.
    """
    provider_type = text_of(message.get("type"))
    reader = _READERS.get(provider_type)
    content = reader(message) if reader else None
    if content is None:
        subtype = text_of(mapping(message.get("unsupported")).get("type"))
        return unsupported(provider_type or "(none)", unsupported_type=subtype)
    return content


def error_details(errors: Any) -> list[dict[str, Any]]:
    """Return the errors with their code, title and details, in both formats that Meta has used."""
    found = []
    for error in map(mapping, listed(errors)):
        details = first_text(mapping(error.get("error_data")), "details")
        found.append(
            compact(
                code=error.get("code") if isinstance(error.get("code"), (int, str)) else None,
                title=first_text(error, "title", "message"),
                details=details or first_text(error, "details"),
            )
        )
    return [error for error in found if error]


def _text(message: dict[str, Any]) -> Content | None:
    body = mapping(message.get("text")).get("body")
    return Content(kind="text", text=body) if isinstance(body, str) else None


def _media(kind: str) -> Callable[[dict[str, Any]], Content | None]:
    def read(message: dict[str, Any]) -> Content | None:
        found = mapping(message.get(kind))
        media = Media(
            media_id=text_of(found.get("id")),
            url=text_of(found.get("url")),
            mime_type=text_of(found.get("mime_type")),
            sha256=text_of(found.get("sha256")),
            filename=text_of(found.get("filename")),
        )
        if not media.as_dict():
            return None
        return Content(
            kind="voice" if kind == "audio" and flag(found.get("voice")) else kind,
            text=text_of(found.get("caption")),
            media=media,
            metadata=compact(animated=flag(found.get("animated"))),
        )

    return read


def _location(message: dict[str, Any]) -> Content | None:
    place = mapping(message.get("location"))
    return location_content(
        name=text_of(place.get("name")),
        address=text_of(place.get("address")),
        latitude=place.get("latitude"),
        longitude=place.get("longitude"),
    )


def _contacts(message: dict[str, Any]) -> Content | None:
    return contacts_content(map(_card, map(mapping, listed(message.get("contacts")))))


def _card(card: dict[str, Any]) -> tuple[str, list[str]]:
    named = mapping(card.get("name"))
    parts = [text_of(named.get(key)) for key in ("first_name", "last_name")]
    name = text_of(named.get("formatted_name")) or " ".join(part for part in parts if part)
    phones = [
        phone
        for entry in map(mapping, listed(card.get("phones")))
        if (phone := first_text(entry, "phone", "wa_id"))
    ]
    if phones:
        return name, phones
    return vcard_person(text_of(card.get("vcard")), name)


def _interactive(message: dict[str, Any]) -> Content | None:
    found = mapping(message.get("interactive"))
    subtype = text_of(found.get("type"))
    reply = mapping(found.get(subtype))
    if subtype in ("button_reply", "list_reply"):
        return button_content(
            kind="interactive",
            title=text_of(reply.get("title")),
            id=reply.get("id"),
            description=reply.get("description"),
        )
    if subtype == "nfm_reply":
        return _flow(reply)
    if subtype == "call_permission_reply" and text_of(reply.get("response")):
        return Content("interactive", text=f"Call permission: {reply['response']}")
    return unsupported(f"interactive {subtype}".strip())


def _flow(reply: dict[str, Any]) -> Content:
    try:
        answers = mapping(json.loads(text_of(reply.get("response_json"))))
    except (ValueError, RecursionError):
        answers = {}
    answers = {key: value for key, value in answers.items() if key != "flow_token"}
    fields = [f"{key}: {_answer_shown(value)}" for key, value in answers.items()]
    return Content(
        kind="interactive",
        text="; ".join(fields) or text_of(reply.get("body")),
        metadata=compact(flow=compact(name=text_of(reply.get("name")), response=answers)),
    )


def _answer_shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _button(message: dict[str, Any]) -> Content | None:
    pressed = mapping(message.get("button"))
    return button_content(
        kind="button", title=text_of(pressed.get("text")), payload=pressed.get("payload")
    )


def _order(message: dict[str, Any]) -> Content | None:
    order = mapping(message.get("order"))
    lines = [_order_line(mapping(item)) for item in listed(order.get("product_items"))]
    items = "; ".join(line for line in lines if line)
    note = text_of(order.get("text"))
    if not (items or note):
        return None
    return Content(
        kind="order",
        text="\n".join(part for part in (note, items) if part),
        metadata={"order": order},
    )


def _order_line(item: dict[str, Any]) -> str:
    product = text_of(item.get("product_retailer_id"))
    price = number_shown(item.get("item_price"))
    cost = " ".join(part for part in (price, text_of(item.get("currency"))) if part)
    if not product:
        return ""
    counted = f"{number_shown(item.get('quantity')) or '1'} × {product}"
    return f"{counted} ({cost})" if price else counted


_READERS: dict[str, Callable[[dict[str, Any]], Content | None]] = {
    "text": _text,
    "image": _media("image"),
    "video": _media("video"),
    "audio": _media("audio"),
    "document": _media("document"),
    "sticker": _media("sticker"),
    "location": _location,
    "contacts": _contacts,
    "interactive": _interactive,
    "button": _button,
    "order": _order,
}
