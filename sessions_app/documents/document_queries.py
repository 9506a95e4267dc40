"""Query documents with what lists and pages show of them."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from memories_app.models import Memory, SourceDocument
from sessions_app.models import Chat


def with_passages(documents: QuerySet[SourceDocument]) -> QuerySet[Any]:
    """Add ``passage_count``: counted only for the rows that are read, not for all documents."""
    own = Memory.objects.filter(document=OuterRef("pk")).order_by().values("document")
    counted = own.annotate(count=Count("pk")).values("count")
    passages = Coalesce(Subquery(counted, output_field=IntegerField()), 0)
    return documents.annotate(passage_count=passages)


def documents_named() -> QuerySet[Any]:
    """Return all documents, each with its passages counted and its ``whatsapp_chat``."""
    chats = Chat.objects.filter(pk=OuterRef("chat_id")).values("whatsapp_chat")[:1]
    return with_passages(SourceDocument.objects.annotate(whatsapp_chat=Subquery(chats)))
