"""The addresses of conversations, under /api/v1/."""

from __future__ import annotations

from django.urls import path

from memoryproject.foundation.rest_kit.urls import ID
from sessions_app.conversation_views.api.chat_api import ChatsView, ChatView
from sessions_app.conversation_views.api.message_api import MessagesView, OneMessageView
from sessions_app.conversation_views.api.session_api import (
    ExpireView,
    OneSessionView,
    ResetView,
    SessionsView,
)
from sessions_app.conversation_views.api.summary_api import SummariesView, SummaryView
from sessions_app.inbound.api.chat import AskView
from sessions_app.turns.api.turn_serializers import ContextView, TurnView

SESSION = f"sessions/<{ID}:session_id>/"

urlpatterns = [
    path("chat/", AskView.as_view(), name="api-chat"),
    path("sessions/", SessionsView.as_view(), name="api-sessions"),
    path(SESSION, OneSessionView.as_view(), name="api-session"),
    path(f"{SESSION}reset/", ResetView.as_view(), name="api-session-reset"),
    path(f"{SESSION}expire/", ExpireView.as_view(), name="api-session-expire"),
    path(f"{SESSION}messages/", MessagesView.as_view(), name="api-session-messages"),
    path(
        f"{SESSION}messages/<{ID}:message_id>/",
        OneMessageView.as_view(),
        name="api-session-message",
    ),
    path(f"{SESSION}context/", ContextView.as_view(), name="api-session-context"),
    path(f"{SESSION}summaries/", SummariesView.as_view(), name="api-session-summaries"),
    path(
        f"{SESSION}summaries/<{ID}:summary_metadata_id>/",
        SummaryView.as_view(),
        name="api-session-summary",
    ),
    path("chats/", ChatsView.as_view(), name="api-chats"),
    path("chats/<str:whatsapp_chat>/", ChatView.as_view(), name="api-chat-detail"),
    path(f"turns/<{ID}:turn_id>/", TurnView.as_view(), name="api-turn"),
]
