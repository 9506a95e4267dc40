"""Who events are about, by name. The log itself holds pseudonyms only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from django.dispatch import Signal

from memoryproject.foundation.audit.audit_events import audit_key, pseudonym, pseudonyms_of
from memoryproject.foundation.audit.models import AuditPerson

# Chats are another app's. Sent with ``chat_ids``; a receiver returns a Person for each that it has.
chats_shown = Signal()
# Sent with ``text``; a receiver returns the ids of the chats that people mean by it.
chats_meant = Signal()
# A pseudonym can't be looked up without the salts of all people: so many of the newest are tried.
MAX_TRIED = 50_000


class Person(NamedTuple):
    """A person's name, and the address of their page."""

    name: str
    address: str


def people_shown(pseudonyms: Iterable[str]) -> dict[str, Person]:
    """Return who is behind the pseudonyms, as far as these can still be linked to anybody."""
    wanted = set(filter(None, pseudonyms))
    if not wanted:
        return {}
    salts = AuditPerson.objects.order_by("-id").values_list("chat_id", "salt")[:MAX_TRIED]
    key, chats = audit_key(), {}
    for chat_id, salt in salts.iterator():
        name = pseudonym(key, salt)
        if name in wanted:
            chats[name] = chat_id
            if len(chats) == len(wanted):
                break
    known: dict[UUID, Person] = {}
    found: Any
    for _receiver, found in chats_shown.send(None, chat_ids=set(chats.values())):
        known.update(found)
    return {name: known[chat_id] for name, chat_id in chats.items() if chat_id in known}


def pseudonyms_meant(text: str) -> list[str]:
    """Return the pseudonyms of the people that a name, a number or an address means."""
    key = audit_key()
    answers: list[Any] = [found for _receiver, found in chats_meant.send(None, text=text)]
    chats = dict.fromkeys(chat_id for found in answers for chat_id in found)
    return [name for chat_id in chats for name in pseudonyms_of(key=key, chat_id=chat_id)]
