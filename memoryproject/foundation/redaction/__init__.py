"""Redaction of personal data, for cards, logs and exports: ``redact.py`` is the entry."""
