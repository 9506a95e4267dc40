"""The list of memories, storing one, and storing many."""

from __future__ import annotations

from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from memories_app.errors import MemoryValidationError
from memories_app.models import Memory, MemoryStatus, Visibility
from memories_app.search.facade import is_current
from memories_app.store.facade import CREATED
from memoryproject.foundation.rest_kit.bodies import read_json
from memoryproject.foundation.rest_kit.etags import etag_of
from memoryproject.foundation.rest_kit.filters import (
    ChoiceFilter,
    ChoicesFilter,
    MomentFilter,
    TruthFilter,
)
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import (
    conflicting,
    described,
    etag,
    location,
    request_example,
    response_example,
)
from memoryproject.foundation.rest_kit.views import ApiView, ListView
from memoryproject.foundation.retrieval.query import with_words
from sessions_app.memories.api import examples
from sessions_app.memories.api.equal_metadata import EqualMetadata
from sessions_app.memories.api.serializers import (
    MemoryBatchResultSerializer,
    MemoryBatchSerializer,
    MemorySerializer,
    NewMemorySerializer,
    StoredMemorySerializer,
)
from sessions_app.memories.api.writing import (
    RAISES,
    done_by,
    invalid_batch,
    memories_add,
    memories_to_store,
    outcome_of,
)
from sessions_app.presentation.access import memories_in_reach
from sessions_app.presentation.examples import MEMORY_ID
from sessions_app.presentation.filters import WhatsAppChatFilter, chats_at
from sessions_app.recall.facade import memories_named

# Filters of lists of memories.


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
            raise forms.ValidationError(_each_of(error.detail)) from error
        except (ValueError, RecursionError):
            raise forms.ValidationError(
                'It is no JSON object such as {"sku": 7}.', "invalid"
            ) from None


def _each_of(detail: Any) -> list[forms.ValidationError]:
    """Return what was said of the value, without the places in it."""
    if isinstance(detail, dict):
        detail = list(detail.values())
    if isinstance(detail, list):
        return [error for each in detail for error in _each_of(each)]
    return [forms.ValidationError(str(detail), detail.code)]


@extend_schema_field({"type": "string", "minLength": 1, "example": '{"sku": 7}'})
class MetadataFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = MetadataFormField


