"""People in the audit log: keyed pseudonyms, which erasure makes unlinkable.

A pseudonym is an HMAC over a random salt. The salt links it to the person as long as the row
exists. The key prevents a reader of the database from linking events to people.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from uuid import UUID

from django.db import transaction

from memoryproject.foundation.audit.canonical import sign
from memoryproject.foundation.audit.models import AuditPerson

LENGTH = 32


def _pseudonym(key: str, salt: str) -> str:
    return "p-" + sign(key, "person", salt)[:LENGTH]


def pseudonyms_for(*, key: str, chat_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return each chat's pseudonym, and create the missing ones.

    If two processes create the same pseudonym at the same time, one waits for the other and gets
    its result.
    """
    wanted = sorted(set(chat_ids))
    if not wanted:
        return {}
    salts = _salts(wanted)
    missing = [chat_id for chat_id in wanted if chat_id not in salts]
    if missing:
        AuditPerson.objects.bulk_create(
            [AuditPerson(chat_id=chat_id, salt=secrets.token_hex(32)) for chat_id in missing],
            ignore_conflicts=True,
        )
        salts = _salts(wanted)
    return {chat_id: _pseudonym(key, salts[chat_id]) for chat_id in wanted}


def _salts(chat_ids: list[UUID]) -> dict[UUID, str]:
    known = AuditPerson.objects.filter(chat_id__in=chat_ids, merged=False)
    return dict(known.values_list("chat_id", "salt"))


def pseudonyms_of(*, key: str, chat_id: UUID) -> list[str]:
    """Return all pseudonyms under which a chat's events are found.

    Empty for a chat that has none or was made unlinkable.
    """
    salts = AuditPerson.objects.filter(chat_id=chat_id).order_by("merged", "id")
    return [_pseudonym(key, salt) for salt in salts.values_list("salt", flat=True)]


def person_cut_loose(*, chat_id: UUID) -> int:
    """Delete the link between a chat and its pseudonyms; return how many pseudonyms went.

    The events stay and the chain verifies, but nobody can link them to the chat any more, not even
    with the key. Backups made before still hold the salts.
    """
    return AuditPerson.objects.filter(chat_id=chat_id).delete()[0]


def person_merge(*, kept: UUID, gone: UUID) -> None:
    """Merge the pseudonyms of two chats that are one person.

    Events of ``kept`` recorded from now on use its own pseudonym. Events recorded for either chat
    are found under it and made unlinkable with it.

    Call it in the transaction that merges the chats and holds their locks.
    """
    with transaction.atomic():
        both = AuditPerson.objects.select_for_update(no_key=True).filter(chat_id__in=[kept, gone])
        people = list(both.order_by("id"))
        has_own = any(person.chat_id == kept and not person.merged for person in people)
        for person in people:
            if person.chat_id == gone:
                person.chat_id = kept
                person.merged = person.merged or has_own
                person.save(update_fields=["chat_id", "merged"])
