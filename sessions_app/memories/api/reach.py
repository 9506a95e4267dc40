"""Which memories a caller of the API may read, change and forget."""

from __future__ import annotations

from django.db.models import Q

from memories_app.models import Visibility
from memoryproject.foundation.rest_kit.callers import Caller
from sessions_app.history.dependencies import build_chat_memory
from sessions_app.models import Chat
from sessions_app.models.roles import GODFATHER


def memories_in_reach(caller: Caller) -> Q:
    """Return the condition on memories that the caller may access.

    A bound token acts for the people who write in its chats. What only the owner sees is beyond
    its reach, unless the chat is the owner's own.
    """
    if not caller.is_bound:
        return Q()
    owners = Q(chat_id__in=_owners_chats(caller))
    return caller.reach() & (~Q(visibility=Visibility.OWNER) | owners)


def _owners_chats(caller: Caller) -> list[object]:
    memory = build_chat_memory()
    if not memory.godfather:
        return []
    bound = Chat.objects.filter(pk__in=caller.chat_ids or ())
    return [chat.pk for chat in bound if memory.role_in(chat) == GODFATHER]
