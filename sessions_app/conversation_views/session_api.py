"""REST views of chats, sessions and their summaries."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.rest_kit import operations
from memoryproject.foundation.rest_kit.errors import MemoryDisabled, conflict, not_found
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.serializers import Moment, Nothing
from memoryproject.foundation.rest_kit.views import ApiView, ListView, etagged
from sessions_app.conversations import session_lifecycle
from sessions_app.conversations.message_store import ConversationNotFoundError
from sessions_app.forgetting.presentation import FORGETTING, forget_once, forgets
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.facade import IntakeRules, MemoryDisabledError, session_open_in
from sessions_app.models import Chat, ChatSession, SummarizationMetadata
from sessions_app.models.sessions import SessionStatus
from sessions_app.presentation import access
from sessions_app.presentation.serializers import NewSessionSerializer, SessionSerializer


class SessionEndedError(Exception):
    """The session has ended already."""

    def __init__(self, session: ChatSession) -> None:
        super().__init__(
            f"Session {session.pk} is {session.status}: only an active one can be reset. "
            "POST sessions/ opens the chat's active session."
        )


def session_reset(
    *, session_id: UUID, rules: IntakeRules, now: datetime, actor: Actor
) -> ChatSession:
    """End an active session as /reset does; return the new one.

    Raises ConversationNotFoundError, SessionEndedError and MemoryDisabledError.
    """
    with transaction.atomic():
        session = _session_locked(session_id)
        if session.status != SessionStatus.ACTIVE:
            raise SessionEndedError(session)
        if not rules.remember(session.chat):
            raise MemoryDisabledError
        session_lifecycle.session_end(session=session, at=now, actor=actor)
        return session_lifecycle.session_start(chat=session.chat, now=now, actor=actor)


def session_expire(*, session_id: UUID, now: datetime, actor: Actor) -> ChatSession:
    """Let a session expire now; a session that has ended stays as it is.

    Raises ConversationNotFoundError.
    """
    with transaction.atomic():
        session = _session_locked(session_id)
        if session.status == SessionStatus.ACTIVE:
            session_lifecycle.session_end(session=session, at=now, actor=actor)
        return session


def _session_locked(session_id: UUID) -> ChatSession:
    """Return the session with its chat, locked in that order."""
    found = ChatSession.objects.filter(pk=session_id).values_list("chat_id", flat=True).first()
    if found is None:
        raise ConversationNotFoundError(session_id)
    chat = Chat.objects.select_for_update(no_key=True).filter(pk=found).first()
    rows = ChatSession.objects.select_for_update(no_key=True)
    session = rows.filter(pk=session_id).first()
    if chat is None or session is None:
        raise ConversationNotFoundError(session_id)
    if session.chat_id == chat.pk:
        session.chat = chat
    return session


# Sessions.


def memory_disabled(error: Exception) -> APIException:
    return MemoryDisabled()


REFUSALS = {
    ConversationNotFoundError: not_found,
    SessionEndedError: conflict,
    MemoryDisabledError: memory_disabled,
}


class SessionsView(ListView):
    scopes = {"GET": "read", "POST": "write"}
    staff_rights = {"GET": ["sessions_app.view_chatsession"]}
    # A token that is bound to one chat needs to name none.
    needs_body = False
    raises = REFUSALS
    queryset = session_lifecycle.sessions_in_chats()
    serializer_class = SessionSerializer
    repeatable = frozenset({"status"})
    filterset_class = access.SessionFilters
    where_fields = access.SESSION_FIELDS
    sortable = ("created_at", "last_active")
    ordering = ("-created_at", "-session_id")

    @operations.described(operation_id="sessions_list")
    def get(self, request: Request) -> Response:
        """List the sessions; archived ones only with `status=archived`."""
        return self.page_of(self.within_reach())

    @operations.described(
        operation_id="sessions_open",
        parameters=[operations.location(201)],
        request=NewSessionSerializer,
        responses={200: SessionSerializer, 201: SessionSerializer},
    )
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        """Return the chat's active session: 201 if it was begun now, 200 if it existed.

        A chat that doesn't exist is created.
        """
        body = self.body(NewSessionSerializer)
        whatsapp_chat = access.chat_or_own(self.caller, body.get("whatsapp_chat"))
        access.check_chat(self.caller, whatsapp_chat)
        session, is_new = session_open_in(
            whatsapp_chat=whatsapp_chat,
            rules=build_intake_rules(),
            now=timezone.now(),
            actor=self.caller.actor,
        )
        return _session_answer(session, is_new=is_new)


def _session_answer(session: ChatSession, *, is_new: bool) -> Response:
    place = {"Location": reverse("api-session", args=[session.pk])} if is_new else None
    status = 201 if is_new else 200
    return Response(SessionSerializer(session).data, status=status, headers=place)


class OneSessionView(ApiView):
    serializer_class = SessionSerializer
    scopes = {"GET": "read", "DELETE": "forget"}
    staff_rights = {"GET": ["sessions_app.view_chatsession"]}
    answers = {"DELETE": [operations.CHANGED_MEANWHILE]}
    raises = FORGETTING

    @operations.described(operation_id="sessions_get", **operations.versioned(SessionSerializer))
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the session's state, not its messages."""
        session = access.session_within(self.caller, session_id)
        return etagged(request, SessionSerializer(session).data)

    @forgets(operation_id="sessions_forget")
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Forget the session everywhere it was derived, with a receipt. Once more: 404.

        With `If-Match` only the version that you read: else 412.
        """
        return forget_once(self, "session", lambda: access.session_within(self.caller, session_id))


class ResetView(ApiView):
    scopes = {"POST": "write"}
    answers = {
        "POST": [operations.conflicting("It has ended already.", "The session has ended already.")]
    }
    raises = REFUSALS

    @operations.described(
        operation_id="sessions_reset",
        parameters=[operations.location(201)],
        request=None,
        responses={201: SessionSerializer},
    )
    @idempotent(atomic=True)
    def post(self, request: Request, session_id: UUID) -> Response:
        """End the session and return the new one; 409 for a session that has ended already."""
        self.body(Nothing)
        session = session_reset(
            session_id=access.session_within(self.caller, session_id).pk,
            rules=build_intake_rules(),
            now=timezone.now(),
            actor=self.caller.actor,
        )
        return _session_answer(session, is_new=True)


class ExpireView(ApiView):
    scopes = {"POST": "write"}
    raises = REFUSALS

    @operations.described(operation_id="sessions_expire", request=None, responses=SessionSerializer)
    @idempotent(atomic=True)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Let the session expire; its messages stay.

        A session that has ended already stays as it is.
        """
        self.body(Nothing)
        session = session_expire(
            session_id=access.session_within(self.caller, session_id).pk,
            now=timezone.now(),
            actor=self.caller.actor,
        )
        return Response(SessionSerializer(session).data)


