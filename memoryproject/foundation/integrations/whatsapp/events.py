"""Decide whether a group message addresses us: it mentions our number or quotes us."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memoryproject.foundation.integrations import lenient
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import whatsapp_chat_of_provider
from memoryproject.foundation.text.phone_numbers import phone_forms

_MENTION = re.compile(r"@\+?([0-9]{1,20})(?![0-9])")


def numbers_mentioned(text: str) -> list[str]:
    """Return the digits of the mentions in a text, as WhatsApp writes them: @ and all digits."""
    return _MENTION.findall(text)


def names_number(text: str, number: str) -> bool:
    """Return whether the text mentions the number, in one of its forms."""
    return not set(phone_forms(number)).isdisjoint(numbers_mentioned(text))


def same_number(one: str, other: str) -> bool:
    """Return whether both are the same phone number, possibly in the form ``…@c.us``."""
    digits = lenient.phone_digits(one.partition("@")[0])
    return bool(digits) and digits in phone_forms(lenient.phone_digits(other.partition("@")[0]))


@dataclass(frozen=True)
class Party:
    """A person on WhatsApp, by the addresses that the provider shows.

    ``phone`` is digits only. ``bsuid`` is Meta's business-scoped user id. ``other`` is an
    address of another form (a Green API ``…@lid``). At least one of the three is set for a
    message's sender.
    """

    phone: str | None = None
    bsuid: str | None = None
    other: str | None = None
    name: str = ""
    username: str = ""

    def addresses(self) -> list[str]:
        """The addresses in ``whatsapp_chat`` form, the phone first."""
        found = []
        if self.phone:
            found.append(f"{self.phone}@c.us")
        if self.bsuid:
            found.append(f"{self.bsuid}@bsuid")
        if self.other:
            found.append(self.other)
        return found


@dataclass(frozen=True)
class Media:
    """A reference to a file at the provider; the file itself is not fetched."""

    media_id: str = ""
    url: str = ""
    mime_type: str = ""
    sha256: str = ""
    filename: str = ""

    def as_dict(self) -> dict[str, str]:
        return {key: value for key, value in self.__dict__.items() if value}


@dataclass(frozen=True, kw_only=True)
class Event:
    """The fields that all events have.

    ``provider`` is "cloud" or "green". ``number_id`` is our own number or instance at the provider,
    empty where the event is about the account as a whole. ``raw`` is a complete body: parsed again,
    it gives this event again.
    """

    provider: str
    number_id: str
    delivery_key: str
    raw: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ChatEvent(Event):
    """An event of a chat: of a group, with ``group_id``, or of a person. ``party`` caused it."""

    party: Party
    timestamp: datetime
    group_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class InboundMessage(ChatEvent):
    """A message from a person or, with ``from_business``, one that the owner typed on the phone.

    ``kind`` is text, image, video, audio, voice, document, sticker, location, contacts,
    interactive, button, order, poll, call or unsupported.

    ``text`` is the written text: the body, the caption, the title of a pressed button, or a
    rendering in words of a location, a contact, an order or a poll; empty for media without a
    caption. ``mentions_us`` is True when a group message mentions our number;
    ``replies_to_us`` when it quotes one of our messages.

    ``party`` is the author; with ``from_business`` it is the client that the owner wrote to (in a
    group: our own number). ``business_address`` is our own number in digits, ``business_lid`` our
    hidden id (…@lid), where the provider shows it.

    ``metadata`` may hold: ``provider_type`` (the provider's name of a type that we show as another
    kind), ``errors`` (a list of code, title, details), ``forwarded``, ``frequently_forwarded``,
    ``referral``, ``referred_product``, ``quoted`` (text, sender), ``username``, ``button`` (id,
    title, description, payload), ``flow`` (name, response), ``contacts`` (see Card), ``location``,
    ``order``, ``poll``, ``vote`` (poll: the id of its message, question, options), ``call``
    (outcome: missed, rejected or ended; seconds), ``animated``, ``video_note``, ``origin``,
    ``unsupported_type``. Keys without a value are left out.
    """

    provider_message_id: str
    kind: str
    text: str = ""
    media: Media | None = None
    group_name: str = ""
    reply_to_id: str | None = None
    mentions_us: bool = False
    replies_to_us: bool = False
    from_business: bool = False
    business_address: str = ""
    business_lid: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OldMessages(Event):
    """A piece of what was said before this server was there, as the owner's phone shares it.

    ``read`` returns its messages, which nobody answers; the metadata of each has its ``history``:
    the status in lower case. ``is_first``: of the pieces of its body.
    """

    read: Callable[[], list[InboundMessage]] = field(compare=False, repr=False)
    is_first: bool = field(default=True, compare=False)


@dataclass(frozen=True, kw_only=True)
class SavedContacts(Event):
    """People in the phone's address book: ``names`` by ``whatsapp_chat``."""

    names: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class MessageEdited(ChatEvent):
    """An earlier message was changed.

    ``media`` is set only where the change names a file. ``party`` is the person in the chat, even
    if the owner changed the message on the phone. In a group, with ``group_id``, it is the member
    who changed it.
    """

    original_id: str
    text: str
    media: Media | None = None