class MemoryFilters(django_filters.FilterSet):  # type: ignore[misc]
    type = TextsFilter(lookup_expr="in", help_text="Such as fact; several times: with one of them.")
    category = django_filters.CharFilter(help_text="Such as payments.")
    tags = TextsFilter(
        method="with_tags", help_text="Those with this tag; several times: with all of them."
    )
    visibility = ChoiceFilter(choices=Visibility.choices, help_text=", ".join(Visibility.values))
    whatsapp_chat = WhatsAppChatFilter(
        method="in_chat", help_text="That came from this chat, by any of its addresses."
    )
    source = django_filters.CharFilter(help_text="Such as command, api or staff.")
    status = ChoicesFilter(
        choices=MemoryStatus.choices,
        help_text="active, superseded or proposed; several times: with one of them. By default "
        "active ones that haven't expired.",
    )
    metadata = MetadataFilter(
        lookup_expr="contains",
        help_text='A JSON object: those with these names and values, such as {"sku": 7}.',
    )
    pinned = TruthFilter(help_text="true or false")
    since = MomentFilter(
        field_name="created_at",
        lookup_expr="gte",
        help_text="Made then or later, such as 2026-01-31T09:30:00Z.",
    )
    text = django_filters.CharFilter(
        method="with_words", help_text="Those that hold each of these words, in any form."
    )

    class Meta:
        model = Memory
        fields: list[str] = []

    def with_tags(self, rows: QuerySet[Memory], _: str, value: list[str]) -> QuerySet[Memory]:
        return rows.filter(tags__contains=value)

    def in_chat(self, rows: QuerySet[Memory], _: str, value: str) -> QuerySet[Memory]:
        return rows.filter(chat_id__in=chats_at(value).values("pk"))

    def with_words(self, rows: QuerySet[Memory], _: str, value: str) -> QuerySet[Memory]:
        return with_words(rows, value)

    def filter_queryset(self, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        if not self.form.cleaned_data.get("status"):
            queryset = queryset.filter(is_current(timezone.now()), status=MemoryStatus.ACTIVE)
        found: QuerySet[Memory] = super().filter_queryset(queryset)
        return found


def memory_etag(memory: Any) -> str:
    """Return the ETag of a memory with its chat's name; it covers all shown fields."""
    version = memory.updated_at.isoformat()
    return etag_of(memory.pk, version, memory.whatsapp_chat, memory.superseded_by_id)


class MemoriesView(ListView):
    scopes = {"GET": "read", "POST": "write"}
    staff_rights = {"GET": ["memories_app.view_memory"], "POST": ["memories_app.add_memory"]}
    raises = RAISES
    answers = {
        "POST": [
            conflicting(
                "The known memory is being changed, or the chat was erased.",
                "It was changed meanwhile.",
            )
        ]
    }
    repeatable = frozenset({"tags", "type", "status"})
    serializer_class = MemorySerializer
    filterset_class = MemoryFilters
    ordering = ("-created_at", "-memory_id")

    def get_queryset(self) -> Any:
        return memories_named()

    @described(
        operation_id="memories_list",
        summary="List memories, the newest first",
        examples=[response_example("One memory", examples.MEMORY)],
    )
    def get(self, request: Request) -> Response:
        """Return active memories that haven't expired, or those with a `status`."""
        return self.page_of(self.get_queryset().filter(memories_in_reach(self.caller)))

    @described(
        operation_id="memories_remember",
        summary="Remember something",
        description=(
            "201 for a new memory. Something that says otherwise than a known memory takes its "
            "place: `superseded` names it, and `supersede` switches it off. 200 for what is known "
            "already, which then counts as told again: new tags and metadata are added to it "
            "(`merged`), other fields stay as they are (`not_applied`)."
        ),
        parameters=[etag(200, 201), location(201)],
        request=NewMemorySerializer,
        responses={201: StoredMemorySerializer, 200: StoredMemorySerializer},
        examples=[
            request_example("A fact of one chat", examples.NEW),
            response_example("Created", examples.STORED, status=201),
            response_example("Known already", examples.KNOWN),
        ],
    )
    # A retry finds its own memory.
    @idempotent(atomic=False)
    def post(self, request: Request) -> Response:
        body = self.body(NewMemorySerializer)
        new = memories_to_store([body], self.caller)
        (remembered,) = memories_add(new, self.caller)
        named = memories_named(memories_in_reach(self.caller))
        memory = named.filter(pk=remembered.memory.pk).first()
        if memory is None:
            raise NotFound("It was stored, and forgotten since.")
        outcome = outcome_of(remembered)
        done = {"outcome": outcome, **done_by(remembered, body)}
        headers = {"ETag": memory_etag(memory)}
        if outcome == CREATED:
            headers["Location"] = reverse("api-memory", args=[memory.pk])
        return Response(
            {**MemorySerializer(memory).data, **done},
            status=201 if outcome == CREATED else 200,
            headers=headers,
        )


class MemoryBatchView(ApiView):
    scopes = {"POST": "write"}
    staff_rights = {"POST": ["memories_app.add_memory"]}
    kinds = {"POST": "bulk"}
    raises = {MemoryValidationError: invalid_batch, **{
        kind: make for kind, make in RAISES.items() if kind is not MemoryValidationError
    }}  # fmt: skip

    @described(
        operation_id="memories_remember_batch",
        summary="Remember up to 1,000 things, all or none",
        description="201 where any of them is new, else 200. In the order given.",
        request=MemoryBatchSerializer,
        responses={201: MemoryBatchResultSerializer, 200: MemoryBatchResultSerializer},
        examples=[
            request_example(
                "Two memories", {"memories": [examples.NEW, {"content": "We open at 9"}]}
            ),
            response_example(
                "One is new",
                {
                    "memories": [
                        {"memory_id": MEMORY_ID, "status": "created", **examples.DONE},
                        {
                            "memory_id": "d2e3f4a5-6b7c-4d8e-9f0a-1b2c3d4e5f25",
                            "status": "duplicate",
                            **examples.DONE,
                        },
                    ]
                },
                status=201,
            ),
            response_example(
                "None is new",
                {"memories": [{"memory_id": MEMORY_ID, "status": "duplicate", **examples.DONE}]},
            ),
        ],
    )
    @idempotent(atomic=False)
    def post(self, request: Request) -> Response:
        bodies = self.body(MemoryBatchSerializer)["memories"]
        new = memories_to_store(bodies, self.caller)
        stored = memories_add(new, self.caller)
        memories = [
            {
                "memory_id": str(one.memory.pk),
                "status": outcome_of(one),
                **done_by(one, body),
            }
            for one, body in zip(stored, bodies, strict=True)
        ]
        created = any(each["status"] == CREATED for each in memories)
        return Response({"memories": memories}, status=201 if created else 200)
