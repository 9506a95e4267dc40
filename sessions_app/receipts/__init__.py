"""Receipts of forgetting as people read them: on a page, as text, as PDF. They hold no content."""
