"""Export and import of memories over HTTP, as lines of JSON; jobs of other packages use them."""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, cast

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.visibility import memories_for_staff
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.bodies import MEGABYTE, Json, limited_blocks
from memoryproject.foundation.rest_kit.errors import BodyTooLarge, conflict
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import described, header
from memoryproject.foundation.rest_kit.serializers import Strict
from memoryproject.foundation.rest_kit.views import ApiView
from memoryproject.foundation.rest_kit.where import TEXT, columns
from sessions_app.conversations.epochs import ChatGoneError
from sessions_app.embedding.facade import embedder
from sessions_app.memories.api.filters import MEMORY_FIELDS
from sessions_app.memories.api.writing import no_vector
from sessions_app.memories.transfer import VECTORS_TELL, lines_of, memories_export, memories_import
from sessions_app.presentation import access
from sessions_app.presentation.serializers import WhatsAppChat

# Lines of JSON in requests and responses; only a few are in memory at once.

NDJSON = "application/x-ndjson"
MAX_IMPORT_SIZE = 1024 * MEGABYTE
SPOOL_BYTES = 8 * MEGABYTE


class Lines:
    """A received body, line by line.

    As a text it is its own hash, which is compared for calls with the same Idempotency-Key.
    """

    def __init__(self, file: IO[bytes], sha256: str) -> None:
        self._file = file
        self._sha256 = sha256

    def __str__(self) -> str:
        return self._sha256

    def close(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        yield from lines_of(self._file)


class LinesParser(BaseParser):
    """Receive the whole body before processing it.

    So an interrupted upload has no effect. The view gets the body as ``taken_in``, and closes it.
    """

    media_type = "*/*"
    largest = MAX_IMPORT_SIZE

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        file = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 read later
        digest = hashlib.sha256()
        try:
            for block in limited_blocks(stream, self.largest):
                digest.update(block)
                file.write(block)
        except BodyTooLarge:
            file.close()
            raise
        lines = Lines(file, digest.hexdigest())
        (parser_context or {})["view"].taken_in = lines
        return lines


class NdJson(Json):
    """Lines of JSON."""

    media_type = NDJSON
    format = "ndjson"


class JsonErrors(Json):
    """Write errors as JSON. The lines have no other format, so none can be chosen."""

    format = NdJson.format


# By whether the export is redacted.
EXPORT_NAMES = {False: "memories.ndjson", True: "memories.redacted.ndjson"}


def lines_answer(lines: Iterable[str], *, name: str) -> StreamingHttpResponse:
    """Stream each line as soon as it exists."""
    return StreamingHttpResponse(
        (line.encode() + b"\n" for line in lines),
        content_type=f"{NDJSON}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


class ExportQuery(Strict):
    whatsapp_chat = WhatsAppChat(required=False)
    embeddings = serializers.BooleanField(default=False)
    redact = serializers.BooleanField(default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["redact"] and attrs["embeddings"]:
            raise serializers.ValidationError({"embeddings": VECTORS_TELL})
        return attrs


class ImportLineErrorSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField()
    detail = serializers.CharField()


class MemoryImportResultSerializer(serializers.Serializer[Any]):
    created = serializers.IntegerField()
    duplicates = serializers.IntegerField()
    errors = ImportLineErrorSerializer(  # type: ignore[assignment]
        many=True
    )
    errors_left_out = serializers.IntegerField(required=False)


class MemoryExportView(ApiView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["memories_app.view_memory", "memories_app.export_memory"]}
    kinds = {"GET": "bulk"}
    query_serializer_class = ExportQuery
    # All of them are exported, whatever their status.
    where_fields = {**MEMORY_FIELDS, **columns(TEXT, "status")}
    renderer_classes = [JsonErrors, NdJson]

    @described(
        operation_id="memories_export",
        parameters=[header("Content-Disposition", "A name for the file.", 200)],
        responses={(200, NDJSON): OpenApiTypes.BINARY},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Stream all memories, oldest first, with revisions and tellings.

        Superseded and proposed memories are included. The audit log records the export.
        """
        name = self.query.get("whatsapp_chat")
        memories = memories_for_staff().filter(access.memories_in_reach(self.caller), self.where)
        if name:
            chat = access.chat_in_reach(self.caller, name) or access.no_chat(name)
            memories = memories.filter(chat_id=chat.pk)
        lines = memories_export(
            memories=memories,
            actor=self.caller.actor,
            embeddings=self.query["embeddings"],
            redacted=self.query["redact"],
        )
        return lines_answer(lines, name=EXPORT_NAMES[self.query["redact"]])


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
        request={NDJSON: OpenApiTypes.BINARY},
        responses=MemoryImportResultSerializer,
    )
    @idempotent(atomic=False)
    def post(self, request: Request) -> Response:
        access.require_memory()
        access.require_longterm()
        report = memories_import(
            lines=cast(Lines, request.data),
            embedder=embedder(),
            actor=self.caller.actor,
            obeys_switches=True,
        )
        return Response(report.as_dict())
