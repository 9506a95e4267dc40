"""Rewrite the log file for a restored database that has none of its own."""

from __future__ import annotations

import logging
from pathlib import Path

from django.db import transaction

from memoryproject.foundation.audit.audit_logfile import AuditLogFile, line_of
from memoryproject.foundation.audit.chain import ChainError, chain_lock
from memoryproject.foundation.audit.pruning import sealed_rows

logger = logging.getLogger(__name__)


def log_write(*, log_path: Path) -> int:
    """Write a line for every sealed event if there is no log file; return how many.

    Raises ChainError if there is a log file, because it is evidence. Raises OSError if it can't be
    written; then there is no file.
    """
    with transaction.atomic():
        chain_lock()
        if log_path.exists():
            raise ChainError(
                f"{log_path} is there: it is never replaced. Move it aside first, and keep it."
            )
        written = AuditLogFile(log_path).rewrite(line_of(*row) for row in sealed_rows(after=0))
    logger.warning("The audit log file was written anew from the database: %d lines.", written)
    return written


def log_set_aside(*, log_path: Path, name: str) -> Path | None:
    """Rename the log file of another database to a free name in the same folder.

    Returns its path, or None if there is no log file. Raises OSError.
    """
    with transaction.atomic():
        chain_lock()
        if not log_path.exists():
            return None
        aside, count = log_path.with_name(f"{log_path.name}.{name}"), 1
        while aside.exists():
            count += 1
            aside = log_path.with_name(f"{log_path.name}.{name}-{count}")
        log_path.rename(aside)
    return aside
