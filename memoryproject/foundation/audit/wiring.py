"""Read the audit log's parameters from the settings."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

LOG_NAME = "memory_audit.log"


def audit_key() -> str:
    return str(settings.AUDIT_KEY)


def log_path() -> Path:
    return Path(settings.LOG_DIR) / LOG_NAME
