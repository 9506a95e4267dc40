"""Split addresses off a contact, or undo a merge of two contacts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Count, Max, Min
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import (
    Actor,
    Event,
    audit_key,
    audit_record_many,
    pseudonyms_for,
)
from sessions_app.conversations.facade import activity_recount
from sessions_app.merging.contact_side import stamp_seen
from sessions_app.merging.errors import MergeError, SeenChangedError
from sessions_app.merging.merge_contacts import chats_locked, contacts_hold
from sessions_app.merging.move_portion import portion_move
from sessions_app.merging.portion import Portion, memories_in_force, portion_of
from sessions_app.merging.restore_sides import chat_bring_back, sides_restore
from sessions_app.models import Chat, ChatAddress, ContactMerge, Message
from sessions_app.models.messages import Role


@dataclass(frozen=True)
class AddressUse:
    """The number of messages from an address, and their times. ``goes``: it is split off."""

    address: str
    goes: bool = False
    count: int = 0
    first: datetime | None = None
    last: datetime | None = None


@dataclass(frozen=True)
class SplitPreview:
    """The rows that go with addresses that are split off. ``record``: the merge that is undone."""

    chat: Chat
    portion: Portion
    staying: Sequence[ChatAddress]
    record: ContactMerge | None
    messages: int
    memories: int

    def wrote(self) -> list[AddressUse]:
        """Return what came from each address, the chosen ones first."""
        rows = Message.objects.filter(chat=self.chat, role=Role.USER).order_by()
        found = {
            sender: AddressUse(sender, False, count, first, last)
            for sender, count, first, last in rows.values_list("sender").annotate(
                Count("pk"), Min("timestamp"), Max("timestamp")
            )
        }
        goes = dict.fromkeys(link.address for link in self.portion.addresses)
        stays = dict.fromkeys(link.address for link in self.staying)
        return [
            replace(found.get(address, AddressUse(address)), goes=address in goes)
            for address in (*goes, *stays)
        ]

    @property
    def seen(self) -> str:
        """Return the stamp of this preview."""
        portion = self.portion
        return stamp_seen(
            str(self.chat.pk),
            [(link.pk, link.address) for link in (*portion.addresses, *self.staying)],
            [sorted(map(str, keys)) for keys in (portion.sessions, portion.divided)],
            [self.messages, sorted(map(str, portion.memories))],
            [len(keys) for keys in (portion.documents, portion.notes, portion.turns)],
        )


def split_preview(chat: Chat, keys: Collection[int]) -> SplitPreview:
    """Return what would go with these addresses. Raises MergeError if they can't go.

    If they are all those that a merge brought, it is undone.
    """
    links = list(chat.addresses.all())
    # One address at two providers is one person's.
    names = {link.address for link in links if link.pk in keys}
    chosen = [link for link in links if link.address in names]
    for record in chat.merges.all():
        if chosen and _came(record, links) == chosen:
            return _preview(chat, chosen, record)
    return _preview(chat, chosen, None)


def undo_preview(record: ContactMerge) -> SplitPreview:
    """Return what would go with the contact that this merge moved. Raises MergeError."""
    return _preview(record.chat, _came(record, list(record.chat.addresses.all())), record)


def contact_split(
    *, chat_id: UUID, keys: Collection[int], name: str, seen: str, actor: Actor
) -> Chat:
    """Make a contact of its own of these addresses, and return it. ``seen``: the preview's stamp.

    Raises MergeError, and SeenChangedError if the preview would be another one now.
    """
    new = uuid4()
    with transaction.atomic():
        merged = ContactMerge.objects.filter(chat=chat_id).values_list("gone_id", flat=True)
        held = contacts_hold([chat_id, new, *merged])
        (chat,) = chats_locked(chat_id)
        preview = split_preview(chat, keys)
        key = preview.record.gone_id if preview.record else new
        gone = _split(preview, seen, actor, key=key, name=name)
        held.count()
    return gone


def merge_undo(*, merge_id: UUID, seen: str, actor: Actor) -> Chat:
    """Bring back the contact that a merge moved, and return it.

    Raises as ``contact_split`` does.
    """
    with transaction.atomic():
        known = ContactMerge.objects.filter(pk=merge_id).values_list("chat_id", "gone_id").first()
        if known is None:
            raise MergeError(_("This merge was undone already."))
        held = contacts_hold(list(known))
        (chat,) = chats_locked(known[0])
        record = ContactMerge.objects.filter(pk=merge_id, chat=chat).first()
        if record is None:
            raise SeenChangedError(_("Something of this contact changed meanwhile. Look again."))
        gone = _split(undo_preview(record), seen, actor, key=record.gone_id)
        held.count()
    return gone


def _came(record: ContactMerge, links: Sequence[ChatAddress]) -> list[ChatAddress]:
    """Return those of the addresses that the merge brought, or that joined these since."""
    known = set(record.rows["addresses"])
    return [link for link in links if link.pk in known or link.origin == record.gone_id]


def _preview(
    chat: Chat, chosen: Sequence[ChatAddress], record: ContactMerge | None
) -> SplitPreview:
    kept = {link.pk for link in chosen}
    staying = [link for link in chat.addresses.all() if link.pk not in kept]
    if chat.is_group:
        raise MergeError(_("A group has one address."))
    if not chosen:
        raise MergeError(_("Choose an address that is to be a contact of its own."))
    if not staying:
        raise MergeError(_("One address must stay with the contact."))
    portion = portion_of(chat, chosen, record)
    return SplitPreview(
        chat=chat,
        portion=portion,
        staying=staying,
        record=record,
        messages=portion.messages().count(),
        memories=memories_in_force(portion),
    )


def _split(preview: SplitPreview, seen: str, actor: Actor, *, key: UUID, name: str = "") -> Chat:
    if preview.seen != seen:
        raise SeenChangedError(_("Something of this contact changed meanwhile. Look again."))
    now = timezone.now()
    chat, record = preview.chat, preview.record
    gone = chat_bring_back(preview.portion.addresses, kept=chat, key=key, record=record)
    if name:
        gone.staff_name = name
        gone.save(update_fields=["staff_name"])
    portion_move(preview.portion, kept=chat, gone=gone, record=record, now=now)
    sides_restore(kept=chat, gone=gone, record=record)
    activity_recount(chat_ids=[chat.pk, gone.pk])
    _audit(preview, gone, actor)
    if record is not None:
        record.delete()
    return gone


def _audit(preview: SplitPreview, gone: Chat, actor: Actor) -> None:
    """Record the split in the trails of both, each with the pseudonym of the other."""
    kept = preview.chat.pk
    names = pseudonyms_for(key=audit_key(), chat_ids=[kept, gone.pk])
    details = {
        "sessions": len(preview.portion.sessions),
        "messages": preview.messages,
        "undone": preview.record is not None,
    }
    events = [
        Event("chat.split", actor, "chat", kept, details={"gave": names[gone.pk], **details}),
        Event("chat.split", actor, "chat", gone.pk, details={"from": names[kept], **details}),
    ]
    audit_record_many(events=events)
