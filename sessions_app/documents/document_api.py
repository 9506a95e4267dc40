"""Serve documents over REST: files are uploaded here and read by the workers."""

from typing import Any
from uuid import UUID

import django_filters
from django.db import transaction
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from memories_app.documents.dependencies import build_document_limits, documents_folder
from memories_app.models import DocumentState, SourceDocument, Visibility
from memoryproject.foundation.integrations.documents.sniffing import DocumentError
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.rest_kit import fields, operations, serializers as kit
from memoryproject.foundation.rest_kit.bodies import UploadField, UploadParser
from memoryproject.foundation.rest_kit.errors import BodyTooLarge, conflict, refuse
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.views import ApiView, ListView, etag_of_document, etagged
from sessions_app.conversations.chat_addresses import chat_at_or_new
from sessions_app.conversations.epochs import ChatGoneError
from sessions_app.documents.upload import document_upload, documents_named, enqueue_document
from sessions_app.forgetting.presentation import FORGETTING, forget_once, forgets
from sessions_app.models import Chat
from sessions_app.presentation import access
from sessions_app.presentation.serializers import WhatsAppChat

# Documents as JSON.


class FileUploadSerializer(kit.Strict):
    """A form with a file."""

    file = UploadField()
    whatsapp_chat = WhatsAppChat(required=False)
    visibility = kit.Choice(Visibility.choices, required=False)


class SourceDocumentSerializer(serializers.Serializer[Any]):
    """A document whose text is stored as memories."""

    document_id = serializers.UUIDField()
    name = serializers.CharField()
    title = serializers.CharField()
    media_type = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()
    state = serializers.ChoiceField(DocumentState.choices)
    error = serializers.SerializerMethodField()
    warnings = fields.texts()
    pages = serializers.IntegerField(allow_null=True)
    characters = serializers.IntegerField()
    passages = serializers.IntegerField(source="passage_count")
    visibility = serializers.ChoiceField(Visibility.choices)
    whatsapp_chat = serializers.CharField(allow_null=True)
    created_at = kit.Moment()

    @extend_schema_field(kit.ApiErrorSerializer(allow_null=True))
    def get_error(self, document: SourceDocument) -> dict[str, str] | None:
        if not document.error_code:
            return None
        return {"code": document.error_code, "detail": document.error, "attr": "file"}


class FileFilters(django_filters.FilterSet):  # type: ignore[misc]
    whatsapp_chat = access.WhatsAppChatFilter(field_name="chat_id")
    state = kit.ChoicesFilter(choices=DocumentState.choices)
    since = kit.MomentFilter(field_name="created_at", lookup_expr="gte")


def unusable_file(error: Exception) -> APIException:
    """Refuse what is known before the file is read: it is too large, or empty."""
    failed = instance(error, DocumentError)
    if failed.code == "too_large":
        return BodyTooLarge(str(failed))
    return refuse(str(failed), code=failed.code, attr="file")


class FilesView(ListView):
    scopes = {"GET": "read", "POST": "write"}
    staff_rights = {
        "GET": ["memories_app.view_sourcedocument"],
        "POST": ["memories_app.add_sourcedocument"],
    }
    kinds = {"POST": "bulk"}
    raises = {DocumentError: unusable_file, ChatGoneError: conflict}
    repeatable = frozenset({"state"})
    parser_classes = [UploadParser]
    serializer_class = SourceDocumentSerializer
    filterset_class = FileFilters
    ordering = ("-created_at", "-document_id")

    def get_queryset(self) -> Any:
        return documents_named()

    def max_upload_bytes(self) -> int:
        return build_document_limits().size

    @operations.described(operation_id="files_list")
    def get(self, request: Request) -> Response:
        """Return the documents that were uploaded, sent by WhatsApp or imported."""
        return self.page_of(self.get_queryset().filter(access.memories_in_reach(self.caller)))

    @operations.described(
        operation_id="files_upload",
        parameters=[operations.etag(200, 201), operations.location(201)],
        request=FileUploadSerializer,
        responses={201: SourceDocumentSerializer, 200: SourceDocumentSerializer},
    )
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        given = self.body(FileUploadSerializer)
        file = given["file"].file
        if not file.size:
            raise DocumentError("empty")
        name = given.get("whatsapp_chat") or access.own_chat(self.caller)
        chat = self._chat_to_write(name, given.get("visibility"))
        # A new chat comes with its file, or not at all.
        with transaction.atomic():
            received = document_upload(
                blocks=file.chunks(),
                name=file.name or "",
                folder=documents_folder(),
                max_bytes=self.max_upload_bytes(),
                actor=self.caller.actor,
                chat=chat or (chat_at_or_new(name) if name else None),
                visibility=given.get("visibility", ""),
            )
        document_id = received.document.document_id
        if not received.duplicate:
            transaction.on_commit(lambda: enqueue_document(document_id))
        shown = SourceDocumentSerializer(self.get_queryset().get(pk=document_id)).data
        headers = {"ETag": etag_of_document(shown)}
        if received.created:
            headers["Location"] = reverse("api-file", args=[document_id])
        return Response(shown, status=201 if received.created else 200, headers=headers)

    def _chat_to_write(self, name: str | None, visibility: str | None) -> Chat | None:
        """Return the chat, None if it is new or none is named.

        Raises MemoryDisabled, NotFound, PermissionDenied and ValidationError.
        """
        access.require_longterm()
        chat = access.chat_in_reach(self.caller, name) if name else None
        access.require_memory(chat)
        in_chat = str(Visibility.CHAT)
        access.refuse_beyond_chats(
            self.caller, visibility or (in_chat if name else str(Visibility.OWNER))
        )
        if visibility == in_chat and not name:
            raise refuse("A document that is visible in one chat needs it.", attr="whatsapp_chat")
        return chat


class FileView(ApiView):
    serializer_class = SourceDocumentSerializer
    scopes = {"GET": "read", "DELETE": "forget"}
    staff_rights = {"GET": ["memories_app.view_sourcedocument"]}
    answers = {"DELETE": [operations.CHANGED_MEANWHILE]}
    raises = FORGETTING

    def document(self, document_id: UUID) -> Any:
        """Return the document. Raises NotFound also for an inaccessible one."""
        rows = documents_named().filter(access.memories_in_reach(self.caller), pk=document_id)
        return self.one_of(rows, f"file {document_id}")

    @operations.described(
        operation_id="files_get", **operations.versioned(SourceDocumentSerializer)
    )
    def get(self, request: Request, document_id: UUID) -> Response:
        """Return the state of the document. Its text is in memories of the type `document`."""
        return etagged(request, SourceDocumentSerializer(self.document(document_id)).data)

    @forgets(operation_id="files_forget")
    def delete(self, request: Request, document_id: UUID) -> Response:
        return forget_once(self, "document", lambda: self.document(document_id))
