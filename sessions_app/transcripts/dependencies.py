"""Build the dependencies of saving transcripts from the settings."""

from __future__ import annotations

from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.transcript_files.dependencies import (
    build_transcript_backups,
    transcript_retention,
)
from sessions_app.transcript_files.transcript_folder import Progress
from sessions_app.transcripts.save import SaveDependencies


def build_save_dependencies(*, progress: Progress) -> SaveDependencies:
    """Return the dependencies of a save."""
    return SaveDependencies(
        rules=build_intake_rules(),
        backups=build_transcript_backups(),
        keep=transcript_retention(),
        progress=progress,
    )
