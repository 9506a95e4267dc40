"""Serve the receipts of forgetting."""

from __future__ import annotations

from uuid import UUID

import django_filters
from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.filters import ChoiceFilter, MomentFilter
from memoryproject.foundation.rest_kit.operations import described, response_example
from memoryproject.foundation.rest_kit.views import ApiView, ListView
from sessions_app.forgetting.write_receipt import receipts_of
from sessions_app.models import ForgetReceipt, ForgottenKind
from sessions_app.presentation.examples import MEMORY_ID, receipt
from sessions_app.presentation.filters import WhatsAppChatFilter, check_whatsapp_chat
from sessions_app.presentation.serializers import ReceiptSerializer

RIGHTS = ["sessions_app.view_forgetreceipt"]


class ReceiptFilters(django_filters.FilterSet):  # type: ignore[misc]
    object_id = django_filters.UUIDFilter(help_text="Of what was forgotten: its whole id.")
    whatsapp_chat = WhatsAppChatFilter(
        method="of_chat", help_text="Of this chat and what came from it, also if it is erased."
    )
    kind = ChoiceFilter(choices=ForgottenKind.choices, help_text="What was forgotten.")
    since = MomentFilter(field_name="forgotten_at", lookup_expr="gte", help_text="Then or later.")

    class Meta:
        model = ForgetReceipt
        fields: list[str] = []

    def of_chat(self, rows: QuerySet[ForgetReceipt], _: str, value: str) -> QuerySet[ForgetReceipt]:
        found = receipts_of(rows, value)
        if not found.exists():
            # Old data may have other names; receipts of such a chat are found all the same.
            check_whatsapp_chat(value)
        return found


class ReceiptsView(ListView):
    """Bound tokens see the receipts of their chats."""

    scopes = {"GET": "read"}
    staff_rights = {"GET": RIGHTS}
    queryset = ForgetReceipt.objects.all()
    serializer_class = ReceiptSerializer
    filterset_class = ReceiptFilters
    ordering = ("-id",)

    @described(
        operation_id="receipts_list",
        summary="List receipts, the newest first",
        examples=[
            response_example("A memory", receipt("memory", MEMORY_ID, memories_app_memory=1))
        ],
    )
    def get(self, request: Request) -> Response:
        """Find the receipt of an erasure again, by what was erased or by the person."""
        return self.page_of(self.within_reach())


class ReceiptView(ApiView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": RIGHTS}

    @described(
        operation_id="receipts_get",
        summary="The receipt of a forgetting",
        responses=ReceiptSerializer,
        examples=[
            response_example("A memory", receipt("memory", MEMORY_ID, memories_app_memory=1))
        ],
    )
    def get(self, request: Request, receipt_id: UUID) -> Response:
        """Receipts are kept after the forgotten texts are gone."""
        found = ForgetReceipt.objects.filter(self.caller.reach(), receipt_id=receipt_id).first()
        if found is None:
            raise NotFound(f"There is no receipt {receipt_id}.")
        return Response(found.as_dict())
