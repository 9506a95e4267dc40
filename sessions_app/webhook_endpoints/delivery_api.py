"""REST: tests and deliveries of webhooks, and the log of events to catch up from."""

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.outgoing_webhooks import deliveries
from memoryproject.foundation.outgoing_webhooks.models import (
    ERASURES,
    EVENT_TYPES,
    TEST,
    DeliveryState,
    WebhookDelivery,
    WebhookEvent,
    webhook_id,
)
from memoryproject.foundation.outgoing_webhooks.sending import delivery_send, payload_of
from memoryproject.foundation.rest_kit import fields, serializers as kit
from memoryproject.foundation.rest_kit.errors import Conflict, refuse
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import conflicting, described
from memoryproject.foundation.rest_kit.pagination import DEFAULT_LIMIT, CursorPages, limit_of
from memoryproject.foundation.rest_kit.throttles import waiting_calls
from memoryproject.foundation.rest_kit.views import ListView
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.models import Chat
from sessions_app.presentation.access import WhatsAppChatFilter
from sessions_app.webhook_endpoints.dependencies import build_webhook_dependencies
from sessions_app.webhook_endpoints.endpoint_api import WebhookView

# A test that its caller couldn't send is left to the workers after so long.
TEST_IS_LEFT_AFTER = timedelta(minutes=1)


class TestedSerializer(serializers.Serializer[Any]):
    delivered = serializers.BooleanField()
    status = serializers.IntegerField(allow_null=True)
    milliseconds = serializers.IntegerField()
    error = serializers.CharField()
    delivery_id = serializers.UUIDField()


class TestView(WebhookView):
    scopes = {"POST": "write"}
    staff_rights = {"POST": ["hooks.change_webhookendpoint"]}
    needs_body = False
    answers = {"POST": [conflicting("The endpoint is disabled.", "It is disabled: enable it.")]}

    @described(operation_id="webhooks_test", request=None, responses=TestedSerializer)
    @idempotent(atomic=False)
    def post(self, request: Request, endpoint_id: UUID) -> Response:
        """Post a signed `webhook.test` and wait for the receiver's answer, at most 15 seconds."""
        self.body(kit.Nothing)
        endpoint = self.endpoint(endpoint_id)
        if not endpoint.enabled:
            raise Conflict("The endpoint is disabled: enable it first.")
        with waiting_calls.place():
            delivery = deliveries.delivery_test(endpoint_id=endpoint.pk, wait=TEST_IS_LEFT_AFTER)
            began = time.monotonic()
            sent = delivery_send(delivery=delivery, dependencies=build_webhook_dependencies())
            milliseconds = int((time.monotonic() - began) * 1000)
        after = WebhookDelivery.objects.filter(pk=delivery.pk).first() or delivery
        busy = "Others are being sent now: the test is sent in a minute." if sent is None else ""
        tested = {
            "delivered": bool(sent),
            "status": after.last_status,
            "milliseconds": milliseconds,
            "error": busy or translate_error(after.error),
            "delivery_id": after.event_id,
        }
        return Response(TestedSerializer(tested).data)


class DeliverySerializer(serializers.Serializer[Any]):
    delivery_id = serializers.UUIDField(source="event_id")
    webhook_id = serializers.CharField(source="message_id")
    type = serializers.CharField(source="event_type")
    state = serializers.ChoiceField(DeliveryState.choices)
    attempts = serializers.IntegerField()
    status = serializers.IntegerField(source="last_status", allow_null=True)
    error = serializers.SerializerMethodField()
    occurred_at = kit.Moment()
    due_at = kit.Moment()
    last_attempt_at = kit.Moment(allow_null=True)
    finished_at = kit.Moment(allow_null=True)

    def get_error(self, delivery: WebhookDelivery) -> str:
        return translate_error(delivery.error)


class DeliveryFilters(django_filters.FilterSet):  # type: ignore[misc]
    state = kit.ChoiceFilter(choices=DeliveryState.choices)
    type = kit.ChoiceFilter(
        field_name="event_type", choices=[(name, name) for name in (*EVENT_TYPES, TEST)]
    )


class DeliveriesView(WebhookView, ListView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["hooks.view_webhookdelivery"]}
    queryset = WebhookDelivery.objects.all()
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilters

    @described(operation_id="webhooks_deliveries")
    def get(self, request: Request, endpoint_id: UUID) -> Response:
        """Return the deliveries that are kept (`WEBHOOKS_LOG_DAYS`)."""
        return self.page_of(self.get_queryset().filter(endpoint=self.endpoint(endpoint_id)))