@dataclass(frozen=True, kw_only=True)
class MessageRevoked(ChatEvent):
    """A message was deleted for everyone. ``party`` and ``group_id`` as in MessageEdited."""

    original_id: str


@dataclass(frozen=True, kw_only=True)
class Reaction(ChatEvent):
    """An emoji put on a message by ``party``, or removed (``emoji`` empty)."""

    target_id: str
    emoji: str = ""


@dataclass(frozen=True, kw_only=True)
class StatusUpdate(Event):
    """A new status of a message that we sent.

    ``status`` is sent, delivered, read, played or failed. ``callback_id`` is the id that we gave
    when sending, where the provider returns it. ``party`` shows the recipient's addresses (it may
    link a phone to a BSUID); None for groups and where nothing is shown. ``stops_marketing``: it
    failed because the person wants no marketing messages of ours.
    """

    provider_message_id: str
    status: str
    timestamp: datetime
    callback_id: str | None = None
    party: Party | None = None
    error_code: int | None = None
    error_text: str = ""
    stops_marketing: bool = False


@dataclass(frozen=True, kw_only=True)
class OwnSend(Event):
    """The provider's echo of a message that our API call sent (Green API).

    It is never answered, but it proves that a message was sent although the response was lost.
    ``business_lid``: as in InboundMessage.
    """

    provider_message_id: str
    whatsapp_chat: str
    text: str
    timestamp: datetime
    business_lid: str = ""


@dataclass(frozen=True, kw_only=True)
class AddressChanged(Event):
    """A person moved to a new number or got a new business-scoped id."""

    old: Party
    new: Party
    timestamp: datetime


@dataclass(frozen=True, kw_only=True)
class MarketingChoice(Event):
    """A person stopped marketing messages of our business, or allowed them again."""

    party: Party
    is_stopped: bool
    timestamp: datetime


@dataclass(frozen=True, kw_only=True)
class Notice(Event):
    """An event for staff: a quota, an instance's state, an account violation, a rate limit.

    ``level`` is "info", "warning" or "critical". ``accepts``: whether the provider says that it
    accepts our account now; None: it says nothing of that. ``state``: its word for it.
    """

    level: str
    summary: str
    accepts: bool | None = None
    state: str = ""


@dataclass(frozen=True, kw_only=True)
class Ignored(Event):
    """An event that requires no action, with the reason."""

    reason: str


# Longer ids fit no column; those of the providers are far shorter.
MAX_ID_LENGTH = 200
_IDS = (
    "number_id",
    "provider_message_id",
    "original_id",
    "target_id",
    "reply_to_id",
    "group_id",
    "callback_id",
    "whatsapp_chat",
    "business_lid",
)


def with_ids_that_fit(event: Event) -> Event:
    """Return the event, or Ignored if it has an id that no provider makes.

    That is one that nothing can store, or a group's id that could be a path.
    """
    people = [getattr(event, name, None) for name in ("party", "old", "new")]
    ids = [getattr(event, name, None) for name in _IDS]
    ids += [person.other for person in people if person is not None]
    group_id = getattr(event, "group_id", None)
    reason = ""
    if not all(len(each or "") <= MAX_ID_LENGTH for each in ids):
        reason = "an id that is too long"
    elif group_id and not whatsapp_chat_of_provider(group_id):
        reason = "a group's id that no provider makes"
    if not reason:
        return event
    return Ignored(
        provider=event.provider,
        number_id=event.number_id[:MAX_ID_LENGTH],
        delivery_key=event.delivery_key,
        raw=event.raw,
        reason=reason,
    )


# The content of a message, and texts for content that isn't text.


@dataclass(frozen=True)
class Content:
    """The content of one message, in the form of InboundMessage."""

    kind: str
    text: str = ""
    media: Media | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def unsupported(provider_type: str, text: str = "", **metadata: Any) -> Content:
    """Return the content of a message that can't be read; the metadata states the reason."""
    details = lenient.compact(provider_type=provider_type, **metadata)
    return Content(kind="unsupported", text=text, metadata=details)


def location_content(*, name: str, address: str, place: lenient.Fields) -> Content | None:
    """Return a location in words: "Example HQ, 1 Example Way (37.46, -122.21)"; None if empty.

    ``place`` holds its latitude and longitude.
    """
    latitude, longitude = place.get("latitude"), place.get("longitude")
    coordinates = [lenient.number_shown(latitude), lenient.number_shown(longitude)]
    pin = f"({', '.join(coordinates)})" if all(coordinates) else ""
    named = ", ".join(part for part in (name, address) if part)
    if not (named or pin):
        return None
    details = lenient.compact(name=name, address=address, latitude=latitude, longitude=longitude)
    return Content(
        kind="location", text=f"{named or 'Location'} {pin}".strip(), metadata={"location": details}
    )


