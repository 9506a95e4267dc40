"""Start a new chain if the old one can't be continued."""

from __future__ import annotations

import logging
from pathlib import Path

from django.db import connection, transaction

from memoryproject.foundation.audit.audit_events import COMMAND_LINE, Actor, audit_record
from memoryproject.foundation.audit.chain import ChainError, chain_lock, removal_allowed
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditHead
from memoryproject.foundation.audit.rewriting import log_set_aside
from memoryproject.foundation.audit.sealing import audit_seal

logger = logging.getLogger(__name__)


def audit_begin_anew(*, key: str, log_path: Path, actor: Actor = COMMAND_LINE) -> int:
    """Seal all events anew from number 1 and set the log file aside; return how many.

    The events are sealed as they are now. The last event of the new chain records this action.
    Raises ChainError if the chain can be continued, and OSError.
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
    """Return the reason why the chain can't be continued."""
    try:
        audit_seal(key=key, log_path=log_path)
    except ChainError as error:
        return error
    raise ChainError("The chain can be gone on with: there is nothing to begin anew.")
