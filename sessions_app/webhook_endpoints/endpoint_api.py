"""REST: endpoints of webhooks."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.outgoing_webhooks import endpoints
from memoryproject.foundation.outgoing_webhooks.models import EVENT_TYPES, WebhookEndpoint
from memoryproject.foundation.rest_kit import fields, operations, serializers as kit, views
from memoryproject.foundation.rest_kit.authentication import Caller, require_reading
from memoryproject.foundation.rest_kit.errors import not_found, refuse
from memoryproject.foundation.rest_kit.idempotency import idempotent
from sessions_app.models import Chat
from sessions_app.presentation.access import chat_in_reach
from sessions_app.presentation.serializers import WhatsAppChat
from sessions_app.webhook_endpoints.dependencies import build_address_rules
from sessions_app.webhook_endpoints.endpoint_form import hook_chats


class EndpointBody(kit.Strict):
    name = kit.Text(max_length=endpoints.MAX_NAME_LENGTH)
    url = kit.Text(max_length=2000)
    event_types = kit.Items(
        child=kit.Choice(list(EVENT_TYPES)), required=False, max_length=len(EVENT_TYPES)
    )
    whatsapp_chats = kit.Items(
        child=WhatsAppChat(), required=False, allow_null=True, max_length=1000
    )
    enabled = kit.Truth(required=False)


class RotateBody(kit.Strict):
    keep_hours = kit.Whole(default=24, min_value=0, max_value=24 * 365)


class EndpointSerializer(serializers.Serializer[Any]):
    endpoint_id = serializers.UUIDField(source="public_id")
    name = serializers.CharField()
    url = serializers.CharField()
    event_types = fields.texts()
    whatsapp_chats = serializers.SerializerMethodField()
    enabled = serializers.BooleanField()
    state = serializers.CharField(read_only=True)
    error = serializers.SerializerMethodField()
    created_at = kit.Moment()
    last_success_at = kit.Moment(allow_null=True)
    last_failure_at = kit.Moment(allow_null=True)
    old_secret_until = kit.Moment(allow_null=True)

    def get_whatsapp_chats(self, endpoint: WebhookEndpoint) -> list[str] | None:
        if endpoint.chat_ids is None:
            return None
        return sorted(self._names[key] for key in endpoint.chat_ids if key in self._names)

    @cached_property
    def _names(self) -> dict[UUID, str]:
        """The names of the chats of all endpoints that are shown."""
        shown: Any = self.parent.instance if self.parent else [self.instance]
        keys = {key for endpoint in shown for key in endpoint.chat_ids or ()}
        return dict(Chat.objects.filter(pk__in=keys).values_list("pk", "whatsapp_chat"))

    def get_error(self, endpoint: WebhookEndpoint) -> str:
        return translate_error(endpoint.disabled_reason or endpoint.last_error)


class EndpointWithSecretSerializer(EndpointSerializer):
    secret = serializers.CharField()


def _refused(error: Exception) -> APIException:
    field = getattr(error, "field", "")
    return refuse(str(error), attr="whatsapp_chats" if field == "chats" else field)


def endpoint_etag(endpoint: WebhookEndpoint) -> str:
    """Return the ETag of what can be changed; a delivery changes no version."""
    chats = sorted(map(str, endpoint.chat_ids)) if endpoint.chat_ids is not None else None
    given = (endpoint.name, endpoint.url, endpoint.event_types, chats, endpoint.enabled)
    return views.etag_of(endpoint.pk, *given)


def endpoints_in_reach(caller: Caller) -> QuerySet[WebhookEndpoint]:
    """Return the endpoints that are told of nothing that the caller may not see."""
    found = WebhookEndpoint.objects.all()
    if caller.chat_ids is None:
        return found
    return found.filter(chat_ids__isnull=False, chat_ids__contained_by=list(caller.chat_ids))


class WebhookView(views.ApiView):
    """What the views of endpoints share."""

    raises = {endpoints.EndpointError: _refused, endpoints.EndpointNotFoundError: not_found}

    def endpoint(self, endpoint_id: UUID) -> WebhookEndpoint:
        """Return the endpoint. Raises NotFound also for one out of reach."""
        rows = endpoints_in_reach(self.caller).filter(public_id=endpoint_id)
        return self.one_of(rows, f"endpoint {endpoint_id}")

    def given(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of an endpoint as its services take them. Raises NotFound."""
        changes = dict(body)
        if "whatsapp_chats" in changes:
            names = changes.pop("whatsapp_chats") or []
            for name in names:
                chat_in_reach(self.caller, name)
            own = self.caller.chat_ids
            changes["chat_ids"] = hook_chats(names) or (sorted(own) if own is not None else None)
        return changes


