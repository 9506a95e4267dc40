"""The addresses of memories, and of data stored next to conversations, under /api/v1/."""

from __future__ import annotations

from typing import Any

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.memory_documents.api.memory_document_api import (
    ARCHIVED,
    PLACE,
    DocumentView,
    document_etag,
    document_location,
    location,
)
from memoryproject.foundation.rest_kit.answers import CHANGED_MEANWHILE
from memoryproject.foundation.rest_kit.converters import ID
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import IF_MATCH, described, response_example
from memoryproject.foundation.rest_kit.scopes import ANY, SCOPES
from memoryproject.foundation.rest_kit.serializers import Moment
from memoryproject.foundation.rest_kit.throttles import KINDS, rate_of
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.api.audit import AuditVerifyView, AuditView
from sessions_app.cards.api import CardView
from sessions_app.documents.document_api import FilesView, FileView
from sessions_app.forgetting.api import ReceiptsView, ReceiptView
from sessions_app.forgetting.presentation import FORGETTING, forget_once
from sessions_app.memories.api.detail import MemoryView
from sessions_app.memories.api.listing import MemoriesView, MemoryBatchView
from sessions_app.memories.api.recall_api import RecallView
from sessions_app.memories.api.transfer_api import MemoryExportView, MemoryImportView
from sessions_app.presentation.access import names_of_bound
from sessions_app.presentation.examples import CHAT, DOCUMENT_ID, receipt
from sessions_app.presentation.serializers import ReceiptSerializer
from sessions_app.transcripts.api import (
    SessionTranscriptView,
    TranscriptsView,
    ValidateTranscriptView,
)

# One memory document: what the app of memories serves, and its forgetting.


class MemoryDocumentView(DocumentView):
    scopes = {**DocumentView.scopes, "DELETE": "forget"}
    staff_rights = {**DocumentView.staff_rights, "DELETE": ["memories_app.delete_memorydocument"]}
    answers = {**DocumentView.answers, "DELETE": [CHANGED_MEANWHILE]}
    raises = {**DocumentView.raises, **FORGETTING}

    @described(
        operation_id="documents_forget",
        summary="Forget a memory document, with all its versions",
        parameters=[*PLACE, ARCHIVED, IF_MATCH, location(200)],
        responses={200: ReceiptSerializer},
        examples=[
            response_example(
                "The receipt",
                receipt("memory_document", DOCUMENT_ID, memories_app_memorydocument=1),
            )
        ],
    )
    @idempotent(atomic=False, holds_texts=False)
    def delete(self, request: Request, category: str, identifier: str) -> Response:
        """Forget the document with a receipt; once more: 404.

        In context an identifier without a date means the newest document; `Content-Location` shows
        which one it was. With `If-Match` only the version that you read: else 412.
        """
        place: dict[str, Any] = {
            "category": self.category(category),
            "identifier": identifier,
            "archived": self.is_archived(request),
        }
        headers = {}

        def find() -> Any:
            kept = self.store().load(**place)
            # From here on it is this very document, also if a newer one comes meanwhile.
            place["identifier"] = kept.key.name
            headers["Content-Location"] = document_location(kept.key)
            return self.store().document_id(**place)

        response = forget_once(
            self,
            kind="memory_document",
            find=find,
            etag=lambda: document_etag(self.store().load(**place)),
        )
        for name, value in headers.items():
            response[name] = value
        return response


# The rights and limits of the caller.

ME: dict[str, Any] = {
    "kind": "api",
    "name": "my-integration",
    "scopes": ["read", "write"],
    "whatsapp_chats": [CHAT],
    "expires_at": None,
    "calls_per_minute": {"read": 6000, "write": 3000, "forget": 1200, "chat": 600, "bulk": 120},
}


class MeSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(["api", "staff"], help_text="A token, or a staff member.")
    name = serializers.CharField(help_text="As the audit log names the caller.")
    scopes = serializers.ListField(
        child=serializers.CharField(),
        help_text="What the caller may do: some of read, write, forget and audit.",
    )
    whatsapp_chats = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="The chats that a token is bound to; null: all chats.",
    )
    expires_at = Moment(
        allow_null=True, help_text="From then on the token is refused; null: it doesn't expire."
    )
    calls_per_minute = serializers.DictField(
        child=serializers.IntegerField(), help_text="By kind of call; 0: any number."
    )


class MeView(ApiView):
    scopes = {"GET": ANY}
    # Staff without any right may know that they have none.
    staff_rights = {"GET": ()}

    @described(
        operation_id="me_get",
        summary="What the caller may do",
        responses=MeSerializer,
        examples=[response_example("A token that is bound to one chat", ME)],
    )
    def get(self, request: Request) -> Response:
        """Return the caller's name, scopes, chats and limits. Every token may ask this."""
        caller = self.caller
        document = {
            "kind": caller.actor.kind,
            "name": caller.actor.name,
            "scopes": [scope for scope in SCOPES if scope in caller.scopes],
            "whatsapp_chats": names_of_bound(caller) if caller.is_bound else None,
            "expires_at": caller.expires_at,
            "calls_per_minute": {kind: rate_of(kind) for kind in KINDS},
        }
        return Response(MeSerializer(document).data)


SESSION = f"sessions/<{ID}:session_id>/"

urlpatterns = [
    path("memories/", MemoriesView.as_view(), name="api-memories"),
    path("memories/batch/", MemoryBatchView.as_view(), name="api-memories-batch"),
    path("memories/recall/", RecallView.as_view(), name="api-memories-recall"),
    path("memories/export/", MemoryExportView.as_view(), name="api-memories-export"),
    path("memories/import/", MemoryImportView.as_view(), name="api-memories-import"),
    path(f"memories/<{ID}:memory_id>/", MemoryView.as_view(), name="api-memory"),
    path(
        "documents/<str:category>/<str:identifier>/",
        MemoryDocumentView.as_view(),
        name="api-document",
    ),
    path("files/", FilesView.as_view(), name="api-files"),
    path(f"files/<{ID}:document_id>/", FileView.as_view(), name="api-file"),
    path("receipts/", ReceiptsView.as_view(), name="api-receipts"),
    path(f"receipts/<{ID}:receipt_id>/", ReceiptView.as_view(), name="api-receipt"),
    path("me/", MeView.as_view(), name="api-me"),
    path("audit/", AuditView.as_view(), name="api-audit"),
    path("audit/verify/", AuditVerifyView.as_view(), name="api-audit-verify"),
    path(f"{SESSION}card/", CardView.as_view(), name="api-session-card"),
    path(f"{SESSION}transcript/", SessionTranscriptView.as_view(), name="api-session-transcript"),
    path("transcripts/", TranscriptsView.as_view(), name="api-transcripts"),
    path("transcripts/validate/", ValidateTranscriptView.as_view(), name="api-transcripts-check"),
]
