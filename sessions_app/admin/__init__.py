"""Conversations in the admin."""

from sessions_app.admin import (
    chats,
    deliveries,
    documents,
    messages,
    profile,
    sessions,
    summaries,
    turns,
)

__all__ = [
    "chats",
    "deliveries",
    "documents",
    "messages",
    "profile",
    "sessions",
    "summaries",
    "turns",
]
