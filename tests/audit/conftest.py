"""An empty audit log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.log import AuditLog


@pytest.fixture
def log(transactional_db: None, tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "logs" / "memory_audit.log")
