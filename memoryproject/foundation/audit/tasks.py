"""Background jobs of the audit log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import audit_key, log_path
from memoryproject.foundation.audit.chain import ChainError, audit_seal
from memoryproject.foundation.audit.pruning import AUDIT_RETENTION_DAYS, audit_prune
from memoryproject.foundation.audit.setting_changes import settings_note, tracked_values
from memoryproject.foundation.audit.verification import verification_run

logger = logging.getLogger(__name__)


def seal() -> int:
    """Seal the waiting events."""
    return _log_errors(lambda: audit_seal(key=audit_key(), log_path=log_path()))


def prune() -> int:
    """Delete events older than AUDIT_RETENTION_DAYS."""
    return _log_errors(
        lambda: audit_prune(
            key=audit_key(),
            log_path=log_path(),
            now=timezone.now(),
            keep=timedelta(days=AUDIT_RETENTION_DAYS),
        )
    )


def verify(verification_id: int) -> None:
    """Verify the log at the request of staff, and store the result."""
    verification_run(
        verification_id=verification_id, key=audit_key(), log_path=log_path(), now=timezone.now
    )


def note_settings() -> list[str]:
    """Record the settings that changed since the last start."""
    return settings_note(key=audit_key(), values=tracked_values(settings))


def _log_errors(work: Callable[[], int]) -> int:
    """Run the work and log its errors. Events are kept and retried, and somebody must act."""
    try:
        return work()
    except ChainError as error:
        logger.critical("%s", error)
    except OSError as error:
        logger.critical("The audit log file can't be written: %s. Its events wait.", error)
    return 0
