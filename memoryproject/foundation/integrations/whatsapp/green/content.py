"""Read the content of a Green API message by its type.

Texts and addresses of files that are error markers (``{{SWE001}}``) are never content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.integrations.whatsapp.green.envelope import is_error_marker, real_text
from memoryproject.foundation.integrations.whatsapp.lenient import (
    compact,
    first_text,
    flag,
    listed,
    mapping,
    text_of,
    whole,
)
from memoryproject.foundation.integrations.whatsapp.message_content import (
    Content,
    button_content,
    contacts_content,
    location_content,
    poll_content,
    unsupported,
    vcard_person,
)

_FREQUENTLY_FORWARDED = 4  # WhatsApp's own "forwarded many times" starts at five hands


def read_content(data: dict[str, Any]) -> Content:
    """Return the content of ``messageData``.

    The kind is "unsupported" where it is new, empty or an error.
    """
    provider_type = text_of(data.get("typeMessage"))
    reader = _READERS.get(provider_type)
    content = reader(data) if reader else None
    if content is None:
        return unsupported(provider_type or "(none)", errors=_errors(data))
    return content


def shared_metadata(data: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of any type: the count of forwards, and the quoted message's text."""
    inner = next((found for key in _DATA_KEYS if (found := mapping(data.get(key)))), {})
    forwarded = flag(inner.get("isForwarded"))
    quoted = mapping(data.get("quotedMessage"))
    file_data = mapping(quoted.get("fileMessageData"))
    quoted_text = (
        real_text(quoted.get("textMessage"))
        or real_text(quoted.get("caption"))
        or real_text(mapping(quoted.get("textMessageData")).get("textMessage"))
        or real_text(mapping(quoted.get("extendedTextMessageData")).get("text"))
        or real_text(file_data.get("caption"))
    )
    return compact(
        forwarded=forwarded,
        frequently_forwarded=(
            forwarded and (whole(inner.get("forwardingScore")) or 0) > _FREQUENTLY_FORWARDED
        ),
        quoted=compact(
            text=quoted_text,
            sender=text_of(quoted.get("participant")),
            provider_type=text_of(quoted.get("typeMessage")),
        ),
    )


def _errors(data: dict[str, Any]) -> list[dict[str, str]]:
    """Return the error markers that replace the content."""
    candidates = [
        mapping(data.get("textMessageData")).get("textMessage"),
        mapping(data.get("extendedTextMessageData")).get("text"),
        mapping(data.get("fileMessageData")).get("downloadUrl"),
        mapping(data.get("fileMessageData")).get("caption"),
    ]
    found = [text_of(value).strip() for value in candidates if is_error_marker(text_of(value))]
    return [{"code": marker.strip("{}")} for marker in dict.fromkeys(found)]


def _text(data: dict[str, Any]) -> Content | None:
    plain = real_text(mapping(data.get("textMessageData")).get("textMessage"))
    text = plain or real_text(mapping(data.get("extendedTextMessageData")).get("text"))
    return Content(kind="text", text=text) if text else None


def _media(kind: str) -> Callable[[dict[str, Any]], Content | None]:
    def read(data: dict[str, Any]) -> Content | None:
        found = mapping(data.get("fileMessageData"))
        caption, url = real_text(found.get("caption")), real_text(found.get("downloadUrl"))
        if not url:
            provider_type = text_of(data.get("typeMessage"))
            return unsupported(provider_type, caption, errors=_errors(data))
        media = Media(
            url=url,
            mime_type=text_of(found.get("mimeType")),
            filename=text_of(found.get("fileName")),
        )
        shown = _media_kind(kind, found, media.mime_type)
        renamed = text_of(data.get("typeMessage")) if kind == "document" != shown else ""
        return Content(
            kind=shown,
            text=caption,
            media=media,
            metadata=compact(
                provider_type=renamed,
                animated=flag(found.get("isAnimated")),
                video_note=flag(found.get("videoNote")),
            ),
        )

    return read


def _media_kind(kind: str, found: dict[str, Any], mime_type: str) -> str:
    if kind == "document" and mime_type.startswith("audio/"):
        return "audio"  # music comes as a document
    if kind == "audio":
        flag = found.get("isPtt", found.get("ptt"))
        # Only WhatsApp's own recordings are Ogg.
        recorded = flag if isinstance(flag, bool) else mime_type.startswith("audio/ogg")
        return "voice" if recorded else "audio"
    return kind


