"""Conversations in the admin."""

from sessions_app.admin import (
    chats,
    deliveries,
    documents,
    memories,
    messages,
    profile,
    sessions,
    summaries,
    turns,
)

__all__ = [
    "chats",
    "deliveries",
    "memories",
    "documents",
    "messages",
    "profile",
    "sessions",
    "summaries",
    "turns",
]
