"""The addresses of memory documents, under /api/v1/."""

from __future__ import annotations

from django.urls import path

from memories_app.memory_documents.api.memory_document_api import (
    DocumentArchiveView,
    DocumentCleanupView,
    DocumentsView,
)

DOCUMENT = "documents/<str:category>/<str:identifier>/"

urlpatterns = [
    path("documents/", DocumentsView.as_view(), name="api-documents"),
    path("documents/cleanup/", DocumentCleanupView.as_view(), name="api-documents-cleanup"),
    # sessions_app/api/memory_urls.py has the document itself, because it can be forgotten.
    path(f"{DOCUMENT}archive/", DocumentArchiveView.as_view(), name="api-document-archive"),
]
