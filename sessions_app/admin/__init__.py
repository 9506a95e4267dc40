"""Conversations in the admin."""

from sessions_app.admin import chats, deliveries, messages, profile, sessions, summaries, turns

__all__ = ["chats", "deliveries", "messages", "profile", "sessions", "summaries", "turns"]
