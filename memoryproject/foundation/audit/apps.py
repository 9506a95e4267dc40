"""The audit log as an app of its own, below all others."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AuditConfig(AppConfig):
    name = "memoryproject.foundation.audit"
    label = "audit"
    verbose_name = _("Audit")

    def ready(self) -> None:
        # It connects the signals of logins.
        from memoryproject.foundation.audit import audit_events  # noqa: F401, PLC0415 imports models
