"""Export and import of memories as lines of JSON, over the API and on the page of memories."""

import hashlib
import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _, gettext_lazy
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.models import Memory
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin, refuse_nul
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
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
from sessions_app.memories.transfer import (
    VECTORS_TELL,
    ImportReport,
    lines_of,
    memories_export,
    memories_import,
)
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


logger = logging.getLogger(__name__)

EXPORT = "memories_app.export_memory"
# A browser waits for the response; manage.py memories_import accepts more.
MAX_BYTES = 16 * 1024 * 1024
SHOWN_ERRORS = 200


class ImportForm(forms.Form):
    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("As “Export” writes it: a memory in each line, as JSON (NDJSON)."),
        widget=forms.FileInput(attrs={"accept": ".ndjson,.jsonl,.json,application/x-ndjson"}),
        error_messages={"empty": gettext_lazy("This file is empty.")},
    )
    vectors = forms.BooleanField(
        label=gettext_lazy("Make the vectors that are missing"),
        help_text=gettext_lazy("Without a vector a memory is found by its words only."),
        required=False,
        initial=True,
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            text = _(
                "The file is larger than %(most)s: send it in parts, or use "
                "“manage.py memories_import”."
            )
            raise forms.ValidationError(text % {"most": filesizeformat(MAX_BYTES)})
        return file


class MemoryTransfer(ReadOnlyAdmin):
    """The part of the page of memories that exports and imports."""

    own_pages: ClassVar[Any] = {
        "export": OwnPage("export/", "export_view", "POST"),
        "import": OwnPage("import/", "import_view"),
    }

    def has_export_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(EXPORT) and self.has_view_permission(request))

    @admin.action(description=gettext_lazy("Export"), permissions=["export"])
    def export_selected(self, request: HttpRequest, queryset: QuerySet[Memory]) -> Any:
        return self._export(request, queryset)

    def export_view(self, request: HttpRequest) -> HttpResponse:
        """Export the memories that the list's search and filters match, given in the address."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        refuse_nul(request)
        found = self.get_changelist_instance(request).queryset
        return self._export(request, found)

    def _export(self, request: HttpRequest, queryset: QuerySet[Memory]) -> Any:
        # Without the list's order and columns: an export has its own.
        chosen = Memory.objects.filter(pk__in=queryset.order_by().values("pk"))
        redacted = "redact" in request.POST
        lines = memories_export(memories=chosen, actor=staff_actor(request), redacted=redacted)
        return lines_answer(lines, name=EXPORT_NAMES[redacted])

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form, and after an import the result of each line."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ImportForm(request.POST or None, request.FILES or None)
        report = None
        if request.method == "POST" and form.is_valid():
            report = self._import(request, form.cleaned_data["file"], form.cleaned_data["vectors"])
        context = {
            "form": form,
            "report": report,
            "errors": report.errors[:SHOWN_ERRORS] if report else [],
            "more_errors": _left_out(report) if report else 0,
        }
        status = 400 if request.method == "POST" and report is None else 200
        return staff_page(
            request,
            "admin/memories_app/memory/import.html",
            _("Import memories"),
            context,
            of=self.model,
            status=status,
        )

    def _import(self, request: HttpRequest, file: Any, vectors: bool) -> ImportReport | None:
        """Import the file; None if it was interrupted. Earlier lines stay; a retry is safe."""
        try:
            return memories_import(
                lines=Lines(file.file, ""),
                embedder=embedder() if vectors else None,
                actor=staff_actor(request),
            )
        except EmbedderError as error:
            text = _(
                "No vectors can be made just now: %(reason)s What was read before stays. Import "
                "the file again later, or without vectors."
            )
            reason = translate_error(error_text(error))
            messages.error(request, text % {"reason": reason})
        except DatabaseError:
            logger.exception("An import of memories broke off.")
            text = _("The database refused. What was read before stays: import the file again.")
            messages.error(request, text)
        return None


def _left_out(report: ImportReport) -> int:
    return max(len(report.errors) - SHOWN_ERRORS, 0) + report.errors_left_out
