"""DELETE over the API: a forgetting that can be repeated, and that checks its precondition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.crypto import salted_hmac
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.etags import require_match
from memoryproject.foundation.rest_kit.idempotency import KEPT, Handler, idempotent
from memoryproject.foundation.rest_kit.operations import IF_MATCH, described, response_example
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import ForgetReceipt
from sessions_app.presentation.serializers import ReceiptSerializer


def forgets(
    receipt: dict[str, Any],
    *parameters: OpenApiParameter,
    example: str = "The receipt",
    **described_as: str,
) -> Callable[[Handler], Handler]:
    """Describe a DELETE that returns ``forget_once``, and let it accept an Idempotency-Key.

    ``receipt``: the example of its response.
    """

    def decorate(handler: Handler) -> Handler:
        return described(
            parameters=[*parameters, IF_MATCH],
            responses={200: ReceiptSerializer},
            examples=[response_example(example, receipt)],
            **described_as,
        )(idempotent(atomic=False, holds_texts=False)(handler))

    return decorate


def forget_once(
    view: ApiView, *, kind: str, find: Callable[[], UUID], etag: Callable[[], str]
) -> Response:
    """Forget the object and return its receipt.

    ``find`` returns the object's id, or raises NotFound. ``etag`` is called with the object locked,
    if the call has If-Match. Decorate the view's method with ``forgets``: a call that crashed
    before its response was stored finds its receipt.
    """
    call_key = _call_key(view)
    receipt = _earlier(call_key)
    if receipt is None:
        receipt = object_forget(
            kind=kind,
            object_id=find(),
            dependencies=build_forget_dependencies(),
            actor=view.caller.actor,
            check=lambda: _check(view, etag),
            call_key=call_key,
        )
    return Response(receipt.as_dict())


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
    recent = ForgetReceipt.objects.filter(forgotten_at__gt=timezone.now() - KEPT)
    return recent.filter(call_key=call_key).first()


def _check(view: ApiView, etag: Callable[[], str]) -> None:
    if "If-Match" in view.request.headers:
        require_match(view.request, etag())
