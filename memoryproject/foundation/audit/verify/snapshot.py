"""The table and the log file at one moment."""

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
    """A consistent view. ``file`` is None if there is none; only its first ``size`` bytes count."""

    head: AuditHead | None
    file: BufferedReader | None
    size: int


@contextmanager
def take_snapshot(log_path: Path) -> Iterator[Snapshot]:
    """Read the database and the file while no sealer is between its line and its commit.

    A sealer waits only until the snapshot begins.
    """
    with ExitStack() as unlock, ExitStack() as stack:
        # Before the transaction: its first statement determines what it sees.
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
