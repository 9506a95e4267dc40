"""Documents as JSON."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories_app.models import DocumentState, SourceDocument, Visibility
from memoryproject.foundation.rest_kit.filters import ChoicesFilter, MomentFilter
from memoryproject.foundation.rest_kit.serializers import (
    ApiErrorSerializer,
    Choice,
    Moment,
    Strict,
)
from memoryproject.foundation.rest_kit.uploads import UploadField
from sessions_app.presentation.filters import WhatsAppChatFilter, chats_at
from sessions_app.presentation.serializers import WhatsAppChat


class FileUploadSerializer(Strict):
    """A form with a file."""

    file = UploadField(help_text="A PDF, Word (.docx), text or Markdown file, with its name.")
    whatsapp_chat = WhatsAppChat(
        required=False, help_text="Whose document it is; a new chat is created."
    )
    visibility = Choice(
        Visibility.choices,
        required=False,
        help_text="Who recalls it. Default: chat with a whatsapp_chat, else owner.",
    )


class SourceDocumentSerializer(serializers.Serializer[Any]):
    """A document whose text is stored as memories."""

    document_id = serializers.UUIDField(help_text="Names it in addresses: `files/{document_id}/`.")
    name = serializers.CharField(help_text="The name of the file.")
    title = serializers.CharField(help_text="The title that the file states; empty: none.")
    media_type = serializers.CharField(
        help_text="By the file's content, such as application/pdf; empty until it is read."
    )
    size = serializers.IntegerField(help_text="In bytes.")
    sha256 = serializers.CharField(help_text="The SHA-256 of the file, in hex.")
    state = serializers.ChoiceField(
        DocumentState.choices,
        help_text="received, extracting (a worker reads it), ready, or failed: see error.",
    )
    error = serializers.SerializerMethodField(
        help_text="Why it could not be read, in the form of errors; null unless it failed."
    )
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="What may be missing of its text."
    )
    pages = serializers.IntegerField(
        allow_null=True, help_text="Null until it is read, and where its type has no pages."
    )
    characters = serializers.IntegerField(help_text="The length of its text; 0 until it is read.")
    passages = serializers.IntegerField(
        source="passage_count", help_text="How many memories were made of it."
    )
    visibility = serializers.ChoiceField(Visibility.choices, help_text="Who recalls it.")
    whatsapp_chat = serializers.CharField(
        allow_null=True, help_text="Whose document it is; null: of no chat."
    )
    created_at = Moment(help_text="When it first came.")

    @extend_schema_field(ApiErrorSerializer(allow_null=True))
    def get_error(self, document: SourceDocument) -> dict[str, str] | None:
        if not document.error_code:
            return None
        return {"code": document.error_code, "detail": document.error, "attr": "file"}


class FileFilters(django_filters.FilterSet):  # type: ignore[misc]
    whatsapp_chat = WhatsAppChatFilter(
        method="in_chat", help_text="Of this chat, by any of its addresses."
    )
    state = ChoicesFilter(
        choices=DocumentState.choices, help_text="Such as failed; several times: with one of them."
    )
    since = MomentFilter(field_name="created_at", lookup_expr="gte", help_text="Then or later.")

    class Meta:
        model = SourceDocument
        fields: list[str] = []

    def in_chat(
        self, rows: QuerySet[SourceDocument], _: str, value: str
    ) -> QuerySet[SourceDocument]:
        return rows.filter(chat_id__in=chats_at(value).values("pk"))
