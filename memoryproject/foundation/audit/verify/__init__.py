"""Finds out whether the audit log is as it was sealed."""
