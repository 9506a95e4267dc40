"""The rights and limits of the caller."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.operations import described, response_example
from memoryproject.foundation.rest_kit.scopes import ANY, SCOPES
from memoryproject.foundation.rest_kit.serializers import Moment
from memoryproject.foundation.rest_kit.throttles import KINDS, rate_of
from memoryproject.foundation.rest_kit.views import ApiView
from sessions_app.presentation.access import names_of_bound
from sessions_app.presentation.examples import CHAT

ME: dict[str, Any] = {
    "kind": "api",
    "name": "my-integration",
    "scopes": ["read", "write"],
    "whatsapp_chats": [CHAT],
    "expires_at": None,
    "calls_per_minute": {"read": 6000, "write": 3000, "forget": 1200, "chat": 600, "bulk": 120},
}


class MeSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(["api", "staff"], help_text="A token, or a staff member.")
    name = serializers.CharField(help_text="As the audit log names the caller.")
    scopes = serializers.ListField(
        child=serializers.CharField(),
        help_text="What the caller may do: some of read, write, forget and audit.",
    )
    whatsapp_chats = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="The chats that a token is bound to; null: all chats.",
    )
    expires_at = Moment(
        allow_null=True, help_text="From then on the token is refused; null: it doesn't expire."
    )
    calls_per_minute = serializers.DictField(
        child=serializers.IntegerField(), help_text="By kind of call; 0: any number."
    )


class MeView(ApiView):
    scopes = {"GET": ANY}
    # Staff without any right may know that they have none.
    staff_rights = {"GET": ()}

    @described(
        operation_id="me_get",
        summary="What the caller may do",
        responses=MeSerializer,
        examples=[response_example("A token that is bound to one chat", ME)],
    )
    def get(self, request: Request) -> Response:
        """Return the caller's name, scopes, chats and limits. Every token may ask this."""
        caller = self.caller
        document = {
            "kind": caller.actor.kind,
            "name": caller.actor.name,
            "scopes": [scope for scope in SCOPES if scope in caller.scopes],
            "whatsapp_chats": names_of_bound(caller) if caller.is_bound else None,
            "expires_at": caller.expires_at,
            "calls_per_minute": {kind: rate_of(kind) for kind in KINDS},
        }
        return Response(MeSerializer(document).data)
