"""REST views of what belongs to no feature: the audit log, the caller, one memory document."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memories_app.memory_documents.document_api import (
    ARCHIVED,
    PLACE,
    DocumentView,
    document_etag,
    document_location,
    location,
)
from memories_app.memory_documents.document_rows import key_of
from memoryproject import __version__
from memoryproject.foundation.audit.audit_events import (
    ACTOR_KINDS,
    audit_key,
    log_path,
    pseudonyms_of,
)
from memoryproject.foundation.audit.chain import ChainError
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.verify import audit_verify
from memoryproject.foundation.rest_kit import errors, fields, throttles, views
from memoryproject.foundation.rest_kit.models import ANY, SCOPES
from memoryproject.foundation.rest_kit.operations import CHANGED_MEANWHILE, conflicting, described
from memoryproject.foundation.rest_kit.serializers import ChoiceFilter, Moment, MomentFilter
from sessions_app.forgetting.presentation import FORGETTING, forget_once, forgets
from sessions_app.presentation.access import WhatsAppChatFilter, chat_named, names_of_bound

# The audit log: its events, and the check of its integrity.


class AuditEventSerializer(serializers.Serializer[Any]):
    """An audited action. It holds no text that anybody wrote."""

    id = serializers.IntegerField()
    seq = serializers.IntegerField(allow_null=True)
    at = Moment()
    action = serializers.CharField()
    actor_kind = serializers.CharField()
    actor = serializers.CharField()
    chat = serializers.CharField()
    object_type = serializers.CharField()
    object_id = serializers.CharField()
    content_hash = serializers.CharField()
    details = fields.json_object()
    seal = serializers.CharField()


class AuditFilters(django_filters.FilterSet):  # type: ignore[misc]
    action = django_filters.CharFilter()
    actor = django_filters.CharFilter()
    actor_kind = ChoiceFilter(choices=[(kind, kind) for kind in ACTOR_KINDS])
    object_type = django_filters.CharFilter()
    object_id = django_filters.CharFilter()
    chat = django_filters.CharFilter()
    whatsapp_chat = WhatsAppChatFilter(method="of_chat")
    since = MomentFilter(field_name="at", lookup_expr="gte")
    until = MomentFilter(field_name="at", lookup_expr="lt")

    def of_chat(self, rows: QuerySet[AuditEvent], _: str, value: str) -> QuerySet[AuditEvent]:
        chat = chat_named(value)
        names = [] if chat is None else pseudonyms_of(key=audit_key(), chat_id=chat.pk)
        return rows.filter(chat__in=names)


class AuditView(views.ListView):
    scopes = {"GET": "audit"}
    bound_tokens = False
    queryset = AuditEvent.objects.all()
    serializer_class = AuditEventSerializer
    filterset_class = AuditFilters
    ordering = ("-id",)

    @described(operation_id="audit_list")
    def get(self, request: Request) -> Response:
        """Return events with actor, action, object and time; see docs/audit.md for the actions."""
        return self.page_of(self.get_queryset())


class AuditFindingSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    where = serializers.CharField()
    text = serializers.CharField()
    advice = serializers.CharField()


class AuditReportSerializer(serializers.Serializer[Any]):
    verified = serializers.BooleanField()
    events = serializers.IntegerField()
    first = serializers.IntegerField(allow_null=True)
    last = serializers.IntegerField(allow_null=True)
    pruned = serializers.IntegerField()
    checkpoints = serializers.IntegerField()
    waiting = serializers.IntegerField()
    lines = serializers.IntegerField()
    repeated_lines = serializers.IntegerField()
    found = serializers.IntegerField()
    findings = AuditFindingSerializer(many=True)


class AuditVerifyView(views.ApiView):
    scopes = {"GET": "audit"}
    kinds = {"GET": "bulk"}
    bound_tokens = False
    answers = {
        "GET": [conflicting("The log can't be sealed.", "The newest event is no longer there.")]
    }
    raises = {
        ChainError: errors.conflict,
        OSError: lambda error: errors.Unavailable(f"The log file can't be used: {error}"),
    }

    @described(operation_id="audit_verify", responses=AuditReportSerializer)
    def get(self, request: Request) -> Response:
        """Check every sealed event and every line of the log file. Nothing is written.

        Events are sealed every minute: `waiting` counts those that aren't yet. This takes about a
        minute for a million events. The status is 200 also if a problem is found: look at
        `verified`.
        """
        report = audit_verify(key=audit_key(), log_path=log_path(), seals=False)
        return Response(report.as_dict())


# One memory document: what the app of memories serves, and its forgetting.


class MemoryDocumentView(DocumentView):
    scopes = {**DocumentView.scopes, "DELETE": "forget"}
    staff_rights = {**DocumentView.staff_rights, "DELETE": ["memories_app.delete_memorydocument"]}
    answers = {**DocumentView.answers, "DELETE": [CHANGED_MEANWHILE]}
    raises = {**DocumentView.raises, **FORGETTING}

    @forgets(*PLACE, ARCHIVED, location(200), operation_id="documents_forget")
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
            row = self.store().row(**place)
            # From here on it is this very document, also if a newer one comes meanwhile.
            place["identifier"] = row.name
            headers["Content-Location"] = document_location(key_of(row))
            return row

        response = forget_once(
            self, "memory_document", find, lambda _row: document_etag(self.store().load(**place))
        )
        for name, value in headers.items():
            response[name] = value
        return response


# The rights and limits of the caller.

INDEX: dict[str, Any] = {"name": "WhatsApp memory", "version": __version__}


class IndexSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()


class IndexView(views.ApiView):
    scopes = {"GET": ANY}
    staff_rights = {"GET": ()}

    @described(operation_id="index_get", tags=["me"], responses=IndexSerializer)
    def get(self, request: Request) -> Response:
        """Return the version of the server. Every token may ask this."""
        return Response(IndexSerializer(INDEX).data)


class MeSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(["api", "staff"])
    name = serializers.CharField()
    scopes = fields.texts()
    whatsapp_chats = fields.texts(allow_null=True)
    expires_at = Moment(allow_null=True)
    calls_per_minute = serializers.DictField(child=serializers.IntegerField())


class MeView(views.ApiView):
    scopes = {"GET": ANY}
    # Staff without any right may know that they have none.
    staff_rights = {"GET": ()}

    @described(operation_id="me_get", responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """Return the caller's name, scopes, chats and limits. Every token may ask this."""
        caller = self.caller
        document = {
            "kind": caller.actor.kind,
            "name": caller.actor.name,
            "scopes": [scope for scope in SCOPES if scope in caller.scopes],
            "whatsapp_chats": names_of_bound(caller) if caller.is_bound else None,
            "expires_at": caller.expires_at,
            "calls_per_minute": {kind: throttles.rate_of(kind) for kind in throttles.KINDS},
        }
        return Response(MeSerializer(document).data)
