"""Begins the chain anew where it can't be gone on with."""

from __future__ import annotations

import logging
from pathlib import Path

from django.db import connection, transaction

from memoryproject.foundation.audit.chain import ChainError, chain_lock, removal_allowed
from memoryproject.foundation.audit.events import COMMAND_LINE, Actor, audit_record
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditHead
from memoryproject.foundation.audit.rewriting import log_set_aside
from memoryproject.foundation.audit.sealing import audit_seal

logger = logging.getLogger(__name__)


def audit_begin_anew(*, key: str, log_path: Path, actor: Actor = COMMAND_LINE) -> int:
    """Seal all events afresh from number 1, as they are now, and set the log file aside; returns
    how many. That this was done is the last event of the new chain. Raises ChainError where the
    chain can be gone on with, and OSError.
    """
    reason = _reason(key, log_path)
    with transaction.atomic():
        chain_lock()
        with removal_allowed(), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE audit_auditevent SET seq = NULL, seal = '' WHERE seq IS NOT NULL"
            )
            AuditCheckpoint.objects.all().delete()
        AuditHead.objects.all().delete()
        audit_record(action="audit.begin_anew", actor=actor, object_type="audit log")
        aside = log_set_aside(log_path=log_path, name="before-new-chain")
    logger.critical("The audit log's chain was begun anew (%s) Set aside: %s.", reason, aside)
    return audit_seal(key=key, log_path=log_path)


def _reason(key: str, log_path: Path) -> ChainError:
    """Why the chain can't be gone on with."""
    try:
        audit_seal(key=key, log_path=log_path)
    except ChainError as error:
        return error
    raise ChainError("The chain can be gone on with: there is nothing to begin anew.")
