"""Summaries of long conversations: when they are due, how they are made, stored and undone."""
