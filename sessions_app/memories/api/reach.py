"""Which memories a caller of the API may read, change and forget."""

from __future__ import annotations

from django.db.models import Q

from memories_app.models import Visibility
from memoryproject.foundation.rest_kit.callers import Caller


def memories_in_reach(caller: Caller) -> Q:
    """Return the condition on memories that the caller may access.

    A bound token acts for the people who write in its chats. What only the owner sees is beyond
    its reach, also in the owner's own chat.
    """
    if not caller.is_bound:
        return Q()
    return caller.reach() & ~Q(visibility=Visibility.OWNER)
