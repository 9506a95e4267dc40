"""Merge the chats that one person has because the id was spelled in several ways.

Such chats were made before ids had one form (see ``whatsapp_chats``). A chat that is the only one
of its person gets the stored form as its name.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import transaction

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    GROUP_DOMAIN,
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from sessions_app.conversations.facade import addresses_lock, chat_find, party_of
from sessions_app.merging.facade import chat_merge
from sessions_app.models import Chat, ChatAddress

# The name of a chat whose addresses all went to other people.
DETACHED = "@detached"
LEFT_BY_SOMEBODY = "its number has changed hands: staff must decide whose this chat is"
NO_ID = "it is no id of a chat: it stays as it is"


@dataclass(frozen=True)
class Tidied:
    """A name or address, and what became of it."""

    whatsapp_chat: str
    stored: str


@dataclass(frozen=True)
class LeftAlone:
    whatsapp_chat: str
    reason: str


@dataclass
class DoublesReport:
    """``merged``: joined to a chat that existed; ``renamed``: the only chat of this id."""

    dry_run: bool
    merged: list[Tidied] = field(default_factory=list)
    renamed: list[Tidied] = field(default_factory=list)
    left_alone: list[LeftAlone] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def doubles_merge(*, dry_run: bool) -> DoublesReport:
    """Give each chat the stored form of its id, and merge those that are then the same.

    Each id is a transaction of its own, so that a second run continues after an error. ``dry_run``:
    roll everything back.
    """
    report = DoublesReport(dry_run)
    if not dry_run:
        _each(report)
        return report
    with transaction.atomic():
        _each(report)
        transaction.set_rollback(True)
    return report


def _each(report: DoublesReport) -> None:
    for name in _unusual_names():
        try:
            stored = whatsapp_chat_normalise(name)
        except WhatsAppChatError:
            report.left_alone.append(LeftAlone(name, NO_ID))
            continue
        with transaction.atomic():
            _tidy(name, stored, report)


def _unusual_names() -> list[str]:
    """Return the names and current addresses that aren't in the stored form, the oldest first."""
    names = Chat.objects.order_by("created_at", "id").values_list("whatsapp_chat", flat=True)
    current = ChatAddress.objects.filter(left_at__isnull=True).order_by("id")
    found: dict[str, None] = {}
    for rows in (names, current.values_list("address", flat=True)):
        for name in rows.iterator():
            with suppress(WhatsAppChatError):
                if whatsapp_chat_normalise(name) == name:
                    continue
            if not name.endswith(DETACHED):
                found[name] = None
    return list(found)


def _tidy(name: str, stored: str, report: DoublesReport) -> None:
    addresses_lock([name, stored])
    chat, there = chat_find(name), chat_find(stored)
    if chat is None:
        # It was erased or merged meanwhile.
        return
    left = ChatAddress.objects.filter(address=stored, left_at__isnull=False)
    if left.exists():
        report.left_alone.append(LeftAlone(name, LEFT_BY_SOMEBODY))
        return
    is_double = there is not None and there.pk != chat.pk
    if there is not None and is_double:
        chat = chat_merge(chat, there)
    _rename(chat, name, stored)
    (report.merged if is_double else report.renamed).append(Tidied(name, stored))


def _rename(chat: Chat, name: str, stored: str) -> None:
    for link in ChatAddress.objects.filter(chat=chat, address=name):
        same = ChatAddress.objects.filter(provider=link.provider, address=stored)
        if same.exists():
            link.delete()
        else:
            link.address = stored
            link.save(update_fields=["address"])
    if chat.whatsapp_chat == name:
        chat.whatsapp_chat = stored
    chat.is_group = chat.whatsapp_chat.endswith(f"@{GROUP_DOMAIN}")
    chat.client_phone = chat.client_phone or party_of(chat.whatsapp_chat).phone or ""
    chat.save(update_fields=["whatsapp_chat", "is_group", "client_phone", "updated_at"])
