"""Serve the receipts of forgetting."""

from __future__ import annotations

from uuid import UUID

from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.operations import answered, described
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.models import ForgetReceipt
from sessions_app.presentation.examples import MEMORY_ID, receipt
from sessions_app.presentation.serializers import ReceiptSerializer


class ReceiptView(ApiView):
    """A receipt doesn't say whose text it was, so bound tokens may not read it."""

    scopes = {"GET": "read"}
    staff_rights = {"GET": ["sessions_app.view_forgetreceipt"]}
    bound_tokens = False

    @described(
        operation_id="receipts_get",
        summary="The receipt of a forgetting",
        responses=ReceiptSerializer,
        examples=[answered("A memory", receipt("memory", MEMORY_ID, memories_app_memory=1))],
    )
    def get(self, request: Request, receipt_id: UUID) -> Response:
        """Receipts are kept after the forgotten texts are gone."""
        found = ForgetReceipt.objects.filter(receipt_id=receipt_id).first()
        if found is None:
            raise NotFound(f"There is no receipt {receipt_id}.")
        return Response(found.as_dict())
