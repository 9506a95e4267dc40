"""The table and the log file as they are at one moment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from django.db import connection, transaction

from memoryproject.foundation.audit.chain import chain_lock_for_session
from memoryproject.foundation.audit.models import AuditHead


@dataclass(frozen=True)
class Snapshot:
    """``file`` is None where there is none; what was in it are its first ``size`` bytes."""

    head: AuditHead | None
    file: BufferedReader | None
    size: int


@contextmanager
def take_snapshot(log_path: Path) -> Iterator[Snapshot]:
    """Reads see the database as it is now, in which nobody is half-way between writing a line
    and committing its event. Whoever seals waits only until this begins."""
    with ExitStack() as unlock, ExitStack() as stack:
        # Before the transaction: what that sees is settled by its first statement.
        unlock.enter_context(chain_lock_for_session())
        stack.enter_context(transaction.atomic(durable=True))
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        head = AuditHead.objects.filter(pk=1).first()
        file, size = None, 0
        if log_path.exists():
            file = stack.enter_context(log_path.open("rb"))
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
        unlock.close()
        yield Snapshot(head, file, size)
