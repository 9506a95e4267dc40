"""REST views of sessions."""

from __future__ import annotations

from uuid import UUID

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.foundation.rest_kit.answers import conflicting
from memoryproject.foundation.rest_kit.errors import conflict, not_found
from memoryproject.foundation.rest_kit.idempotency import idempotent
from memoryproject.foundation.rest_kit.operations import answered, described, sent
from memoryproject.foundation.rest_kit.serializers import Nothing
from memoryproject.foundation.rest_kit.views import ApiView, ListView
from sessions_app.conversation_views.session_actions import (
    MemoryDisabledError,
    SessionEndedError,
    session_expire,
    session_open_in,
    session_reset,
)
from sessions_app.conversations.facade import ConversationNotFoundError
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.models import ChatSession
from sessions_app.presentation import examples
from sessions_app.presentation.filters import SessionFilters
from sessions_app.presentation.lookup import check_chat, session_within
from sessions_app.presentation.refusals import memory_disabled
from sessions_app.presentation.serializers import NewSessionSerializer, SessionSerializer

REFUSALS = {
    ConversationNotFoundError: not_found,
    SessionEndedError: conflict,
    MemoryDisabledError: memory_disabled,
}


class SessionsView(ListView):
    scopes = {"GET": "read", "POST": "write"}
    staff_rights = {"GET": ["sessions_app.view_chatsession"]}
    raises = REFUSALS
    queryset = ChatSession.objects.select_related("chat")
    serializer_class = SessionSerializer
    filterset_class = SessionFilters
    ordering = ("-created_at", "-session_id")

    @described(
        summary="List sessions, the newest first",
        examples=[answered("One session", examples.SESSION)],
    )
    def get(self, request: Request) -> Response:
        """List the sessions; archived ones only with `status=archived`."""
        return self.page_of(self.within_reach())

    @described(
        operation_id="sessions_open",
        summary="The active session of a chat, begun where there is none",
        request=NewSessionSerializer,
        responses={200: SessionSerializer, 201: SessionSerializer},
        examples=[
            sent("A chat", {"whatsapp_chat": examples.CHAT}),
            answered("Begun", examples.SESSION, status=201),
            answered("There already", examples.SESSION),
        ],
    )
    @idempotent(atomic=True)
    def post(self, request: Request) -> Response:
        """Return the chat's active session: 201 if it was begun now, 200 if it existed.

        A chat that doesn't exist is created.
        """
        body = self.body(NewSessionSerializer)
        check_chat(self.caller, body["whatsapp_chat"])
        opened = session_open_in(
            whatsapp_chat=body["whatsapp_chat"],
            rules=build_intake_rules(),
            now=timezone.now(),
            actor=self.caller.actor,
        )
        return Response(
            SessionSerializer(opened.session).data, status=201 if opened.is_new else 200
        )


class OneSessionView(ApiView):
    scopes = {"GET": "read"}
    staff_rights = {"GET": ["sessions_app.view_chatsession"]}

    @described(
        operation_id="sessions_get",
        summary="One session",
        responses=SessionSerializer,
        examples=[answered("An active session", examples.SESSION)],
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the session's state, not its messages."""
        return Response(SessionSerializer(session_within(self.caller, session_id)).data)


class ResetView(ApiView):
    scopes = {"POST": "write"}
    answers = {"POST": [conflicting("It has ended already.", "The session has ended already.")]}
    raises = REFUSALS

    @described(
        operation_id="sessions_reset",
        summary="End a session and begin the next, as /reset does",
        request=None,
        responses={201: SessionSerializer},
        examples=[answered("The new session", examples.SESSION, status=201)],
    )
    @idempotent(atomic=True)
    def post(self, request: Request, session_id: UUID) -> Response:
        """End the session and return the new one; 409 for a session that has ended already."""
        self.body(Nothing)
        session = session_reset(
            session_id=session_within(self.caller, session_id).pk,
            rules=build_intake_rules(),
            now=timezone.now(),
            actor=self.caller.actor,
        )
        return Response(SessionSerializer(session).data, status=201)


class ExpireView(ApiView):
    scopes = {"POST": "write"}
    raises = REFUSALS

    @described(
        operation_id="sessions_expire",
        summary="Let a session expire now",
        request=None,
        responses=SessionSerializer,
        examples=[
            answered(
                "Expired",
                {**examples.SESSION, "status": "expired", "expired_at": examples.AT},
            )
        ],
    )
    @idempotent(atomic=True)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Let the session expire; its messages stay.

        A session that has ended already stays as it is.
        """
        self.body(Nothing)
        session = session_expire(
            session_id=session_within(self.caller, session_id).pk,
            now=timezone.now(),
            actor=self.caller.actor,
        )
        return Response(SessionSerializer(session).data)
