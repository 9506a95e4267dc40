"""One memory document: what the app of memories serves, and its forgetting."""

from __future__ import annotations

from typing import Any

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
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import IF_MATCH, described, response_example
from sessions_app.forgetting.presentation import FORGETTING, forget_once
from sessions_app.presentation.examples import DOCUMENT_ID, receipt
from sessions_app.presentation.serializers import ReceiptSerializer


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
