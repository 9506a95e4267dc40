"""Public face of backup: what other packages may use."""

from sessions_app.backup.archive_writer import name_file

__all__ = [
    "name_file",
]
