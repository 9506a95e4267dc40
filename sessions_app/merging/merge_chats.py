"""Merge two chats that turn out to belong to one person."""

import logging
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from cards_app.services import cards_move
from memories_app.models import SourceDocument
from memories_app.store.same_files import facts_shared, memories_move
from memoryproject.foundation.admin_kit.stamped_form import digest_of
from memoryproject.foundation.audit.audit_events import (
    Actor,
    Event,
    audit_key,
    audit_record_many,
    person_merge,
    pseudonyms_for,
)
from memoryproject.foundation.bound_chats import bound_to, rebind
from memoryproject.foundation.outgoing_webhooks.deliveries import deliveries_move
from memoryproject.foundation.staff_notices import notices_move
from sessions_app.conversations import chat_addresses, epochs, session_lifecycle
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.inbox.read_markers import later_assignment, review_move
from sessions_app.limits import answer_limits, figures
from sessions_app.merging.merge_record import BOUND, record_begin, record_end
from sessions_app.merging.portion import COUNTED, ContactSide, side_read
from sessions_app.models import (
    BroadcastRecipient,
    Chat,
    ChatAccess,
    ChatActivity,
    ChatAddress,
    ChatSession,
    ContactMerge,
    ForgetReceipt,
    InboundDelivery,
    Message,
    RuleRun,
    TranscriptBatch,
    Turn,
)
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import turns_restart
from sessions_app.turns.facade import longest_pause, pauses_merge

logger = logging.getLogger(__name__)

# Turns before messages: the order in which a worker that is sending locks.
MOVED = (ChatSession, Turn, Message, InboundDelivery, ChatAddress, TranscriptBatch, ContactMerge)


def chats_merge(*, one: Chat, other: Chat, **_signal: Any) -> Chat:
    """Receive ``one_person_found``."""
    return chat_merge(one, other)


def older_first(one: Chat, other: Chat) -> tuple[Chat, Chat]:
    """Return the chat that stays in a merge, and the one that goes."""
    old, young = sorted([one, other], key=lambda chat: (chat.created_at, chat.id))
    return old, young


def chat_merge(one: Chat, other: Chat, *, by_staff: bool = False) -> Chat:
    """Move everything of the younger chat into the older one and return the older one.

    The newer active session stays active. ``by_staff``: no event has shown the addresses of both
    together, so each keeps its origin, and the one of the chat that was active later becomes the
    main one. Call it in a transaction that holds the lock of the chats' addresses.
    """
    if one.pk == other.pk:
        return one
    old, young = older_first(one, other)
    # Before the sessions, so that staff can't pause or reply in one of the chats meanwhile.
    rows = Chat.objects.select_for_update(no_key=True).filter(pk__in=[old.pk, young.pk])
    locked = {chat.pk: chat for chat in rows.order_by("pk")}
    old, young = locked[old.pk], locked[young.pk]
    _end_older_session(old, young)
    # A worker that is answering in the younger chat loses the lease and will not write.
    turns_restart(Turn.objects.filter(chat=young))
    main = _reached_by(old, young, by_staff=by_staff)
    if by_staff:
        ChatAddress.objects.filter(chat=young, origin=None).update(origin=young.pk)
    _rows_move(old, young)
    if young.memory_enabled is False:
        # Memory that was switched off stays off.
        old.memory_enabled = False
    old.client_name = old.client_name or young.client_name
    old.staff_name = old.staff_name or young.staff_name
    old.fixed_language = old.fixed_language or young.fixed_language
    old.language = old.fixed_language or old.language
    young.delete()
    for name, value in main.items():
        setattr(old, name, value)
    old.save()
    session_lifecycle.activity_recount(chat_ids=[old.pk])
    logger.info("A chat was merged into %s: one person.", old.id)
    return old


def _end_older_session(old: Chat, young: Chat) -> None:
    """Leave at most one session of the two chats active: the one that was active last."""
    active = ChatSession.objects.select_for_update(no_key=True).filter(
        chat__in=[old, young], status=SessionStatus.ACTIVE
    )
    for session in active.order_by("-last_active", "-created_at")[1:]:
        session_lifecycle.session_end(session=session, at=timezone.now())