def _location(data: dict[str, Any]) -> Content | None:
    place = mapping(data.get("locationMessageData")) or mapping(data.get("liveLocationMessageData"))
    return location_content(
        name=real_text(place.get("nameLocation")),
        address=real_text(place.get("address")),
        latitude=place.get("latitude"),
        longitude=place.get("longitude"),
    )


def _contact(data: dict[str, Any]) -> Content | None:
    return contacts_content([_card(mapping(data.get("contactMessageData")))])


def _contacts(data: dict[str, Any]) -> Content | None:
    # The key differs between generations of Green API's documents.
    holders = (data.get("messageData"), data.get("contactsArrayMessageData"), data)
    for holder in map(mapping, holders):
        if holder.get("contacts"):
            return contacts_content(map(_card, map(mapping, listed(holder["contacts"]))))
    return None


def _card(card: dict[str, Any]) -> tuple[str, list[str]]:
    return vcard_person(text_of(card.get("vcard")), real_text(card.get("displayName")))


def _poll(data: dict[str, Any]) -> Content | None:
    poll = mapping(data.get("pollMessageData")) or mapping(data.get("pollCreationMessage"))
    return poll_content(real_text(poll.get("name")), poll.get("options"))


def _pressed(*keys: str) -> Callable[[dict[str, Any]], Content | None]:
    """Return a reader for an answer by button or list; ``keys`` name the object that holds it."""

    def read(data: dict[str, Any]) -> Content | None:
        found = next((inner for key in keys if (inner := mapping(data.get(key)))), {})
        title = first_text(found, "selectedDisplayText", "selectedButtonText", "title")
        row = mapping(found.get("singleSelectReply"))
        return button_content(
            kind="interactive",
            title="" if is_error_marker(title) else title,
            id=first_text(found, "selectedId", "selectedButtonId", "selectedRowId", "rowId")
            or first_text(row, "selectedRowId"),
            description=found.get("description"),
        )

    return read


def _offered(*keys: str) -> Callable[[dict[str, Any]], Content | None]:
    """Return a reader for a message with buttons or a list; only its text counts."""

    def read(data: dict[str, Any]) -> Content | None:
        found = next((inner for key in keys if (inner := mapping(data.get(key)))), {})
        lines = [
            real_text(found.get(key))
            for key in (
                "titleText",
                "header",
                "title",
                "contentText",
                "body",
                "description",
                "footerText",
                "footer",
            )
        ]
        text = "\n".join(line for line in lines if line)
        return Content(kind="interactive", text=text) if text else None

    return read


_READERS: dict[str, Callable[[dict[str, Any]], Content | None]] = {
    "textMessage": _text,
    "extendedTextMessage": _text,
    "quotedMessage": _text,
    "imageMessage": _media("image"),
    "videoMessage": _media("video"),
    "audioMessage": _media("audio"),
    "pttMessage": _media("voice"),
    "documentMessage": _media("document"),
    "stickerMessage": _media("sticker"),
    "locationMessage": _location,
    "liveLocationMessage": _location,
    "contactMessage": _contact,
    "contactsArrayMessage": _contacts,
    "pollMessage": _poll,
    "buttonsResponseMessage": _pressed("buttonsResponseMessage"),
    "listResponseMessage": _pressed("listResponseMessage"),
    "templateButtonReplyMessage": _pressed("templateButtonReplyMessage"),
    "templateButtonsReplyMessage": _pressed(
        "templateButtonsReplyMessage", "templateButtonReplyMessage"
    ),
    "interactiveButtonsResponse": _pressed("interactiveButtonsResponse"),
    "buttonsMessage": _offered("buttonsMessage"),
    "listMessage": _offered("listMessage"),
    "templateMessage": _offered("templateMessage"),
    "interactiveButtons": _offered("interactiveButtons"),
    "interactiveButtonsReply": _offered("interactiveButtonsReply"),
}

_DATA_KEYS = (
    "extendedTextMessageData",
    "fileMessageData",
    "locationMessageData",
    "contactMessageData",
    "messageData",
    "pollMessageData",
    "templateMessage",
    "listMessage",
    "buttonsMessage",
)
