"""Checks that the audit log is unchanged since it was sealed."""
