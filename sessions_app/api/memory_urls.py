"""The addresses of memories, and of data stored next to conversations, under /api/v1/."""

from __future__ import annotations

from django.urls import path

from memoryproject.foundation.rest_kit.converters import ID
from sessions_app.api.audit import AuditVerifyView, AuditView
from sessions_app.api.me import MeView
from sessions_app.api.memory_document import MemoryDocumentView
from sessions_app.cards.api import CardView
from sessions_app.documents.document_api import FilesView, FileView
from sessions_app.forgetting.api.receipt_api import ReceiptsView, ReceiptView
from sessions_app.memories.api.detail import MemoryView
from sessions_app.memories.api.listing import MemoriesView, MemoryBatchView
from sessions_app.memories.api.recall_api import RecallView
from sessions_app.memories.api.transfer_api import MemoryExportView, MemoryImportView
from sessions_app.transcripts.api import (
    SessionTranscriptView,
    TranscriptsView,
    ValidateTranscriptView,
)

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
