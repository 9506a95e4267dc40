"""Read the content of a Green API message by its type.

Texts and addresses of files that are error markers (``{{SWE001}}``) are never content.
"""

import re
from collections.abc import Callable
from typing import Any

from memoryproject.foundation.integrations.lenient import Fields, compact, listed, text_of
from memoryproject.foundation.integrations.whatsapp import events

Reader = Callable[[Fields], events.Content | None]
# Green API's replacement for content that it could not decode.
_ERROR_MARKER = re.compile(r"\s*\{\{SWE[0-9]{3}\}\}\s*")
_FREQUENTLY_FORWARDED = 4  # WhatsApp's own "forwarded many times" starts at five hands
_DATA_KEYS = (
    "extendedTextMessageData",
    "textMessageData",
    "fileMessageData",
    "locationMessageData",
    "contactMessageData",
    "messageData",
    "pollMessageData",
    "templateMessage",
    "listMessage",
    "buttonsMessage",
)
# Of a quoted message of these kinds without words its kind is shown.
_SHOWN_KINDS = ("image", "video", "audio", "document", "sticker", "location", "contact", "poll")
_OFFERED_KEYS = (
    "titleText",
    "header",
    "title",
    "contentText",
    "body",
    "description",
    "footerText",
    "footer",
)


def is_error_marker(text: str) -> bool:
    """Return whether the text is a marker such as ``{{SWE001}}``, which is never content."""
    return _ERROR_MARKER.fullmatch(text) is not None


def real_text(value: Any) -> str:
    """Return the text, or an empty one if it is an error marker."""
    text = text_of(value)
    return "" if is_error_marker(text) else text


def read_content(data: Fields) -> events.Content:
    """Return the content of ``messageData``.

    The kind is "unsupported" where it is new, empty or an error.
    """
    provider_type = data.text("typeMessage")
    reader = _READERS.get(provider_type)
    content = reader(data) if reader else None
    if content is None:
        return events.unsupported(provider_type or "(none)", errors=_errors(data))
    return content


def shared_metadata(data: Fields) -> dict[str, Any]:
    """Return the metadata of any type: the count of forwards, and the quoted message's text."""
    inner = data.at(*_DATA_KEYS)
    forwarded = inner.flag("isForwarded")
    quoted = data.at("quotedMessage")
    quoted_text = (
        real_text(quoted.get("textMessage"))
        or real_text(quoted.get("caption"))
        or real_text(quoted.at("textMessageData").get("textMessage"))
        or real_text(quoted.at("extendedTextMessageData").get("text"))
        or real_text(quoted.at("fileMessageData").get("caption"))
    )
    kind = quoted.text("typeMessage").removesuffix("Message")
    if not quoted_text and kind in _SHOWN_KINDS:
        quoted_text = f"({kind})"
    return compact(
        forwarded=forwarded,
        frequently_forwarded=(
            forwarded and (inner.whole("forwardingScore") or 0) > _FREQUENTLY_FORWARDED
        ),
        quoted=compact(
            text=quoted_text,
            sender=quoted.text("participant"),
            provider_type=quoted.text("typeMessage"),
        ),
    )


def _errors(data: Fields) -> list[dict[str, str]]:
    """Return the error markers that replace the content."""
    candidates = [
        data.at("textMessageData").get("textMessage"),
        data.at("extendedTextMessageData").get("text"),
        data.at("fileMessageData").get("downloadUrl"),
        data.at("fileMessageData").get("caption"),
    ]
    found = [text_of(value).strip() for value in candidates if is_error_marker(text_of(value))]
    return [{"code": marker.strip("{}")} for marker in dict.fromkeys(found)]


def _text(data: Fields) -> events.Content | None:
    plain = real_text(data.at("textMessageData").get("textMessage"))
    text = plain or real_text(data.at("extendedTextMessageData").get("text"))
    return events.Content(kind="text", text=text) if text else None


def _media(kind: str) -> Reader:
    def read(data: Fields) -> events.Content | None:
        found = data.at("fileMessageData")
        caption, url = real_text(found.get("caption")), real_text(found.get("downloadUrl"))
        if not url:
            provider_type = data.text("typeMessage")
            return events.unsupported(provider_type, caption, errors=_errors(data))
        media = events.Media(
            url=url, mime_type=found.text("mimeType"), filename=found.text("fileName")
        )
        shown = _media_kind(kind, found, media.mime_type)
        renamed = data.text("typeMessage") if kind == "document" != shown else ""
        return events.Content(
            kind=shown,
            text=caption,
            media=media,
            metadata=compact(
                provider_type=renamed,
                animated=found.flag("isAnimated"),
                video_note=found.flag("videoNote"),
            ),
        )

    return read


def _media_kind(kind: str, found: Fields, mime_type: str) -> str:
    if kind == "document" and mime_type.startswith("audio/"):
        return "audio"  # music comes as a document
    if kind == "audio":
        marked = found.get("isPtt", found.get("ptt"))
        # Only WhatsApp's own recordings are Ogg.
        recorded = marked if isinstance(marked, bool) else mime_type.startswith("audio/ogg")
        return "voice" if recorded else "audio"
    return kind


