"""An old folder, and the import of it with fixed time and a plain embedder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sessions_app.inbound.take_message import IntakeRules
from sessions_app.legacy_import.import_folder import FolderImport
from sessions_app.legacy_import.session_folder import ImportReport, LegacyFolder
from sessions_app.models import ChatSession
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.recovery.archives import archive, as_after_migrate, backup, full
from tests.recovery.old_files import NOW, OTHER_CLIENT, OldFolder, message

# Fixtures of these tests that stand elsewhere.
__all__ = ["archive", "as_after_migrate", "backup", "full"]

Import = Callable[..., ImportReport]


@pytest.fixture
def old(tmp_path: Path) -> OldFolder:
    return OldFolder(tmp_path / "sessions")


@pytest.fixture
def bring_in(db: None, old: OldFolder, rules: IntakeRules) -> Import:
    """Import the old folder; keywords are FolderImport's, or those of the rules."""

    def run(**changes: Any) -> ImportReport:
        own = {name: changes.pop(name) for name in ("limits",) if name in changes}
        given: dict[str, Any] = {
            "folder": LegacyFolder(old.root),
            "rules": replace(rules, chat_memory=replace(rules.chat_memory, **own)),
            "now": NOW,
            "embedder": HashingEmbedder(),
            **changes,
        }
        return FolderImport(**given).run()

    return run


@pytest.fixture
def good(old: OldFolder) -> str:
    """A session that has nothing to do with what is wrong."""
    return old.add([message(1)], whatsapp_chat=OTHER_CLIENT)


def is_in(session_id: str) -> bool:
    return ChatSession.objects.filter(pk=session_id).exists()