def _rows_move(old: Chat, young: Chat) -> None:
    """Move what belongs to the younger chat to the older one."""
    review_move(from_chat=young.pk, to_chat=old.pk)
    # Of a broadcast to both, the message that was made counts.
    theirs = BroadcastRecipient.objects.filter(chat=young)
    unmade = BroadcastRecipient.objects.filter(chat=old, made_at=None)
    unmade.filter(broadcast__in=theirs.values("broadcast")).delete()
    theirs.exclude(broadcast__recipients__chat=old).update(chat=old)
    # What rules have done for either isn't done again.
    runs = [*RuleRun.objects.filter(chat=young)]
    for run in runs:
        run.pk, run.chat = None, old
    RuleRun.objects.bulk_create(runs, ignore_conflicts=True)
    notices_move(from_chat=young.pk, to_chat=old.pk)
    for model in MOVED:
        model._default_manager.filter(chat=young).update(chat=old)
    ForgetReceipt.objects.filter(chat_id=young.pk).update(chat_id=old.pk)
    pauses_merge(old=old, young=young, now=timezone.now())
    figures.access_merge(old=old, young=young)
    answer_limits.usage_merge(old=old, young=young)
    # Before its memories: endpoints that were notified of the younger chat are notified that they
    # moved.
    for bound in BOUND.values():
        rebind(bound, bound_to(bound, young.pk), add=old.pk, remove=young.pk)
    deliveries_move(from_chat=young.pk, to_chat=old.pk)
    memories_move(from_chat=young.pk, to_chat=old.pk)
    cards_move(from_chat=young.pk, to_chat=old.pk)
    person_merge(kept=old.pk, gone=young.pk)


def _reached_by(old: Chat, young: Chat, *, by_staff: bool) -> dict[str, str]:
    """Return the values of the merged chat's columns that say where it is reached."""
    if not by_staff:
        chat = young if young.client_phone and not old.client_phone else old
        return {"whatsapp_chat": chat.whatsapp_chat, "client_phone": chat.client_phone}
    chat = later_active(old, young)
    return {
        "whatsapp_chat": chat.whatsapp_chat,
        "client_phone": chat.client_phone or old.client_phone or young.client_phone,
        "provider": chat.provider,
        "number_id": chat.number_id,
    }


def later_active(old: Chat, young: Chat) -> Chat:
    """Return the chat in which something was said last."""
    last = dict(
        ChatActivity.objects.filter(chat__in=[old, young]).values_list("chat_id", "last_at")
    )
    return max(old, young, key=lambda chat: (last.get(chat.pk, chat.created_at), chat is old))


# Errors of merging and splitting contacts; their texts are for staff.


class MergeError(Exception):
    """The contacts can't be merged or split; nothing was changed."""


class SeenChangedError(MergeError):
    """Something that the preview showed has changed since: show it again."""


# Tell what a merge of two contacts would do, before staff confirm it.


@dataclass(frozen=True)
class MergePreview:
    """``kept`` stays, ``gone`` is moved into it, ``merged`` is the contact that both become.

    ``names``: the names that it may have, each once. ``shared_facts``: memories of both that are
    one fact. ``shared_documents``: files that both have.
    """

    kept: ContactSide
    gone: ContactSide
    merged: ContactSide
    names: list[str]
    shared_facts: int
    shared_documents: int

    @property
    def seen(self) -> str:
        """Return the stamp of this preview."""
        return digest_of((self.kept.stamp_values(), self.gone.stamp_values()))


def merge_preview(one: Chat, other: Chat, *, chat_memory: ChatMemoryService) -> MergePreview:
    """Return what a merge would do. Raises MergeError if these two can't be merged."""
    old, young = older_first(one, other)
    kept, gone = (side_read(chat, chat_memory=chat_memory) for chat in (old, young))
    _refuse(kept, gone)
    names = dict.fromkeys([*kept.names, *gone.names])
    facts = facts_shared(one=old.pk, other=young.pk)
    documents = _documents_shared(old, young)
    return MergePreview(
        kept, gone, _merged(kept, gone, facts, documents), [*names], facts, documents
    )


def _refuse(kept: ContactSide, gone: ContactSide) -> None:
    if kept.chat.pk == gone.chat.pk:
        raise MergeError(_("This is the same contact."))
    if kept.chat.is_group or gone.chat.is_group:
        raise MergeError(_("A group can't be merged with another contact."))
    if kept.role != gone.role:
        raise MergeError(
            _(
                "One of the two is the owner. Whoever writes from the other number would be "
                "answered as the owner, with everything that only the owner may see. If it is the "
                "owner's, add it to GODFATHER_PHONE first."
            )
        )


def _documents_shared(old: Chat, young: Chat) -> int:
    """Return how many files both have: they are kept once."""
    theirs = set(SourceDocument.objects.filter(chat_id=old.pk).values_list("sha256", "visibility"))
    moved = SourceDocument.objects.filter(chat_id=young.pk).values_list("sha256", "visibility")
    return sum(each in theirs for each in moved)