def _location(data: Fields) -> events.Content | None:
    place = data.at("locationMessageData", "liveLocationMessageData")
    return events.location_content(
        name=real_text(place.get("nameLocation")),
        address=real_text(place.get("address")),
        place=place,
    )


def _contact(data: Fields) -> events.Content | None:
    return events.contacts_content([_card(data.at("contactMessageData"))])


def _contacts(data: Fields) -> events.Content | None:
    # The key differs between generations of Green API's documents.
    for holder in (data.at("messageData"), data.at("contactsArrayMessageData"), data):
        if holder.get("contacts"):
            return events.contacts_content(map(_card, holder.objects("contacts")))
    return None


def _card(card: Fields) -> events.Card:
    return events.vcard_card(card.text("vcard"), real_text(card.get("displayName")))


def _poll(data: Fields) -> events.Content | None:
    poll = data.at("pollMessageData", "pollCreationMessage")
    return events.poll_content(real_text(poll.get("name")), poll.objects("options"))


def read_vote(data: Fields, sender: str) -> events.Content:
    """Return the content of a vote, by the options that its sender has chosen now.

    Green API reports each voter alone; where it names several, only the sender's options count.
    """
    poll = data.at("pollMessageData")
    chosen: dict[str, list[str]] = {}
    for option in poll.objects("votes"):
        voters = [text_of(voter) for voter in listed(option.get("optionVoters"))]
        chosen[real_text(option.get("optionName"))] = voters
    everybody = {voter for voters in chosen.values() for voter in voters}
    options = [
        name
        for name, voters in chosen.items()
        if name and voters and (sender in voters or len(everybody) == 1)
    ]
    if not chosen:
        # Nobody took a vote back: the options can't be read.
        return events.unsupported("pollUpdateMessage")
    content = events.vote_content(poll.text("stanzaId"), real_text(poll.get("name")), options)
    return content or events.unsupported("pollUpdateMessage")


# Green API spells the recipient's hanging up in two ways. A call that rings isn't over yet.
_CALL_ENDS = {
    "pickUp": events.ENDED,
    "hangUp": events.REJECTED,
    "hungUp": events.REJECTED,
    "missed": events.MISSED,
    "declined": events.MISSED,
}


def read_call_end(call: Fields, *, is_ours: bool) -> events.Content | None:
    """Return the content of a call that is over; None for one that isn't."""
    outcome = _CALL_ENDS.get(call.text("status"))
    if outcome is None:
        return None
    if is_ours and outcome == events.REJECTED:
        outcome = events.MISSED  # "all participants did not answer"
    return events.call_content(outcome, call.seconds("duration"), is_ours=is_ours)


def _pressed(*keys: str) -> Reader:
    """Return a reader for an answer by button or list; ``keys`` name the object that holds it."""

    def read(data: Fields) -> events.Content | None:
        found = data.at(*keys)
        title = found.text("selectedDisplayText", "selectedButtonText", "title")
        return events.button_content(
            kind="interactive",
            title="" if is_error_marker(title) else title,
            id=found.text("selectedId", "selectedButtonId", "selectedRowId", "rowId")
            or found.at("singleSelectReply").text("selectedRowId"),
            description=found.get("description"),
        )

    return read


def _offered(key: str) -> Reader:
    """Return a reader for a message with buttons or a list; only its text counts."""

    def read(data: Fields) -> events.Content | None:
        found = data.at(key)
        lines = [real_text(found.get(name)) for name in _OFFERED_KEYS]
        text = "\n".join(line for line in lines if line)
        return events.Content(kind="interactive", text=text) if text else None

    return read


_MEDIA = ("image", "video", "audio", "document", "sticker")
_PRESSED = (
    "buttonsResponseMessage",
    "listResponseMessage",
    "templateButtonReplyMessage",
    "interactiveButtonsResponse",
)
_OFFERED = (
    "buttonsMessage",
    "listMessage",
    "templateMessage",
    "interactiveButtons",
    "interactiveButtonsReply",
)
_READERS: dict[str, Reader] = {
    **dict.fromkeys(("textMessage", "extendedTextMessage", "quotedMessage"), _text),
    **{f"{kind}Message": _media(kind) for kind in _MEDIA},
    "pttMessage": _media("voice"),
    "locationMessage": _location,
    "liveLocationMessage": _location,
    "contactMessage": _contact,
    "contactsArrayMessage": _contacts,
    "pollMessage": _poll,
    # The object that holds the answer or the offer is named like the message.
    **{name: _pressed(name) for name in _PRESSED},
    "templateButtonsReplyMessage": _pressed(
        "templateButtonsReplyMessage", "templateButtonReplyMessage"
    ),
    **{name: _offered(name) for name in _OFFERED},
}
