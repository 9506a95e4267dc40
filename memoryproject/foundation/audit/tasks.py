"""What workers do for the audit log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from memoryproject.foundation.audit.chain import ChainError
from memoryproject.foundation.audit.pruning import AUDIT_RETENTION_DAYS, audit_prune
from memoryproject.foundation.audit.sealing import audit_seal
from memoryproject.foundation.audit.setting_changes import settings_note, tracked_values
from memoryproject.foundation.audit.verification import verification_run
from memoryproject.foundation.audit.wiring import audit_key, log_path

logger = logging.getLogger(__name__)


def seal() -> int:
    """Seal what waits."""
    return _told(lambda: audit_seal(key=audit_key(), log_path=log_path()))


def prune() -> int:
    """Delete what is older than AUDIT_RETENTION_DAYS."""
    return _told(
        lambda: audit_prune(
            key=audit_key(),
            log_path=log_path(),
            now=timezone.now(),
            keep=timedelta(days=AUDIT_RETENTION_DAYS),
        )
    )


def verify(verification_id: int) -> None:
    """Verify the log as staff asked for it, and keep what was found."""
    verification_run(
        verification_id=verification_id, key=audit_key(), log_path=log_path(), now=timezone.now
    )


def note_settings() -> list[str]:
    """Record which settings are others than at the last start."""
    return settings_note(key=audit_key(), values=tracked_values(settings))


def _told(work: Callable[[], int]) -> int:
    """What goes wrong here waits for somebody; events are kept and tried again."""
    try:
        return work()
    except ChainError as error:
        logger.critical("%s", error)
    except OSError as error:
        logger.critical("The audit log file can't be written: %s. Its events wait.", error)
    return 0
