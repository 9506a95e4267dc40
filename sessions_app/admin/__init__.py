"""Conversations in the admin."""

from sessions_app.admin import (
    chats,
    deliveries,
    documents,
    forget,
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
    "forget",
    "messages",
    "profile",
    "sessions",
    "summaries",
    "turns",
]
