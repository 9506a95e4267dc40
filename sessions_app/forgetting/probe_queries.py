"""Choose the texts of an object that the probe searches for after forgetting it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from memories_app.models import Memory
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.forgetting.probe import Prober, spread
from sessions_app.models import ForgottenKind, Message


def build_prober(*, kind: str, object_id: UUID, embedder: Embedder) -> Prober:
    """Build the prober before the transaction, because an embedder may use the network."""
    rows: dict[str, QuerySet[Any]] = {
        str(ForgottenKind.MEMORY): Memory.objects.filter(pk=object_id),
        str(ForgottenKind.MESSAGE): Message.objects.filter(pk=object_id),
        str(ForgottenKind.DOCUMENT): Memory.objects.filter(document=object_id).order_by("position"),
        str(ForgottenKind.CHAT): Memory.objects.filter(chat_id=object_id).order_by(
            "created_at", "memory_id"
        ),
    }
    said = Message.objects.filter(session=object_id).exclude(content="").order_by("order_num")
    return Prober(_sample(rows.get(kind, said)), embedder)


def _sample(rows: QuerySet[Any]) -> list[str]:
    """Return a sample of the contents, spread from first to last."""
    keys = spread(list(rows.values_list("pk", flat=True)))
    return list(rows.filter(pk__in=keys).values_list("content", flat=True))