def _merged(kept: ContactSide, gone: ContactSide, facts: int, documents: int) -> ContactSide:
    once = {"memories": facts, "documents": documents}
    counts = {name: kept.counts[name] + gone.counts[name] - once.get(name, 0) for name in COUNTED}
    chat = copy(kept.chat)
    chat.whatsapp_chat = later_active(kept.chat, gone.chat).whatsapp_chat
    chat.client_name = kept.chat.client_name or gone.chat.client_name
    if gone.chat.memory_enabled is False:
        chat.memory_enabled = False
    pauses = [pause for pause in (kept.pause, gone.pause) if pause is not None]
    return ContactSide(
        chat=chat,
        addresses=[*kept.addresses, *gone.addresses],
        counts=counts,
        role=kept.role,
        last_at=max(filter(None, (kept.last_at, gone.last_at)), default=None),
        talking=kept.talking or gone.talking,
        labels=[*dict.fromkeys([*kept.labels, *gone.labels])],
        assignment=later_assignment(kept.chat.pk, gone.chat.pk),
        pause=longest_pause(pauses) if pauses else None,
        access=_access(kept, gone),
    )


def _access(kept: ContactSide, gone: ContactSide) -> ChatAccess:
    joined = copy(kept.access) if kept.access else ChatAccess(chat=kept.chat)
    if gone.access is not None:
        figures.access_join(joined, gone.access)
    return joined


# Merge two contacts because staff say that they are one person.


def contacts_merge(
    *, one: UUID, other: UUID, name: str, seen: str, actor: Actor, chat_memory: ChatMemoryService
) -> Chat:
    """Merge two contacts into the older one and return it.

    ``name``: one of the preview's names, "" for the name on WhatsApp. ``seen``: the preview's
    stamp. Nobody answers from what was read before the merge, and no message comes in meanwhile.

    Raises MergeError, and SeenChangedError if the preview would be another one now.
    """
    with transaction.atomic():
        held = contacts_hold([one, other])
        preview = merge_preview(*chats_locked(one, other), chat_memory=chat_memory)
        if preview.seen != seen:
            raise SeenChangedError(_("Something of these contacts changed meanwhile. Look again."))
        if name and name not in preview.names:
            raise MergeError(_("Neither of the two has this name."))
        counts = {name: preview.gone.counts[name] for name in ("sessions", "messages")}
        sides = {"into": preview.kept.chat.pk, "took": preview.gone.chat.pk}
        audit_both("chat.merge", actor, sides, **counts)
        record = record_begin(kept=preview.kept.chat, gone=preview.gone.chat, by=actor.name)
        merged = chat_merge(preview.kept.chat, preview.gone.chat, by_staff=True)
        merged.staff_name = "" if name == merged.client_name else name
        merged.save(update_fields=["staff_name", "updated_at"])
        record_end(record, merged)
        # Who answers or learns from what it read of one of the two begins again.
        held.count()
    return merged


def contacts_hold(chats: list[UUID]) -> epochs.Held:
    """Lock the scopes and the addresses of these chats, in the order of locks."""
    held = epochs.forgetting_begin(epochs.Scopes(names=frozenset(map(epochs.chat_scope, chats))))
    known = ChatAddress.objects.filter(chat__in=chats).values_list("address", flat=True)
    names = Chat.objects.filter(pk__in=chats).values_list("whatsapp_chat", flat=True)
    chat_addresses.addresses_lock([*known, *names])
    return held


def chats_locked(*keys: UUID) -> list[Chat]:
    """Return these chats, locked. Raises MergeError if one doesn't exist (any more)."""
    rows = Chat.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk")
    found = {chat.pk: chat for chat in rows}
    if len(found) < len(set(keys)):
        raise MergeError(_("One of the contacts isn't there any more."))
    return [found[key] for key in keys]


def audit_both(action: str, actor: Actor, sides: Mapping[str, UUID], **details: object) -> None:
    """Record a merge or a split in the trails of both, each with the pseudonym of the other.

    ``sides``: the two chats, each by the word under which it stands in the other's trail.
    """
    names = pseudonyms_for(key=audit_key(), chat_ids=[*sides.values()])
    (one, kept), (other, gone) = sides.items()
    pairs = ((kept, {other: names[gone]}), (gone, {one: names[kept]}))
    audit_record_many(
        events=[Event(action, actor, "chat", key, details={**of, **details}) for key, of in pairs]
    )
