"""Tells open pages of staff that something changed, by server-sent events."""