# Which messages a summary covers: SummarizationMetadata of seed 003.


class TimestampRangeSerializer(serializers.Serializer[Any]):
    start = Moment(source="range_start")
    end = Moment(source="range_end")


class SummarySerializer(serializers.Serializer[Any]):
    """The messages that a summary covers: SummarizationMetadata of seed 003."""

    summary_metadata_id = serializers.UUIDField()
    session_id = serializers.UUIDField()
    number = serializers.IntegerField()
    summary_message_id = serializers.UUIDField()
    summarized_message_ids = serializers.ListField(child=serializers.UUIDField())
    first_order = serializers.IntegerField()
    last_order = serializers.IntegerField()
    timestamp_range = TimestampRangeSerializer(source="*")
    skill_id = serializers.CharField()
    model = serializers.CharField()
    is_extractive = serializers.BooleanField()
    sources_deleted = serializers.BooleanField()
    created_at = Moment()


SUMMARY_RIGHTS = {"GET": ["sessions_app.view_summarizationmetadata"]}


class SummariesView(ListView):
    scopes = {"GET": "read"}
    staff_rights = SUMMARY_RIGHTS
    queryset = SummarizationMetadata.objects.all()
    serializer_class = SummarySerializer
    reach_field = "session__chat_id"
    ordering = ("number",)

    @operations.described(operation_id="sessions_summaries_list")
    def get(self, request: Request, session_id: UUID) -> Response:
        """List which messages each summary covers; its text is a message of the session."""
        session = access.session_within(self.caller, session_id)
        return self.page_of(self.within_reach().filter(session=session))


class SummaryView(ApiView):
    serializer_class = SummarySerializer
    scopes = {"GET": "read"}
    staff_rights = SUMMARY_RIGHTS

    @operations.described(operation_id="sessions_summaries_get", responses=SummarySerializer)
    def get(self, request: Request, session_id: UUID, summary_metadata_id: UUID) -> Response:
        """Return the summary that a message names as `summaryMetadataId` in its metadata."""
        session = access.session_within(self.caller, session_id)
        found = SummarizationMetadata.objects.filter(session=session, pk=summary_metadata_id)
        summary = self.one_of(found, f"summary {summary_metadata_id} in this session")
        return Response(SummarySerializer(summary).data)
