"""Read the audit log's parameters from the settings."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from memoryproject.foundation.audit.audit_events import audit_key

__all__ = ["LOG_NAME", "audit_key", "log_path"]

LOG_NAME = "memory_audit.log"


def log_path() -> Path:
    return Path(settings.LOG_DIR) / LOG_NAME
