"""People in the audit log: keyed pseudonyms, which erasure cuts loose.

A pseudonym is an HMAC over a random salt. The salt says whose it is as long as its row is
there; the key keeps who reads the database from telling which events are whose.
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
    """Each chat's pseudonym, made where it has none yet. Who makes the same one at the same
    time waits for the other and gets theirs."""
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
    """All pseudonyms under which a chat's events are found; none for a chat that has none or
    was cut loose."""
    salts = AuditPerson.objects.filter(chat_id=chat_id).order_by("merged", "id")
    return [_pseudonym(key, salt) for salt in salts.values_list("salt", flat=True)]


def person_cut_loose(*, chat_id: UUID) -> int:
    """Forget whose a chat's pseudonyms were: its events stay and the chain verifies, but nobody
    can link them to the chat any more, not even with the key. Returns how many pseudonyms
    went. Backups made before still hold the salts."""
    return AuditPerson.objects.filter(chat_id=chat_id).delete()[0]


def person_merge(*, kept: UUID, gone: UUID) -> None:
    """Two chats are one person: what is recorded of ``kept`` from now on goes by its own
    pseudonym, and what was recorded of either is found under it and cut loose with it.

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
