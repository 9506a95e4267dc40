"""That something was forgotten."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.api.schema import answered
from memoryproject.api.serializers import Moment
from memoryproject.api.views import ApiView
from sessions_app.api.examples import MEMORY_ID, receipt
from sessions_app.models import ForgetReceipt, ForgottenKind


class ReceiptSerializer(serializers.Serializer[Any]):
    """Proof of a forgetting, without what was forgotten."""

    receipt_id = serializers.UUIDField()
    kind = serializers.ChoiceField(ForgottenKind.choices)
    object_id = serializers.UUIDField()
    forgotten_at = Moment()
    swept = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many rows of which table."
    )
    probe = serializers.CharField(help_text="absent: looked for afterwards, and not found.")


class ReceiptView(ApiView):
    """A receipt doesn't say whose text it was, so that bound tokens can't be let at it."""

    scopes = {"GET": "read"}
    bound_tokens = False

    @extend_schema(
        summary="The receipt of a forgetting",
        responses=ReceiptSerializer,
        examples=[answered("A memory", receipt("memory", MEMORY_ID, memories_app_memory=1))],
    )
    def get(self, request: Request, receipt_id: UUID) -> Response:
        """Receipts are kept when what they tell of is long gone."""
        found = ForgetReceipt.objects.filter(receipt_id=receipt_id).first()
        if found is None:
            raise NotFound(f"There is no receipt {receipt_id}.")
        return Response(found.as_dict())
