"""Memories as lines of JSON, out and in."""
