"""The audit log as an app of its own, below all others."""

from __future__ import annotations

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "memoryproject.audit"
    label = "audit"
    verbose_name = "Audit"
