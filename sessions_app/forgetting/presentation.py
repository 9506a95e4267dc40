"""Forgetting for pages and REST resources of other packages; the receipts over the API.

DELETE of an object can be repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.models import Memory
from memoryproject.foundation.rest_kit import errors, idempotency, operations, serializers
from memoryproject.foundation.rest_kit.views import (
    ApiView,
    ListView,
    etag_of_document,
    require_match,
)
from sessions_app.forgetting import deletion_plan, forget_objects, write_receipt
from sessions_app.forgetting.choose_pages import ForgetAction as ForgetAction
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.models import ForgetReceipt, ForgottenKind
from sessions_app.presentation.access import WhatsAppChatFilter, check_whatsapp_chat
from sessions_app.presentation.serializers import ReceiptSerializer

# The errors of forgetting as responses of the API.
FORGETTING: Mapping[type[Exception], Callable[[Exception], APIException]] = {
    deletion_plan.NothingToForgetError: errors.not_found
}


def forgets(
    *parameters: OpenApiParameter | type[serializers.Strict], operation_id: str
) -> Callable[[idempotency.Handler], idempotency.Handler]:
    """Describe a DELETE that returns ``forget_once``, and let it accept an Idempotency-Key."""

    def decorate(handler: idempotency.Handler) -> idempotency.Handler:
        return operations.described(
            operation_id=operation_id,
            parameters=[*parameters, operations.IF_MATCH],
            responses={200: ReceiptSerializer},
        )(idempotency.idempotent(atomic=False, holds_texts=False)(handler))

    return decorate


def forget_once(
    view: ApiView, kind: str, find: Callable[[], Any], etag: Callable[[Any], str] | None = None
) -> Response:
    """Forget the object and return its receipt.

    ``find`` returns the object's row, or raises NotFound. It is called again with the object
    locked, if the call has If-Match. ``etag``: of a row; by default that of what GET returns.
    Decorate the view's method with ``forgets``: a call that crashed before its response was stored
    finds its receipt.
    """

    def check() -> None:
        if "If-Match" in view.request.headers:
            row = find()
            found = etag(row) if etag else etag_of_document(view.serializer_class(row).data)
            require_match(view.request, found)

    call_key = _call_key(view)
    forgotten = _earlier(call_key) or forget_objects.object_forget(
        kind=kind,
        object_id=find().pk,
        dependencies=build_forget_dependencies(),
        actor=view.caller.actor,
        check_object=check,
        call_key=call_key,
    )
    return Response(forgotten.as_dict())


def memories_forget_once(view: ApiView, memories: Sequence[Memory]) -> dict[UUID, ForgetReceipt]:
    """Forget the memories and return their receipts: see ``memories_forget_together``."""
    return forget_objects.memories_forget_together(
        memories=memories,
        dependencies=build_forget_dependencies(),
        actor=view.caller.actor,
        call_key=_call_key(view),
    )


def _call_key(view: ApiView) -> str:
    """Return the keyed hash of the call, which has an Idempotency-Key; "" without one."""
    if view.idempotency_ref is None:
        return ""
    text = f"{view.idempotency_ref}\0{view.request.get_full_path()}"
    return salted_hmac("api.forget_call", text, algorithm="sha256").hexdigest()


def _earlier(call_key: str) -> ForgetReceipt | None:
    """Return the receipt of the same call, which crashed before its response was stored."""
    if not call_key:
        return None
    recent = ForgetReceipt.objects.filter(forgotten_at__gt=timezone.now() - idempotency.KEPT)
    return recent.filter(call_key=call_key).first()


RIGHTS = ["sessions_app.view_forgetreceipt"]


class ReceiptFilters(django_filters.FilterSet):  # type: ignore[misc]
    object_id = django_filters.UUIDFilter()
    whatsapp_chat = WhatsAppChatFilter(method="of_chat")
    kind = serializers.ChoiceFilter(choices=ForgottenKind.choices)
    since = serializers.MomentFilter(field_name="forgotten_at", lookup_expr="gte")

    def of_chat(self, rows: QuerySet[ForgetReceipt], _: str, value: str) -> QuerySet[ForgetReceipt]:
        found = write_receipt.receipts_of(rows, value)
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

    @operations.described(operation_id="receipts_list")
    def get(self, request: Request) -> Response:
        """Find the receipt of an erasure again, by what was erased or by the person."""
        return self.page_of(self.within_reach())


class ReceiptView(ApiView):
    serializer_class = ReceiptSerializer
    scopes = {"GET": "read"}
    staff_rights = {"GET": RIGHTS}

    @operations.described(operation_id="receipts_get", responses=ReceiptSerializer)
    def get(self, request: Request, receipt_id: UUID) -> Response:
        """Receipts are kept after the forgotten texts are gone."""
        rows = ForgetReceipt.objects.filter(self.caller.reach(), receipt_id=receipt_id)
        return Response(self.one_of(rows, f"receipt {receipt_id}").as_dict())
