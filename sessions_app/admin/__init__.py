"""Conversations in the admin."""

from sessions_app.admin import (
    cards,
    chats,
    deliveries,
    documents,
    forget,
    memories,
    messages,
    profile,
    sessions,
    summaries,
    tokens,
    turns,
    webhooks,
)

__all__ = [
    "cards",
    "chats",
    "deliveries",
    "memories",
    "documents",
    "forget",
    "messages",
    "profile",
    "sessions",
    "summaries",
    "tokens",
    "turns",
    "webhooks",
]