@dataclass(frozen=True)
class Card:
    """A shared contact: a person or a business."""

    name: str = ""
    phones: Sequence[str] = ()
    emails: Sequence[str] = ()
    company: str = ""
    role: str = ""

    def as_dict(self) -> dict[str, Any]:
        return lenient.compact(
            name=self.name,
            phones=list(self.phones),
            emails=list(self.emails),
            company=self.company,
            role=self.role,
        )

    def __str__(self) -> str:
        work = " at ".join(filter(None, (self.role, self.company)))
        named = f"{self.name} ({work})" if self.name and work else self.name or work
        return ", ".join(filter(None, [named, *self.phones, *self.emails]))


def contacts_content(cards: Iterable[Card]) -> Content | None:
    """Return shared contacts in words: "Alice Example, +1 555-010-0456; Bob"; None if empty."""
    contacts = [card for card in cards if str(card)]
    if not contacts:
        return None
    return Content(
        kind="contacts",
        text="; ".join(map(str, contacts)),
        metadata={"contacts": [card.as_dict() for card in contacts]},
    )


# The lines of a vCard that a Card holds, each with the name of its field.
_VCARD = {"FN": "name", "TEL": "phones", "EMAIL": "emails", "ORG": "company", "TITLE": "role"}
_ESCAPED = re.compile(r"\\([\\,;:])")


def vcard_card(vcard: str, name: str = "") -> Card:
    """Return what a vCard says; ``name`` overrides the card's own."""
    # A long line of a vCard continues in the next one, which starts with a blank.
    lines = re.sub(r"\r?\n[ \t]", "", vcard).splitlines()
    found: dict[str, list[str]] = {field: [] for field in _VCARD.values()}
    for line in lines:
        label, _, value = line.partition(":")
        key = label.split(";")[0].split(".")[-1].upper()
        if key in _VCARD and value.strip("; \t"):
            # A company's departments follow it.
            parts = value.replace("\\;", "\0").split(";") if key == "ORG" else [value]
            # A vCard 4.0 writes a number as an address: "tel:+972…".
            parts[0] = parts[0].removeprefix("tel:")
            found[_VCARD[key]].append(_ESCAPED.sub(r"\1", parts[0].replace("\0", ";")).strip())
    first = {field: next(iter(values), "") for field, values in found.items()}
    return Card(
        name or first["name"], found["phones"], found["emails"], first["company"], first["role"]
    )


def poll_content(question: str, options: Iterable[lenient.Fields]) -> Content | None:
    """Return a poll in words: "Which colour? green, red". None if it has no question."""
    names = [name for option in options if (name := option.text("optionName", "name"))]
    if not question:
        return None
    title = question if question.endswith(("?", ":", ".", "!")) else f"{question}:"
    return Content(
        kind="poll",
        text=f"{title} {', '.join(names)}" if names else question,
        metadata={"poll": lenient.compact(question=question, options=names)},
    )


def vote_content(poll: str, question: str, options: Sequence[str]) -> Content | None:
    """Return a vote in words: "Voted in “Which colour?”: green". None if it tells nothing.

    ``poll``: the id of the poll's message. A vote without options was taken back.
    """
    if not (question or options):
        return None
    within = f" in “{question}”" if question else ""
    voted = f"Voted{within}: {', '.join(options)}" if options else f"Took the vote{within} back"
    details = {"poll": poll, "question": question, "options": list(options)}
    return Content(kind="poll", text=voted, metadata={"vote": details})


MISSED, REJECTED, ENDED = "missed", "rejected", "ended"
_CALLS = {MISSED: "Missed call", REJECTED: "Rejected call", ENDED: "Call"}
_OUR_CALLS = {MISSED: "Our call, not answered", REJECTED: "Our call, rejected", ENDED: "Our call"}


def call_content(outcome: str, seconds: int | None = None, *, is_ours: bool = False) -> Content:
    """Return a call that is over in words: "Missed call", "Call (2:05)". ``is_ours``: we called."""
    text = (_OUR_CALLS if is_ours else _CALLS)[outcome]
    if seconds and seconds > 0:
        text += f" ({seconds // 60}:{seconds % 60:02})"
    return Content(
        kind="call", text=text, metadata={"call": lenient.compact(outcome=outcome, seconds=seconds)}
    )


def button_content(*, kind: str, title: str, **details: Any) -> Content | None:
    """Return a pressed button or chosen row; its text is the title. None if it has none."""
    shown = {key: lenient.text_of(value) for key, value in details.items()}
    if not title:
        return None
    return Content(
        kind=kind, text=title, metadata={"button": lenient.compact(title=title, **shown)}
    )
