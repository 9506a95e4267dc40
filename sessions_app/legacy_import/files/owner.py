"""Find the chat of a session whose file is lost (RECOVERY-001)."""

from __future__ import annotations

from collections.abc import Sequence

from sessions_app.legacy_import.files.errors import LegacyError
from sessions_app.legacy_import.files.gather import FoundMessage
from sessions_app.legacy_import.files.ids import is_whatsapp_chat


def whatsapp_chat_of(found: Sequence[FoundMessage]) -> str:
    """Return the chat that these messages of one session agree on.

    It is a group if one is named, else the person who wrote to the assistant or received its
    messages.

    Raises LegacyError if they name none or several: a guess could show one person's
    conversation to another.
    """
    messages = [one.legacy for one in found]
    named = {one.session_ref for one in messages if is_whatsapp_chat(one.session_ref)}
    asking = {one.sender for one in messages if one.role == "user"}
    answered = {one.recipient for one in messages if one.role == "assistant"}
    people = asking | answered
    everybody = {address for one in messages for address in (one.sender, one.recipient)}
    groups = {address for address in everybody if address.endswith("@g.us")}
    chats = named or groups or {address for address in people if is_whatsapp_chat(address)}
    if len(chats) != 1:
        how_many = "several WhatsApp chats" if chats else "no WhatsApp chat"
        raise LegacyError(f"sender, recipient: its messages name {how_many}")
    return chats.pop()
