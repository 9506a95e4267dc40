"""Build the backups of transcripts from the settings."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.conf import settings

from sessions_app.transcript_files.backups import Backups


def build_transcript_backups() -> Backups:
    """Build the backups of saved transcripts, in DATA_DIR."""
    return Backups(Path(settings.DATA_DIR) / "transcripts")


def transcript_retention() -> timedelta:
    """Return how long a backup of a transcript is kept."""
    return timedelta(days=settings.TRANSCRIPT_BACKUP_DAYS)
