"""Build the dependencies of saving transcripts from the settings."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.transcript_files.dependencies import (
    build_transcript_backups,
    transcript_retention,
)
from sessions_app.transcript_files.transcript_folder import Progress
from sessions_app.transcripts.export_transcripts import leftovers_remove
from sessions_app.transcripts.save import SaveDependencies


def transcript_texts_folder() -> Path:
    """Return the folder for texts that came over HTTP, while they are saved."""
    return Path(settings.DATA_DIR) / "transcript-texts"


def build_save_dependencies(*, progress: Progress) -> SaveDependencies:
    """Return the dependencies of a save."""
    return SaveDependencies(
        rules=build_intake_rules(),
        backups=build_transcript_backups(),
        keep=transcript_retention(),
        progress=progress,
    )


def transcript_leftovers_remove() -> int:
    """Remove the texts that killed processes left; return how many."""
    return leftovers_remove(transcript_texts_folder())
