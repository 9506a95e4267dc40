"""Merge two contacts because staff say that they are one person."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import (
    Actor,
    Event,
    audit_key,
    audit_record_many,
    pseudonyms_for,
)
from sessions_app.conversations.facade import (
    Held,
    Scopes,
    addresses_lock,
    chat_scope,
    forgetting_begin,
)
from sessions_app.history.facade import ChatMemoryService
from sessions_app.merging.merge_chats import (
    MergeError,
    MergePreview,
    SeenChangedError,
    chat_merge,
    merge_preview,
)
from sessions_app.merging.merge_record import record_begin, record_end
from sessions_app.models import Chat, ChatAddress


def contacts_merge(
    *,
    one: UUID,
    other: UUID,
    name: str,
    seen: str,
    actor: Actor,
    chat_memory: ChatMemoryService,
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
        _audit(preview, actor)
        record = record_begin(kept=preview.kept.chat, gone=preview.gone.chat, by=actor.name)
        merged = chat_merge(preview.kept.chat, preview.gone.chat, by_staff=True)
        merged.staff_name = "" if name == merged.client_name else name
        merged.save(update_fields=["staff_name", "updated_at"])
        record_end(record, merged)
        # Who answers or learns from what it read of one of the two begins again.
        held.count()
    return merged


def contacts_hold(chats: list[UUID]) -> Held:
    """Lock the scopes and the addresses of these chats, in the order of locks."""
    held = forgetting_begin(Scopes(names=frozenset(map(chat_scope, chats))))
    known = ChatAddress.objects.filter(chat__in=chats).values_list("address", flat=True)
    names = Chat.objects.filter(pk__in=chats).values_list("whatsapp_chat", flat=True)
    addresses_lock([*known, *names])
    return held


def chats_locked(*keys: UUID) -> list[Chat]:
    """Return these chats, locked. Raises MergeError if one doesn't exist (any more)."""
    rows = Chat.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk")
    found = {chat.pk: chat for chat in rows}
    if len(found) < len(set(keys)):
        raise MergeError(_("One of the contacts isn't there any more."))
    return [found[key] for key in keys]


def _audit(preview: MergePreview, actor: Actor) -> None:
    """Record the merge in the trails of both, each with the pseudonym of the other."""
    kept, gone = preview.kept.chat.pk, preview.gone.chat.pk
    names = pseudonyms_for(key=audit_key(), chat_ids=[kept, gone])
    counts = {
        "sessions": preview.gone.counts["sessions"],
        "messages": preview.gone.counts["messages"],
    }
    events = [
        Event("chat.merge", actor, "chat", kept, details={"took": names[gone], **counts}),
        Event("chat.merge", actor, "chat", gone, details={"into": names[kept], **counts}),
    ]
    audit_record_many(events=events)