class RedeliverView(WebhookView):
    scopes = {"POST": "write"}
    staff_rights = {"POST": ["hooks.change_webhookendpoint"]}
    needs_body = False

    @described(operation_id="webhooks_redeliver", request=None, responses=DeliverySerializer)
    @idempotent(atomic=True)
    def post(self, request: Request, endpoint_id: UUID, delivery_id: UUID) -> Response:
        """Post it once more under its `webhook_id`; to a disabled endpoint when it is enabled."""
        self.body(kit.Nothing)
        rows = WebhookDelivery.objects.filter(endpoint=self.endpoint(endpoint_id))
        delivery = self.one_of(rows.filter(event_id=delivery_id), f"delivery {delivery_id}")
        deliveries.deliveries_again(delivery_ids=[delivery.pk], actor=self.caller.actor)
        delivery.refresh_from_db()
        return Response(DeliverySerializer(delivery).data)


# The log of events.


class LoggedEventSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    type = serializers.CharField()
    timestamp = serializers.CharField()
    data = fields.json_object(  # type: ignore[assignment]
    )


class EventFilters(django_filters.FilterSet):  # type: ignore[misc]
    type = kit.ChoicesFilter(
        field_name="event_type", choices=[(name, name) for name in EVENT_TYPES]
    )
    whatsapp_chat = WhatsAppChatFilter(field_name="chat_id")


class EventPages(CursorPages):
    """The log from an event on. Its order never changes, and its end has a cursor, too."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self._after = request.query_params.get("after")
        limit = limit_of(request, default=DEFAULT_LIMIT)
        rows = queryset.order_by("seq")
        if self._after is not None:
            rows = rows.filter(seq__gt=self._place(self._after))
        found = list(rows[: limit + 1])
        self._next, self._page = len(found) > limit, found[:limit]
        return self._page

    def _place(self, after: str) -> int:
        key = uuid_or_none(after.removeprefix("evt_"))
        if key is None:
            detail = "It is no event: give a next_cursor, or the webhook-id of a delivery."
            raise refuse(detail, code="invalid_cursor", attr="after")
        found = WebhookEvent.objects.filter(event_id=key).values_list("seq", flat=True).first()
        if found is None:
            detail = "The log no longer has this event, or never had it: begin without `after`."
            raise refuse(detail, code="cursor_gone", attr="after")
        return found

    def get_paginated_response(self, data: Any) -> Response:
        end = webhook_id(self._page[-1].event_id) if self._page else self._after
        return Response({"results": data, "next_cursor": end, "has_more": self._next})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        pages = super().get_paginated_response_schema(schema)["properties"]
        place = "The next `after`, also where nothing follows yet."
        more = {"type": "boolean", "example": False}
        properties = {
            "results": pages["results"],
            "next_cursor": {**pages["next_cursor"], "description": place},
            "has_more": {**more, "description": "Whether events follow already."},
        }
        return {"type": "object", "required": list(properties), "properties": properties}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        cursor, limit = super().get_schema_operation_parameters(view)
        what = "`next_cursor`, or a `webhook-id`: the events after it."
        place = {"type": "string", "minLength": 1, "pattern": r"^evt_[0-9a-f]{32}$"}
        return [{**cursor, "name": "after", "description": what, "schema": place}, limit]


class EventsView(ListView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["hooks.view_webhookdelivery"]}
    queryset = WebhookEvent.objects.exclude(seq=None).exclude(event_type="")
    serializer_class = LoggedEventSerializer
    filterset_class = EventFilters
    pagination_class = EventPages
    repeatable = frozenset({"type"})

    def query_parameters(self) -> set[str]:
        return super().query_parameters() - {"cursor"} | {"after"}

    @described(operation_id="events_list")
    def get(self, request: Request) -> Response:
        """Catch up: return the events after `after`, as webhooks tell them.

        They are kept for `EVENT_LOG_DAYS`. A bound token sees those of its chats.
        """
        deliveries.events_number()
        rows = self.within_reach()
        if self.caller.is_bound:
            # As with memories: what only the owner sees is beyond its reach. But it must erase what
            # it saw before only the owner did.
            rows = rows.exclude(~Q(event_type__in=ERASURES), data__contains={"visibility": "owner"})
        page = self.paginate_queryset(self.filter_queryset(rows)) or []
        chats = Chat.objects.filter(pk__in={event.chat_id for event in page})
        names = dict(chats.values_list("pk", "whatsapp_chat"))
        events = [
            {"id": webhook_id(each.event_id), **payload_of(each, names.get(each.chat_id))}
            for each in page
        ]
        return self.get_paginated_response(LoggedEventSerializer(events, many=True).data)