class EndpointsView(WebhookView, views.ListView):
    scopes = {"GET": "read", "POST": "write"}
    staff_rights = {"GET": ["hooks.view_webhookendpoint"], "POST": ["hooks.add_webhookendpoint"]}
    queryset = WebhookEndpoint.objects.all()
    serializer_class = EndpointSerializer

    @operations.described(operation_id="webhooks_list")
    def get(self, request: Request) -> Response:
        """Return the endpoints; a bound token sees those of its own chats."""
        return self.page_of(endpoints_in_reach(self.caller))

    @operations.described(
        operation_id="webhooks_add",
        parameters=[operations.etag(201), operations.location(201)],
        request=EndpointBody,
        responses={201: EndpointWithSecretSerializer},
    )
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        """Make an endpoint; its secret is shown in this answer alone.

        It outlives the token that made it. The token needs the scope `read`, too.
        """
        body = self.body(EndpointBody)
        require_reading(self.caller)
        given = self.given({"whatsapp_chats": None, **body})
        made = endpoints.endpoint_create(
            **given, rules=build_address_rules(), actor=self.caller.actor
        )
        made.refresh_from_db()
        headers = {
            "Location": reverse("api-webhook", args=[made.public_id]),
            "ETag": endpoint_etag(made),
        }
        return Response(EndpointWithSecretSerializer(made).data, status=201, headers=headers)


class EndpointView(WebhookView):
    serializer_class = EndpointSerializer
    scopes = {"GET": "read", "PATCH": "write", "DELETE": "write"}
    staff_rights = {
        "GET": ["hooks.view_webhookendpoint"],
        "PATCH": ["hooks.change_webhookendpoint"],
        "DELETE": ["hooks.delete_webhookendpoint"],
    }
    answers = {"PATCH": [operations.CHANGED_MEANWHILE], "DELETE": [operations.CHANGED_MEANWHILE]}

    @operations.described(operation_id="webhooks_get", **operations.versioned(EndpointSerializer))
    def get(self, request: Request, endpoint_id: UUID) -> Response:
        """Return the endpoint without its secret."""
        found = self.endpoint(endpoint_id)
        return views.etagged(request, EndpointSerializer(found).data, etag=endpoint_etag(found))

    @operations.described(
        operation_id="webhooks_change",
        parameters=[operations.IF_MATCH, operations.etag(200)],
        request=EndpointBody,
        responses=EndpointSerializer,
    )
    @idempotent(atomic=False)
    def patch(self, request: Request, endpoint_id: UUID) -> Response:
        """Change what is given. An endpoint that is enabled starts fresh."""
        body = self.body(EndpointBody, partial=True)
        endpoint = self.endpoint(endpoint_id)
        require_reading(self.caller)
        changed = endpoints.endpoint_change(
            endpoint_id=endpoint.pk,
            changes=self.given(body),
            rules=build_address_rules(),
            actor=self.caller.actor,
            check=lambda locked: views.require_match(request, endpoint_etag(locked)),
        )
        headers = {"ETag": endpoint_etag(changed)}
        return Response(EndpointSerializer(changed).data, headers=headers)

    @operations.described(
        operation_id="webhooks_remove", parameters=[operations.IF_MATCH], responses={204: None}
    )
    @idempotent(atomic=True)
    def delete(self, request: Request, endpoint_id: UUID) -> Response:
        """Remove the endpoint: nothing more is sent to it. Once more: 404."""
        found = self.endpoint(endpoint_id)
        views.require_match(request, endpoint_etag(found))
        endpoints.endpoint_remove(endpoint_id=found.pk, actor=self.caller.actor)
        return Response(status=204)


class RotateView(WebhookView):
    scopes = {"POST": "write"}
    staff_rights = {"POST": ["hooks.change_webhookendpoint"]}
    needs_body = False

    @operations.described(
        operation_id="webhooks_rotate", request=RotateBody, responses=EndpointWithSecretSerializer
    )
    @idempotent(atomic=True)
    def post(self, request: Request, endpoint_id: UUID) -> Response:
        """Return the new secret, once. The old one also signs until `old_secret_until`."""
        body = self.body(RotateBody)
        endpoint = self.endpoint(endpoint_id)
        require_reading(self.caller)
        made = endpoints.endpoint_rotate(
            endpoint_id=endpoint.pk,
            actor=self.caller.actor,
            keep=timedelta(hours=body["keep_hours"]),
        )
        return Response(EndpointWithSecretSerializer(made).data)
