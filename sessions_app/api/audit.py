"""The audit log over HTTP: its events, and the check of its integrity."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.audit.audit_events import audit_key, log_path, pseudonyms_of
from memoryproject.foundation.audit.chain import ChainError
from memoryproject.foundation.audit.filters import ACTOR_KINDS
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.verify import audit_verify
from memoryproject.foundation.rest_kit.answers import conflicting
from memoryproject.foundation.rest_kit.errors import Unavailable, conflict
from memoryproject.foundation.rest_kit.filters import ChoiceFilter, MomentFilter
from memoryproject.foundation.rest_kit.operations import described, response_example
from memoryproject.foundation.rest_kit.serializers import Moment
from memoryproject.foundation.rest_kit.views import ApiView, ListView
from sessions_app.presentation.examples import AT, MEMORY_ID
from sessions_app.presentation.filters import WhatsAppChatFilter, chat_named

EVENT: dict[str, Any] = {
    "id": 9,
    "seq": 7,
    "at": AT,
    "action": "memory.remember",
    "actor_kind": "api",
    "actor": "my-integration",
    "chat": "",
    "object_type": "memory",
    "object_id": MEMORY_ID,
    "content_hash": "9c1e185a5c5e9fc54612808977ee8f548b2258d31ddadc707cc0d6d7c2f6c0a1",
    "details": {"visibility": "chat"},
    "seal": "5f1d0c6b9a7e4c3d8b2a1f0e9d8c7b6a5f1d0c6b9a7e4c3d8b2a1f0e9d8c7b6a",
}
REPORT: dict[str, Any] = {
    "verified": True,
    "events": 7,
    "first": 1,
    "last": 7,
    "pruned": 0,
    "checkpoints": 0,
    "waiting": 0,
    "lines": 7,
    "repeated_lines": 0,
    "found": 0,
    "findings": [],
}


class AuditEventSerializer(serializers.Serializer[Any]):
    """An audited action. It holds no text that anybody wrote."""

    id = serializers.IntegerField(
        help_text="The number of the row: rises with each event, with gaps."
    )
    seq = serializers.IntegerField(
        allow_null=True, help_text="Its number in the chain; null until it is sealed."
    )
    at = Moment(help_text="When it was done.")
    action = serializers.CharField(help_text="What was done, such as memory.remember.")
    actor_kind = serializers.CharField(help_text="staff, api, person, command or system.")
    actor = serializers.CharField(help_text="A name, or a person's pseudonym.")
    chat = serializers.CharField(help_text="The pseudonym of the chat that it concerns.")
    object_type = serializers.CharField(
        help_text="What it was done to, such as memory, session or receipt; empty: nothing."
    )
    object_id = serializers.CharField(help_text="The id of what it was done to; empty: none.")
    content_hash = serializers.CharField(help_text="SHA-256 of the text that it was done to.")
    details = serializers.DictField(
        child=serializers.JSONField(), help_text="Counts and names of fields; empty: none."
    )
    seal = serializers.CharField(
        help_text="HMAC-SHA256, hex, of the event and the seal before it; empty until it is sealed."
    )


class EventFilters(django_filters.FilterSet):  # type: ignore[misc]
    action = django_filters.CharFilter(help_text="Such as memory.remember.")
    actor = django_filters.CharFilter(help_text="A user's or token's name, or a pseudonym.")
    actor_kind = ChoiceFilter(
        choices=[(kind, kind) for kind in ACTOR_KINDS],
        help_text="staff, api, person, command or system.",
    )
    object_type = django_filters.CharFilter(help_text="Such as memory, session or receipt.")
    object_id = django_filters.CharFilter(help_text="A whole id.")
    chat = django_filters.CharFilter(help_text="A chat's pseudonym.")
    whatsapp_chat = WhatsAppChatFilter(
        method="of_chat", help_text="What concerns this chat's person, under any pseudonym."
    )
    since = MomentFilter(field_name="at", lookup_expr="gte", help_text="Then or later.")
    until = MomentFilter(field_name="at", lookup_expr="lt", help_text="Before then.")

    class Meta:
        model = AuditEvent
        fields: list[str] = []

    def of_chat(self, rows: QuerySet[AuditEvent], _: str, value: str) -> QuerySet[AuditEvent]:
        chat = chat_named(value)
        names = [] if chat is None else pseudonyms_of(key=audit_key(), chat_id=chat.pk)
        return rows.filter(chat__in=names)


class AuditView(ListView):
    scopes = {"GET": "audit"}
    bound_tokens = False
    queryset = AuditEvent.objects.all()
    serializer_class = AuditEventSerializer
    filterset_class = EventFilters
    ordering = ("-id",)

    @described(
        operation_id="audit_list",
        summary="The audit log, the newest event first",
        examples=[response_example("One event", EVENT)],
    )
    def get(self, request: Request) -> Response:
        """Return events with actor, action, object and time; see docs/audit.md for the actions."""
        return self.page_of(self.get_queryset())


class AuditFindingSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="For programs, such as row_changed.")
    where = serializers.CharField(help_text="The row or the line.")
    text = serializers.CharField(help_text="What is wrong there.")
    advice = serializers.CharField(help_text="What to do about it.")


class AuditReportSerializer(serializers.Serializer[Any]):
    verified = serializers.BooleanField(help_text="Whether nothing at all is wrong.")
    events = serializers.IntegerField(help_text="How many sealed events were checked.")
    first = serializers.IntegerField(
        allow_null=True, help_text="The seq of the first checked event; null: there is none."
    )
    last = serializers.IntegerField(
        allow_null=True, help_text="The seq of the last checked event; null: there is none."
    )
    pruned = serializers.IntegerField(help_text="Older ones that went behind checkpoints.")
    checkpoints = serializers.IntegerField(
        help_text="How many marks there are up to which older events were pruned."
    )
    waiting = serializers.IntegerField(help_text="Events that aren't sealed yet.")
    lines = serializers.IntegerField(help_text="Lines of the log file.")
    repeated_lines = serializers.IntegerField(
        help_text="Lines of the log file that are there twice, which is harmless."
    )
    found = serializers.IntegerField(help_text="How many things are wrong.")
    findings = AuditFindingSerializer(many=True, help_text="The first 100 of them.")


class AuditVerifyView(ApiView):
    scopes = {"GET": "audit"}
    kinds = {"GET": "bulk"}
    bound_tokens = False
    answers = {
        "GET": [conflicting("The log can't be sealed.", "The newest event is no longer there.")]
    }
    raises = {
        ChainError: conflict,
        OSError: lambda error: Unavailable(f"The log file can't be used: {error}"),
    }

    @described(
        operation_id="audit_verify",
        summary="Verify the whole audit log",
        responses=AuditReportSerializer,
        examples=[response_example("All is as it was sealed", REPORT)],
    )
    def get(self, request: Request) -> Response:
        """Check every sealed event and every line of the log file. Nothing is written.

        Events are sealed every minute: `waiting` counts those that aren't yet. This takes about a
        minute for a million events. The status is 200 also if a problem is found: look at
        `verified`.
        """
        report = audit_verify(key=audit_key(), log_path=log_path(), seals=False)
        return Response(report.as_dict())
