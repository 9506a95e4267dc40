"""Filters of lists of memories."""

from collections.abc import Sequence
from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from drf_standardized_errors.formatter import flatten_errors
from rest_framework.exceptions import ValidationError

from memories_app.models import Memory, MemoryStatus, Visibility
from memories_app.store.keyed import within_namespace
from memories_app.visibility import is_current
from memoryproject.foundation.rest_kit import serializers as kit, where as where_kit
from memoryproject.foundation.rest_kit.authentication import Caller
from memoryproject.foundation.rest_kit.bodies import read_json
from memoryproject.foundation.retrieval.query import with_words
from sessions_app.memories.api.serializers import EqualMetadata
from sessions_app.presentation.access import CHAT, MESSAGE_FIELDS, WhatsAppChatFilter
from sessions_app.recall.facade import MEMORIES, MESSAGES, memories_for_bound

# What conditions on memories may name.
MEMORY_FIELDS: where_kit.Fields = {
    "memory_id": where_kit.Column("memory_id", where_kit.ID),
    **where_kit.columns(where_kit.TEXT, "content", "type", "category", "visibility", "source"),
    "kind": where_kit.Column("type", where_kit.TEXT),
    "tags": where_kit.Labels("tags"),
    "metadata": where_kit.Json("metadata"),
    **where_kit.columns(where_kit.TEXT, "namespace", "key"),
    "value": where_kit.Json("value"),
    "whatsapp_chat": where_kit.Column("chat_id", CHAT),
    "source_message_id": where_kit.Column("source_message_id", where_kit.ID),
    "confidence": where_kit.Column("confidence", where_kit.NUMBER),
    "told_count": where_kit.Column("told_count", where_kit.WHOLE),
    "pinned": where_kit.Column("pinned", where_kit.TRUTH),
    **where_kit.columns(
        where_kit.MOMENT, "created_at", "updated_at", "said_at", "valid_from", "valid_until"
    ),
    **where_kit.columns(where_kit.MOMENT, "last_told_at", "expires_at"),
}


# A message is recalled by when it was written.
RECALLED_MESSAGES: where_kit.Fields = {
    **MESSAGE_FIELDS,
    "created_at": where_kit.Column("timestamp", where_kit.MOMENT),
}
# Bound tokens recall public memories of other chats, and don't see where these came from.
ORIGIN = ("whatsapp_chat", "source", "source_message_id")
# Filters of a recall by the lookup that each is.
EQUAL = {"type": "type", "tags": "tags__contains", "metadata": "metadata__contains"}


class TextsFormField(forms.Field):
    """A parameter that may be given several times."""

    widget = forms.SelectMultiple

    def clean(self, value: Any) -> list[str]:
        texts = [text for text in value or [] if text]
        if any("\x00" in text for text in texts):
            raise forms.ValidationError("A NUL character stands in no tag.", code="nul")
        return texts


@extend_schema_field({"type": "array", "items": {"type": "string", "minLength": 1}})
class TextsFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = TextsFormField


class MetadataFormField(forms.CharField):
    """A JSON object, checked as in the body of a recall."""

    def clean(self, value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        try:
            return EqualMetadata().run_validation(read_json(value)) or None
        except ValidationError as error:
            # What was said of the value, without the places in it.
            details = flatten_errors(error.detail)
            errors = [forms.ValidationError(each.detail, each.code) for each in details]
            raise forms.ValidationError(errors) from error
        except (ValueError, RecursionError):
            text = 'It is no JSON object such as {"sku": 7}.'
            raise forms.ValidationError(text, "invalid") from None


@extend_schema_field({"type": "string", "minLength": 1, "example": '{"sku": 7}'})
class MetadataFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = MetadataFormField


class MemoryFilters(django_filters.FilterSet):  # type: ignore[misc]
    type = TextsFilter(lookup_expr="in")
    category = django_filters.CharFilter()
    tags = TextsFilter(lookup_expr="contains")
    visibility = kit.ChoiceFilter(
        choices=Visibility.choices, help_text=", ".join(Visibility.values)
    )
    whatsapp_chat = WhatsAppChatFilter(field_name="chat_id")
    source = django_filters.CharFilter()
    status = kit.ChoicesFilter(choices=MemoryStatus.choices)
    metadata = MetadataFilter(lookup_expr="contains")
    pinned = kit.TruthFilter()
    keyed = kit.TruthFilter(field_name="key", lookup_expr="isnull", exclude=True)
    since = kit.MomentFilter(field_name="created_at", lookup_expr="gte")
    text = django_filters.CharFilter(method="with_words")

    def with_words(self, rows: QuerySet[Memory], _: str, value: str) -> QuerySet[Memory]:
        return with_words(rows, value, each=True)

    def filter_queryset(self, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        if not self.form.cleaned_data.get("status"):
            queryset = queryset.filter(is_current(timezone.now()), status=MemoryStatus.ACTIVE)
        found: QuerySet[Memory] = super().filter_queryset(queryset)
        return found


# Filters of a recall.


def recall_filters(body: dict[str, Any], sources: Sequence[str], caller: Caller) -> dict[str, Q]:
    """Return the filter of each source that has all fields that ``where`` names."""
    tables = {MEMORIES: MEMORY_FIELDS, MESSAGES: RECALLED_MESSAGES}
    found: dict[str, Q] = {}
    refused: ValidationError | None = None
    for source in sources:
        table = tables[source].items()
        known = {name: field for name, field in table if not (caller.is_bound and name in ORIGIN)}
        try:
            found[source] = where_kit.where(body["where"], known)
        except ValidationError as error:
            if "unknown_field" not in str(error.get_codes()):
                raise
            refused = error
    if refused is not None and not found:
        raise refused
    equal = {name: body[given] for given, name in EQUAL.items() if body.get(given)}
    if MEMORIES in found:
        if caller.is_bound:
            # Not what only the owner sees, also in the owner's own chat.
            chats = caller.reach() & Q(visibility=Visibility.CHAT)
            found[MEMORIES] &= memories_for_bound(chats)
        if body.get("namespace"):
            found[MEMORIES] &= within_namespace(body["namespace"])
        found[MEMORIES] &= Q(**equal)
    if MESSAGES in found and body.get("metadata"):
        found[MESSAGES] &= Q(metadata__contains=body["metadata"])
    return found
