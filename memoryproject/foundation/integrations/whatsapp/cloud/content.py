"""Read the content of a Cloud API message by its type."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.integrations.whatsapp.lenient import (
    Fields,
    compact,
    listed,
    number_shown,
)
from memoryproject.foundation.integrations.whatsapp.message_content import (
    Content,
    button_content,
    contacts_content,
    location_content,
    unsupported,
    vcard_person,
)

Reader = Callable[[Fields], Content | None]


def read_content(message: Fields) -> Content:
    """Return the content of a message.

    The kind is "unsupported" if the type is new or its object is missing.
    """
    provider_type = message.text("type")
    reader = _READERS.get(provider_type)
    content = reader(message) if reader else None
    if content is None:
        subtype = message.at("unsupported").text("type")
        return unsupported(provider_type or "(none)", unsupported_type=subtype)
    return content


def error_details(errors: Any) -> list[dict[str, Any]]:
    """Return the errors with their code, title and details, in both formats that Meta has used."""
    found = []
    for error in map(Fields.of, listed(errors)):
        found.append(
            compact(
                code=error.get("code") if isinstance(error.get("code"), (int, str)) else None,
                title=error.text("title", "message"),
                details=error.at("error_data").text("details") or error.text("details"),
            )
        )
    return [error for error in found if error]


def _text(message: Fields) -> Content | None:
    body = message.at("text").get("body")
    return Content(kind="text", text=body) if isinstance(body, str) else None


def _media(kind: str) -> Reader:
    def read(message: Fields) -> Content | None:
        found = message.at(kind)
        media = Media(
            media_id=found.text("id"),
            url=found.text("url"),
            mime_type=found.text("mime_type"),
            sha256=found.text("sha256"),
            filename=found.text("filename"),
        )
        if not media.as_dict():
            return None
        return Content(
            kind="voice" if kind == "audio" and found.flag("voice") else kind,
            text=found.text("caption"),
            media=media,
            metadata=compact(animated=found.flag("animated")),
        )

    return read


def _location(message: Fields) -> Content | None:
    place = message.at("location")
    return location_content(
        name=place.text("name"),
        address=place.text("address"),
        place=place,
    )


def _contacts(message: Fields) -> Content | None:
    return contacts_content(map(_card, message.objects("contacts")))


def _card(card: Fields) -> tuple[str, list[str]]:
    named = card.at("name")
    parts = [named.text(key) for key in ("first_name", "last_name")]
    name = named.text("formatted_name") or " ".join(part for part in parts if part)
    phones = [phone for entry in card.objects("phones") if (phone := entry.text("phone", "wa_id"))]
    if phones:
        return name, phones
    return vcard_person(card.text("vcard"), name)


def _interactive(message: Fields) -> Content | None:
    found = message.at("interactive")
    subtype = found.text("type")
    reply = found.at(subtype)
    if subtype in ("button_reply", "list_reply"):
        return button_content(
            kind="interactive",
            title=reply.text("title"),
            id=reply.get("id"),
            description=reply.get("description"),
        )
    if subtype == "nfm_reply":
        return _flow(reply)
    if subtype == "call_permission_reply" and reply.text("response"):
        return Content("interactive", text=f"Call permission: {reply['response']}")
    return unsupported(f"interactive {subtype}".strip())


def _flow(reply: Fields) -> Content:
    try:
        answers = Fields.of(json.loads(reply.text("response_json")))
    except (ValueError, RecursionError):
        answers = Fields()
    answers.pop("flow_token", None)
    fields = [f"{key}: {_answer_shown(value)}" for key, value in answers.items()]
    return Content(
        kind="interactive",
        text="; ".join(fields) or reply.text("body"),
        metadata=compact(flow=compact(name=reply.text("name"), response=answers)),
    )


def _answer_shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _button(message: Fields) -> Content | None:
    pressed = message.at("button")
    return button_content(kind="button", title=pressed.text("text"), payload=pressed.get("payload"))


def _order(message: Fields) -> Content | None:
    order = message.at("order")
    lines = [_order_line(item) for item in order.objects("product_items")]
    items = "; ".join(line for line in lines if line)
    note = order.text("text")
    if not (items or note):
        return None
    return Content(
        kind="order",
        text="\n".join(part for part in (note, items) if part),
        metadata={"order": dict(order)},
    )


def _order_line(item: Fields) -> str:
    product = item.text("product_retailer_id")
    price = number_shown(item.get("item_price"))
    cost = " ".join(part for part in (price, item.text("currency")) if part)
    if not product:
        return ""
    counted = f"{number_shown(item.get('quantity')) or '1'} × {product}"
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
