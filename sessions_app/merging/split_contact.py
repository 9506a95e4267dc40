"""Split addresses off a contact, or undo a merge of two contacts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Count, Max, Min, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from cards_app.models import MemoryCard
from memories_app.documents.document_store import shown_name
from memories_app.models import Memory, MemoryStatus
from memories_app.store.same_files import SameFile, memories_give, same_files_restore
from memoryproject.foundation.admin_kit.stamped_form import digest_of
from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.conversations.session_lifecycle import activity_recount, cards_outdate
from sessions_app.merging import merge_chats
from sessions_app.merging.merge_record import chat_bring_back, sides_restore
from sessions_app.merging.portion import Portion, portion_of
from sessions_app.models import (
    Bookmark,
    Chat,
    ChatAddress,
    ChatSession,
    ContactMerge,
    InboundDelivery,
    Message,
    Note,
    ReadMark,
    ReviewedMark,
    TranscriptBatch,
    Turn,
)
from sessions_app.models.messages import Role
from sessions_app.models.review import UpTo
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import turns_restart
from sessions_app.summaries.summary_store import summaries_retract
from sessions_app.turns.facade import sent_document_name


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
        seen = (
            str(self.chat.pk),
            [(link.pk, link.address) for link in (*portion.addresses, *self.staying)],
            [sorted(map(str, keys)) for keys in (portion.sessions, portion.divided)],
            [self.messages, sorted(map(str, portion.memories))],
            [len(keys) for keys in (portion.documents, portion.notes, portion.turns)],
        )
        return digest_of(seen)


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
        held = merge_chats.contacts_hold([chat_id, new, *merged])
        (chat,) = merge_chats.chats_locked(chat_id)
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
            raise merge_chats.MergeError(_("This merge was undone already."))
        held = merge_chats.contacts_hold(list(known))
        (chat,) = merge_chats.chats_locked(known[0])
        record = ContactMerge.objects.filter(pk=merge_id, chat=chat).first()
        if record is None:
            raise merge_chats.SeenChangedError(
                _("Something of this contact changed meanwhile. Look again.")
            )
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
        raise merge_chats.MergeError(_("A group has one address."))
    if not chosen:
        raise merge_chats.MergeError(_("Choose an address that is to be a contact of its own."))
    if not staying:
        raise merge_chats.MergeError(_("One address must stay with the contact."))
    portion = portion_of(chat, chosen, record)
    listed = Memory.objects.filter(pk__in=portion.memories)
    return SplitPreview(
        chat=chat,
        portion=portion,
        staying=staying,
        record=record,
        messages=portion.messages().count(),
        memories=listed.exclude(status=MemoryStatus.SUPERSEDED).count(),
    )


def _split(preview: SplitPreview, seen: str, actor: Actor, *, key: UUID, name: str = "") -> Chat:
    if preview.seen != seen:
        raise merge_chats.SeenChangedError(
            _("Something of this contact changed meanwhile. Look again.")
        )
    now = timezone.now()
    chat, record = preview.chat, preview.record
    gone = chat_bring_back(preview.portion.addresses, kept=chat, key=key, record=record)
    if name:
        gone.staff_name = name
        gone.save(update_fields=["staff_name"])
    portion_move(preview.portion, kept=chat, gone=gone, record=record, now=now)
    sides_restore(kept=chat, gone=gone, record=record)
    activity_recount(chat_ids=[chat.pk, gone.pk])
    merge_chats.audit_both(
        "chat.split",
        actor,
        {"from": chat.pk, "gave": gone.pk},
        sessions=len(preview.portion.sessions),
        messages=preview.messages,
        undone=record is not None,
    )
    if record is not None:
        record.delete()
    return gone


# Move the rows that go with addresses that are split off.


def portion_move(
    portion: Portion, *, kept: Chat, gone: Chat, record: ContactMerge | None, now: datetime
) -> None:
    """Move everything of the portion from one chat to the other.

    Both chats, and the sessions that are divided, are locked by the caller.
    """
    parts = {key: _divide(key, portion.taken, gone, now) for key in portion.taken_from}
    parts |= {key: _divide(key, portion.left, kept, now) for key in portion.left_in}
    turns = Turn.objects.filter(
        Q(session__in=portion.sessions) | Q(pk__in=portion.turns), chat=kept
    )
    # A worker that is answering there loses the lease and will not write.
    turns_restart(turns)
    turns.update(chat=gone)
    for model in (ChatSession, Message, TranscriptBatch):
        key = "pk__in" if model is ChatSession else "session__in"
        model._default_manager.filter(**{key: portion.sessions}).update(chat=gone)
    MemoryCard.objects.filter(session_id__in=portion.sessions).update(chat_id=gone.pk)
    moved = portion.messages().values("pk")
    about = portion.messages().exclude(provider_message_id=None).values("provider_message_id")
    InboundDelivery.objects.filter(
        Q(message__in=moved) | Q(subject_id__in=about), chat=kept
    ).update(chat=gone)
    Note.objects.filter(pk__in=portion.notes).update(chat=gone)
    Bookmark.objects.filter(message__in=moved).update(chat=gone)
    _marks_copy(kept, gone, parts)
    rows = record.rows if record else {}
    joined = rows.get("joined", {})
    memories_give(
        from_chat=kept.pk,
        to_chat=gone.pk,
        memories=portion.memories,
        documents=portion.documents,
        joined={UUID(key): UUID(other) for key, other in joined.items()},
        pinned={UUID(key) for key in rows.get("pinned", ())},
    )
    _files_restore(rows.get("files", ()), kept, gone)


def _files_restore(files: Sequence[SameFile], kept: Chat, gone: Chat) -> None:
    """Make the copies of files again, but those whose message was erased or deleted since."""
    sources = [file["source_message_id"] for file in files if file["source_message_id"]]
    messages = Message.objects.filter(pk__in=sources, revoked_at=None).only("media")
    names = {
        str(each.pk): shown_name(
            sent_document_name(str(each.media.get("filename", "")), gone.language)
        )
        for each in messages
    }
    there = [file for file in files if file["source_message_id"] in (None, *names)]
    same_files_restore(files=there, names=names, from_chat=kept.pk, to_chat=gone.pk)


def _divide(session_id: UUID, messages: Collection[UUID], chat: Chat, now: datetime) -> UUID:
    """Move these messages of a session into a session of their own, which has ended.

    Summaries of both are made anew, and so are the cards.
    """
    session = ChatSession.objects.select_for_update(no_key=True).get(pk=session_id)
    rows = Message.objects.filter(session=session, pk__in=messages)
    first = rows.order_by("order_num").values_list("order_num", flat=True).first() or 1
    summaries_retract(session=session, order_num=first)
    in_window = rows.filter(order_num__gte=session.window_start)
    found = rows.aggregate(tokens=Sum("tokens"), last=Max("received_at"), number=Max("order_num"))
    part = ChatSession.objects.create(
        chat=chat,
        status=SessionStatus.EXPIRED,
        created_at=session.created_at,
        last_active=found["last"] or now,
        expired_at=now,
        message_counter=found["number"] or 0,
        total_tokens=found["tokens"] or 0,
    )
    session.total_tokens -= in_window.aggregate(all=Sum("tokens"))["all"] or 0
    session.save(update_fields=["total_tokens"])
    turns = Turn.objects.filter(Q(message__in=messages) | Q(reply__in=messages), session=session)
    turns_restart(turns)
    turns.update(session=part, chat=chat)
    rows.update(session=part, chat=chat)
    cards_outdate(session_ids=[session.pk, part.pk])
    return part.pk


def _marks_copy(kept: Chat, gone: Chat, parts: dict[UUID, UUID]) -> None:
    """Let both chats be read and reviewed as far as the one was.

    Places keep their order: a chat's sessions keep the times at which they began.
    """
    for model in (ReadMark, ReviewedMark):
        marks: list[UpTo] = list(model._default_manager.filter(chat=kept))
        for mark in marks:
            mark.pk = gone.pk if model is ReviewedMark else None
            mark.chat_id = gone.pk  # type: ignore[attr-defined]
            mark.session_key = parts.get(mark.session_key, mark.session_key)
        model._default_manager.bulk_create(marks)
