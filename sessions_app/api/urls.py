"""The addresses of conversations, under /api/v1/."""

from __future__ import annotations

from django.urls import path

from sessions_app.api.sessions import OneSessionView, SessionsView

urlpatterns = [
    path("sessions/", SessionsView.as_view(), name="api-sessions"),
    path("sessions/<uuid:session_id>/", OneSessionView.as_view(), name="api-session"),
]
