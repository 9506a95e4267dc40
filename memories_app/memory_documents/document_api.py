"""Memory documents: context, decisions, interfaces and handoffs that programs keep here."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote

import django_filters
from django import forms
from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import get_script_prefix
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import APIException, ErrorDetail, NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.memory_document_format import strict_json
from memories_app.memory_document_format.envelope import content_read, read_duration
from memories_app.memory_document_format.names import CATEGORIES, Pattern
from memories_app.memory_documents.database_store import DatabaseStore
from memories_app.memory_documents.store import CREATED, Kept, Key
from memories_app.models import MemoryDocument
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.rest_kit import fields, serializers as kit, views
from memoryproject.foundation.rest_kit.bodies import RawJson
from memoryproject.foundation.rest_kit.errors import MemoryDisabled, not_found, refuse
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    IF_NONE_MATCH,
    NOT_MODIFIED,
    described,
    etag,
    header,
    only_new,
    path_parameter,
)

# The limit for clients; longer input is accepted if it is a valid time.
AGE = r"^([0-9]{1,9}s|[0-9]{1,7}m|[0-9]{1,5}h|[0-9]{1,4}d|[0-9]{1,3}w)$"


@extend_schema_field({"type": "string", "pattern": AGE})
class Duration(kit.Text):
    """Parse 7d, 24h, 2w or 30m to a timedelta."""

    def to_internal_value(self, data: Any) -> Any:
        text = super().to_internal_value(data)
        try:
            return read_duration(text)
        except ValueError as error:
            raise serializers.ValidationError(f"{error}.") from None


class MemoryDocumentEntrySerializer(serializers.Serializer[MemoryDocument]):
    """The fields of a document in lists."""

    category = serializers.ChoiceField(CATEGORIES)
    identifier = serializers.CharField()
    name = serializers.CharField()
    summary = serializers.CharField()
    created = kit.Moment()
    changed = kit.Moment()
    status = serializers.CharField()
    session_id = serializers.CharField()
    archived = serializers.SerializerMethodField()

    def get_archived(self, row: MemoryDocument) -> bool:
        return row.archived_at is not None


class MemoryDocumentSerializer(serializers.Serializer[Any]):
    """A document, exactly as it is stored."""

    meta = serializers.DictField()
    content = serializers.DictField()


class ArchivedDocumentSerializer(serializers.Serializer[Any]):
    """The place where a document is now."""

    category = serializers.ChoiceField(CATEGORIES)
    name = serializers.CharField()
    path = serializers.CharField()
    archived = serializers.BooleanField()


class CleanupSerializer(kit.Strict):
    category = kit.Choice(CATEGORIES)
    older_than = Duration()


class RemovedDocumentsSerializer(serializers.Serializer[Any]):
    removed = serializers.IntegerField()
    names = fields.texts()


# Filters of lists of documents.


def moment_or_age(text: str) -> datetime:
    """Return a time, or the time that an age such as ``7d`` means. Raises ValueError."""
    try:
        return timezone.now() - read_duration(text)
    except ValueError:
        field = kit.Moment()
        field.field_name = "since"
        try:
            found: datetime = field.run_validation(text)
        except serializers.ValidationError:
            raise ValueError(
                "It must be an age such as 7d or 24h, or a time such as 2026-01-31T09:30:00Z."
            ) from None
        return found


class ParsedFormField(forms.CharField):
    """A text that ``parse`` turns into a value; its ValueError or name error says why not."""

    def __init__(self, *, parse: Callable[[str], Any], **options: Any) -> None:
        super().__init__(**options)
        self.parse = parse

    def clean(self, value: Any) -> Any:
        if value is None:
            return None
        try:
            return self.parse(super().clean(value))
        except ValueError as error:
            raise forms.ValidationError(str(error), code="invalid") from error


@extend_schema_field(
    {"anyOf": [{"type": "string", "pattern": AGE}, {"type": "string", "format": "date-time"}]}
)
class SinceFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = ParsedFormField


class PatternFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = ParsedFormField


class DocumentFilters(django_filters.FilterSet):  # type: ignore[misc]
    category = kit.ChoiceFilter(
        choices=[(each, each) for each in CATEGORIES], help_text=", ".join(CATEGORIES)
    )
    pattern = PatternFilter(parse=Pattern, method="fitting")
    since = SinceFilter(parse=moment_or_age, strip=False, field_name="changed", lookup_expr="gte")
    session_id = django_filters.CharFilter()
    archived = kit.TruthFilter(method="in_archive")

    def fitting(
        self, rows: QuerySet[MemoryDocument], _: str, value: Pattern
    ) -> QuerySet[MemoryDocument]:
        """Match names as the command does, with the same pattern."""
        named = rows.order_by().values_list("pk", "category", "name")
        return rows.filter(pk__in=[pk for pk, *place in named if value.fits(*place)])

    def in_archive(
        self, rows: QuerySet[MemoryDocument], _: str, value: bool
    ) -> QuerySet[MemoryDocument]:
        return rows  # filter_queryset has done it

    def filter_queryset(self, queryset: QuerySet[MemoryDocument]) -> QuerySet[MemoryDocument]:
        archived = bool(self.form.cleaned_data.get("archived"))
        queryset = queryset.filter(archived_at__isnull=not archived)
        found: QuerySet[MemoryDocument] = super().filter_queryset(queryset)
        return found


DOCUMENT = "documents/<str:category>/<str:identifier>/"
MAX_REPORTED = 100
_INDEX = re.compile(r"\[(\d+)\]")
ARCHIVED = OpenApiParameter(
    "archived", bool, description="true: the one in the archive, by its name there."
)
SESSION = OpenApiParameter("session_id", str, description="The session that it comes from.")

PLACE = [
    path_parameter("category", ", ".join(CATEGORIES), {"type": "string", "enum": list(CATEGORIES)}),
    path_parameter("identifier", "Such as use-postgres.", {"type": "string", "minLength": 1}),
]


def location(*statuses: int) -> OpenApiParameter:
    return header("Content-Location", "The address of that very document.", *statuses)


def invalid_document(error: Exception) -> APIException:
    """List every problem with its place in the content, such as decisions.2."""
    errors: dict[str, list[ErrorDetail]] = {}
    for problem in instance(error, strict_json.MemoryDocumentInvalidError).problems[:MAX_REPORTED]:
        place = problem.path.removeprefix("content").removeprefix(".")
        attr = _INDEX.sub(r".\1", place).lstrip(".") or "content"
        errors.setdefault(attr, []).append(ErrorDetail(f"It {problem.detail}.", "invalid"))
    return ValidationError(errors)


def invalid_name(error: Exception) -> APIException:
    return refuse(str(error), attr="identifier")


class DocumentsApi(views.ApiView):
    """Documents belong to no chat, so tokens that are bound to chats have no access to them."""

    bound_tokens = False
    raises = {
        strict_json.MemoryDocumentNotFoundError: not_found,
        strict_json.MemoryDocumentInvalidError: invalid_document,
        strict_json.MemoryDocumentNameError: invalid_name,
    }

    def store(self) -> DatabaseStore:
        return DatabaseStore(actor=self.caller.actor)

    def category(self, category: str) -> str:
        if category not in CATEGORIES:
            known = ", ".join(CATEGORIES)
            raise NotFound(f"There is no category {category[:40]}. Categories are {known}.")
        return category


class DocumentsView(views.ListView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["memories_app.view_memorydocument"]}
    bound_tokens = False
    queryset = MemoryDocument.objects.all()
    serializer_class = MemoryDocumentEntrySerializer
    filterset_class = DocumentFilters
    ordering = ("category", "name")

    @described(operation_id="documents_list")
    def get(self, request: Request) -> Response:
        """Return documents by category and name; archived documents with `archived=true`."""
        return self.page_of(self.get_queryset())


class DocumentView(DocumentsApi):
    scopes = {"GET": "read", "PUT": "write"}
    staff_rights = {
        "GET": ["memories_app.view_memorydocument"],
        "PUT": ["memories_app.add_memorydocument", "memories_app.change_memorydocument"],
    }
    answers = {"PUT": [CHANGED_MEANWHILE]}
    parser_classes = [RawJson]

    def query_parameters(self) -> set[str]:
        own = {"session_id"} if self.request.method == "PUT" else {"archived"}
        return super().query_parameters() | own

    def is_archived(self, request: Request) -> bool:
        """Return whether the query names a document in the archive. Raises ValidationError."""
        archived = request.query_params.get("archived", "false")
        if archived not in ("true", "false"):
            raise refuse("It is true or false.", attr="archived")
        return archived == "true"

    @described(
        operation_id="documents_get",
        parameters=[*PLACE, ARCHIVED, IF_NONE_MATCH, etag(200, 304), location(200)],
        responses={200: MemoryDocumentSerializer, 304: OpenApiResponse(description=NOT_MODIFIED)},
    )
    def get(self, request: Request, category: str, identifier: str) -> HttpResponse:
        """Return the document exactly as it is stored.

        In context an identifier without a date means the newest document; `Content-Location`
        shows which one it is.
        """
        kept = self.store().load(
            category=self.category(category),
            identifier=identifier,
            archived=self.is_archived(request),
        )
        if views.is_known(request, document_etag(kept)):
            return HttpResponse(status=304, headers={"ETag": document_etag(kept)})
        return document_answer(kept)

    @described(
        operation_id="documents_save",
        parameters=[
            *PLACE,
            SESSION,
            IF_MATCH,
            only_new("document"),
            etag(200, 201),
            location(200, 201),
        ],
        request=OpenApiTypes.OBJECT,
        responses={201: MemoryDocumentSerializer, 200: MemoryDocumentSerializer},
    )
    def put(self, request: Request, category: str, identifier: str) -> HttpResponse:
        if not settings.ENABLE_MEMORY_SYSTEM:
            raise MemoryDisabled
        session_id = request.query_params.get("session_id")
        if session_id is not None and "\x00" in session_id:
            raise refuse("It holds a NUL character.", code="nul", attr="session_id")
        # No parser reads an empty body.
        body = request.data if isinstance(request.data, str) else ""
        given = content_read(self.category(category), body)
        saved = self.store().save(
            category=category,
            identifier=identifier,
            content=given.content,
            session_id=given.session_id if session_id is None else session_id,
            check=self._check,
        )
        place = saved.archived_as or saved.key
        return document_answer(
            Kept(place, saved.envelope), status=201 if saved.outcome == CREATED else 200
        )

    def _check(self, there: Kept | None) -> None:
        """Check the preconditions, with the category locked. Raises PreconditionFailed."""
        views.require_precondition(
            self.request, document_etag(there) if there else None, "document"
        )


class DocumentArchiveView(DocumentsApi):
    scopes = {"POST": "write"}
    staff_rights = {"POST": ["memories_app.change_memorydocument"]}

    @described(
        operation_id="documents_archive",
        parameters=PLACE,
        request=None,
        responses=ArchivedDocumentSerializer,
    )
    @idempotent(atomic=True)
    def post(self, request: Request, category: str, identifier: str) -> Response:
        """Never overwrite archived documents: a name that is taken there gets a number."""
        self.body(kit.Nothing)
        key = self.store().archive(category=self.category(category), identifier=identifier)
        return Response(ArchivedDocumentSerializer(key).data)


class DocumentCleanupView(DocumentsApi):
    scopes = {"POST": "forget"}
    staff_rights = {"POST": ["memories_app.delete_memorydocument"]}
    kinds = {"POST": "forget"}

    @described(
        operation_id="documents_cleanup",
        request=CleanupSerializer,
        responses=RemovedDocumentsSerializer,
    )
    @idempotent(atomic=False)
    def post(self, request: Request) -> Response:
        """Delete them permanently, with all their versions; never archived ones."""
        given = self.body(CleanupSerializer)
        removed = self.store().cleanup(category=given["category"], older_than=given["older_than"])
        return Response({"removed": len(removed.names), "names": list(removed.names)})


def document_etag(kept: Kept) -> str:
    return views.etag_of(kept.key.path, kept.envelope.sha256)


def document_answer(kept: Kept, *, status: int = 200) -> HttpResponse:
    """Return the document's own text, byte for byte."""
    return HttpResponse(
        kept.envelope.text.encode(),
        status=status,
        content_type="application/json; charset=utf-8",
        headers={"ETag": document_etag(kept), "Content-Location": document_location(kept.key)},
    )


def document_location(key: Key) -> str:
    """Return the address of this very document."""
    name = quote(key.name, safe="")
    address = f"{get_script_prefix()}api/v1/documents/{key.category}/{name}/"
    return f"{address}?archived=true" if key.archived else address
