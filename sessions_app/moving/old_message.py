"""Build the old messages, and hand out their files, of what is moved in."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from memoryproject.foundation.integrations.lenient import storable
from memoryproject.foundation.integrations.whatsapp.base import MediaError, MediaSink, Recipient
from memoryproject.foundation.integrations.whatsapp.events import InboundMessage, Media, Party
from sessions_app.conversations.chat_addresses import party_of
from sessions_app.models.chats import Provider
from sessions_app.models.messages import BY_PHONE, IMPORTED
from sessions_app.moving.records import MoveError, Said, chat_named
from sessions_app.moving.sources import Source

CONSOLE = str(Provider.CONSOLE)
# The kind whose records keep their own ids, and the one whose messages a phone sent.
ARCHIVE, WHATSAPP = "archive", "whatsapp"


def old_message(key: str, chat: str, one: Said, kind: str, person: str) -> InboundMessage:
    """Return a message as one that a phone shared. ``person``: the name of whose chat it is."""
    is_group = chat.endswith("@g.us")
    phone = chat_named(one.sender) if one.sender.startswith("+") else ""
    author = party_of(phone) if phone.endswith("@c.us") else Party()
    party = author if is_group else party_of(chat)
    about: dict[str, Any] = storable(dict(one.metadata))
    # An archive has our own metadata.
    ours = about if kind == ARCHIVE else {}
    if about.pop("by_hand", False):
        ours["by_hand"] = True
    if kind == WHATSAPP and one.is_ours:
        ours[BY_PHONE] = True
    name = one.sender[:255]
    if name:
        ours["sender_name"] = storable(name)
    return InboundMessage(
        provider=CONSOLE,
        number_id="",
        delivery_key=key,
        provider_message_id=key,
        party=Party(party.phone, party.bsuid, party.other, name if is_group else person[:255]),
        group_id=chat if is_group else None,
        timestamp=one.at,
        kind=one.kind[:32],
        text=storable(one.text),
        media=Media(filename=PurePosixPath(one.media).name) if one.media else None,
        from_business=one.is_ours,
        metadata={**ours, IMPORTED: {"from": kind, **({} if kind == ARCHIVE else about)}},
    )


@dataclass(frozen=True)
class FromSource:
    """Hands out the file of a message from what is moved in, as a provider does its own."""

    source: Source
    name: str

    def fetch_media(
        self,
        *,
        media: Media,
        provider_message_id: str,
        chat: Recipient,
        into: MediaSink,
        max_bytes: int,
    ) -> None:
        try:
            with self.source.open(self.name) as file:
                # The sink refuses what is too large, whatever the Zip says of itself.
                shutil.copyfileobj(file, into)
        except MoveError as error:
            raise MediaError(str(error), code="gone", permanent=True) from error
