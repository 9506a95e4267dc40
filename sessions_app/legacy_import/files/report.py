"""Report of an import: counted for the result, and logged as it happens."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Skipped:
    """A file, or a message in a file, that was not imported, and the reason."""

    file: str
    reason: str


@dataclass
class ImportReport:
    """The counts of an import.

    ``sessions_expired`` are the imported sessions with the status expired or archived;
    ``renamed`` maps ids that are no UUIDs to their UUIDs.
    """

    dry_run: bool = False
    sessions_imported: int = 0
    sessions_expired: int = 0
    sessions_there: int = 0
    sessions_skipped: int = 0
    messages_imported: int = 0
    messages_there: int = 0
    messages_missing: int = 0
    messages_skipped: int = 0
    vectors: int = 0
    warnings: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def session_skip(self, file: str, reason: str) -> None:
        """Skip the file and continue with the rest (ERR-SESSION-001)."""
        self.sessions_skipped += 1
        self._skip(file, reason)

    def message_skip(self, file: str, reason: str) -> None:
        """Skip the message and continue with its session (ERR-SESSION-003)."""
        self.messages_skipped += 1
        self._skip(file, reason)

    def orphans_skip(self, session: str, count: int) -> None:
        """Skip messages whose session has no readable file, unless a rebuild is requested."""
        self.messages_skipped += count
        reason = (
            "the file of their session is missing or can't be used; "
            "--orphans rebuild makes the session from them"
        )
        self.skipped.append(Skipped(f"messages/: {count} files of session {session}", reason))
        text = "%d message files of session %s were left: %s."
        self.warn("orphans", text, count, session, reason)

    def warn(self, kind: str, text: str, *values: object) -> None:
        """Log a WARNING and count it under its kind."""
        self.warnings[kind] += 1
        logger.warning(text, *values)

    def _skip(self, file: str, reason: str) -> None:
        self.skipped.append(Skipped(file, reason))
        logger.error("%s was skipped: %s.", file, reason)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for --json."""
        return {
            "dry_run": self.dry_run,
            "sessions": {
                "imported": self.sessions_imported,
                "expired": self.sessions_expired,
                "already_there": self.sessions_there,
                "skipped": self.sessions_skipped,
            },
            "messages": {
                "imported": self.messages_imported,
                "already_there": self.messages_there,
                "missing": self.messages_missing,
                "skipped": self.messages_skipped,
            },
            "vectors": self.vectors,
            "warnings": dict(sorted(self.warnings.items())),
            "skipped": [{"file": one.file, "reason": one.reason} for one in self.skipped],
            "renamed": self.renamed,
        }
