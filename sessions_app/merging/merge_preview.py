"""Tell what a merge of two contacts would do, before staff confirm it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

from django.utils.translation import gettext as _

from memories_app.models import SourceDocument
from memories_app.store.facade import facts_shared
from sessions_app.history.facade import ChatMemoryService
from sessions_app.inbox.facade import later_assignment
from sessions_app.limits.facade import access_join
from sessions_app.merging.contact_side import COUNTED, ContactSide, side_read, stamp_seen
from sessions_app.merging.errors import MergeError
from sessions_app.merging.merge_chats import later_active, older_first
from sessions_app.models import Chat, ChatAccess
from sessions_app.turns.facade import longest_pause


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
        return stamp_seen(self.kept.stamp_values(), self.gone.stamp_values())


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
        access_join(joined, gone.access)
    return joined
