"""Sessions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from memoryproject.api.schema import answered
from memoryproject.api.views import ApiView, ListView
from sessions_app.api import examples
from sessions_app.api.filters import SessionFilters
from sessions_app.api.serializers import SessionSerializer
from sessions_app.models import ChatSession


class SessionsView(ListView):
    scopes = {"GET": "read"}
    queryset = ChatSession.objects.select_related("chat")
    serializer_class = SessionSerializer
    filterset_class = SessionFilters
    ordering = ("-created_at", "-session_id")

    @extend_schema(
        summary="List sessions, the newest first",
        examples=[answered("One session", examples.page(examples.SESSION))],
    )
    def get(self, request: Request) -> Response:
        """Archived ones only with `status=archived`."""
        return self.page_of(self.within_reach())


class SessionView(ApiView):
    """What is about one session."""

    queryset = ChatSession.objects.select_related("chat")

    def session(self, session_id: UUID) -> ChatSession:
        """Raises NotFound also for one out of reach: nobody learns that it is there."""
        rows: Any = self.get_queryset().filter(self.caller.reach())
        session: ChatSession | None = rows.filter(pk=session_id).first()
        if session is None:
            raise NotFound(f"There is no session {session_id}.")
        return session


class OneSessionView(SessionView):
    scopes = {"GET": "read"}

    @extend_schema(
        summary="One session",
        responses=SessionSerializer,
        examples=[answered("An active session", examples.SESSION)],
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Its state, not its messages."""
        return Response(SessionSerializer(self.session(session_id)).data)
