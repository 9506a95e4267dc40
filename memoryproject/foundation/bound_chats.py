"""The chats that tokens and webhook endpoints are bound to, by their column ``chat_ids``."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Model


def bound_to(model: type[Model], chat_id: UUID) -> list[int]:
    """Return the keys of the rows that are bound to a chat, among others."""
    bound = model._default_manager.filter(chat_ids__contains=[chat_id])
    return list(bound.order_by("pk").values_list("pk", flat=True))


def rebind(model: type[Model], keys: Collection[int], *, add: UUID, remove: UUID | None) -> None:
    """Bind those of the rows that are still bound to chats to ``add`` and not to ``remove``."""
    bound = model._default_manager.filter(pk__in=keys, chat_ids__isnull=False)
    row: Any
    for row in bound.select_for_update(no_key=True).order_by("pk"):
        row.chat_ids = sorted({*row.chat_ids, add} - {remove})
        row.save(update_fields=["chat_ids"])
