"""An audit log of a test's own, and hands that tamper with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM, audit_record
from memoryproject.foundation.audit.chain import audit_prune, audit_seal
from memoryproject.foundation.audit.findings import AuditReport
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.verify import audit_verify


@dataclass
class AuditLog:
    """``path``: the log file's. The table is the database's."""

    path: Path
    key: str = settings.AUDIT_KEY

    def record(self, count: int, action: str = "memory.remember") -> None:
        for number in range(count):
            audit_record(
                action,
                SYSTEM,
                "memory",
                f"{action}-{number}",
                content_hash="ab" * 32,
                number=number,
            )

    def seal(self, **options: Any) -> int:
        return audit_seal(key=self.key, log_path=self.path, **options)

    def verify(self) -> AuditReport:
        return audit_verify(key=self.key, log_path=self.path)

    def prune(self, now: datetime | None = None, days: int = 90) -> int:
        return audit_prune(
            key=self.key, log_path=self.path, now=now or timezone.now(), keep=timedelta(days=days)
        )

    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True)

    def write(self, lines: list[bytes]) -> None:
        self.path.write_bytes(b"".join(lines))

    def chain(self) -> list[tuple[int, str]]:
        return list(AuditEvent.objects.order_by("seq").values_list("seq", "seal"))


def kinds(report: AuditReport) -> list[str]:
    return [finding.kind for finding in report.findings]


def tamper(statement: str, *values: Any) -> None:
    """As somebody who may do everything in the database: no trigger, no constraint."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        try:
            cursor.execute(statement, values)
        finally:
            cursor.execute("SET session_replication_role = DEFAULT")


def execute(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []
