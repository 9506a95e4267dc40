"""Conversations in the admin."""

from sessions_app.admin import (
    cards,
    chats,
    deliveries,
    documents,
    forget,
    forget_runs,
    labels,
    memories,
    messages,
    profile,
    receipts,
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
    "forget_runs",
    "labels",
    "messages",
    "profile",
    "receipts",
    "sessions",
    "summaries",
    "tokens",
    "turns",
    "webhooks",
]
