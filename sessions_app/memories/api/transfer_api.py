"""Export and import of memories."""

from __future__ import annotations

from typing import Any, cast

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.search.facade import memories_for_staff
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.rest_kit.errors import conflict
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import described, header, response_example
from memoryproject.foundation.rest_kit.serializers import Strict
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.conversations.facade import ChatGoneError
from sessions_app.embedding.facade import embedder
from sessions_app.memories.api import examples
from sessions_app.memories.api.streams import (
    NDJSON,
    JsonErrors,
    Lines,
    LinesParser,
    NdJson,
    lines_answer,
)
from sessions_app.memories.api.writing import no_vector
from sessions_app.memories.transfer import memories_export, memories_import
from sessions_app.presentation.access import (
    chat_in_reach,
    memories_in_reach,
    no_chat,
    require_longterm,
    require_memory,
)
from sessions_app.presentation.serializers import WhatsAppChat

LINE = '{"content": "We open at 9", "visibility": "public", "tags": ["hours"]}\n'


class ExportQuery(Strict):
    whatsapp_chat = WhatsAppChat(required=False, help_text="Only what came from this chat.")
    embeddings = serializers.BooleanField(
        default=False, help_text="true: with the vectors of every model."
    )


class ImportLineErrorSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField(help_text="From 1.")
    detail = serializers.CharField(help_text="What is wrong with the line.")


class MemoryImportResultSerializer(serializers.Serializer[Any]):
    created = serializers.IntegerField(help_text="How many memories are new.")
    duplicates = serializers.IntegerField(
        help_text="How many lines hold a memory that was there already."
    )
    errors = ImportLineErrorSerializer(  # type: ignore[assignment]
        many=True, help_text="The lines that could not be used; the others were imported."
    )
    errors_left_out = serializers.IntegerField(
        required=False, help_text="How many more there are, where there are very many."
    )


class MemoryExportView(ApiView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["memories_app.view_memory", "memories_app.export_memory"]}
    kinds = {"GET": "bulk"}
    query_serializer_class = ExportQuery
    renderer_classes = [JsonErrors, NdJson]

    @described(
        operation_id="memories_export",
        summary="Export memories as lines of JSON",
        parameters=[header("Content-Disposition", "A name for the file.", 200)],
        responses={(200, NDJSON): OpenApiTypes.BINARY},
        examples=[OpenApiExample("A line each", value=LINE, response_only=True, media_type=NDJSON)],
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Stream all memories, oldest first, with revisions and tellings.

        Superseded and proposed memories are included. The audit log records the export.
        """
        name = self.query.get("whatsapp_chat")
        memories = memories_for_staff().filter(memories_in_reach(self.caller))
        if name:
            chat = chat_in_reach(self.caller, name) or no_chat(name)
            memories = memories.filter(chat_id=chat.pk)
        lines = memories_export(
            memories=memories,
            actor=self.caller.actor,
            embeddings=self.query["embeddings"],
        )
        return lines_answer(lines, name="memories.ndjson")


class MemoryImportView(ApiView):
    """Lines may have any visibility, so bound tokens can't import."""

    scopes = {"POST": "write"}
    staff_rights = {"POST": ["memories_app.add_memory", "memories_app.change_memory"]}
    kinds = {"POST": "bulk"}
    bound_tokens = False
    raises = {EmbedderError: no_vector, ChatGoneError: conflict}
    parser_classes = [LinesParser]
    # An empty body has no memories.
    needs_body = False
    taken_in: Lines | None = None

    def finalize_response(self, *args: Any, **kwargs: Any) -> Any:
        if self.taken_in is not None:
            self.taken_in.close()
        return super().finalize_response(*args, **kwargs)

    @described(
        operation_id="memories_import",
        summary="Import memories from lines of JSON",
        description=(
            "As the export writes them. What is there already, by its id or as the same fact in "
            "the same scope, is a duplicate. A line that can't be used is told with its number, "
            "and the rest goes in. At most 1 GB."
        ),
        request={NDJSON: OpenApiTypes.BINARY},
        responses=MemoryImportResultSerializer,
        examples=[
            OpenApiExample("A line each", value=LINE, request_only=True, media_type=NDJSON),
            response_example("One line is wrong", examples.IMPORTED),
        ],
    )
    @idempotent(atomic=False)
    def post(self, request: Request) -> Response:
        require_memory()
        require_longterm()
        report = memories_import(
            lines=cast(Lines, request.data), embedder=embedder(), actor=self.caller.actor
        )
        return Response(report.as_dict())
