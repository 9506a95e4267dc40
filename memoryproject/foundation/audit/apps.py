"""The audit log as an app of its own, below all others."""

from __future__ import annotations

import logging
from typing import Any

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

logger = logging.getLogger(__name__)


class AuditConfig(AppConfig):
    name = "memoryproject.foundation.audit"
    label = "audit"
    verbose_name = _("Audit")

    def ready(self) -> None:
        # It connects the signals of logins.
        from memoryproject.foundation.audit import audit_events  # noqa: F401, PLC0415 imports models
        from memoryproject.foundation.process.lanes import workers_changed  # noqa: PLC0415 apps must be loaded first

        workers_changed.connect(_note_settings_at_start, dispatch_uid="note_settings_at_start")


def _note_settings_at_start(**_: Any) -> None:
    """Record changed settings. Workers start with every server."""
    from memoryproject.foundation.audit.tasks import note_settings  # noqa: PLC0415 imports models

    try:
        note_settings()
    except Exception:
        logger.exception("Whether settings changed could not be recorded.")
