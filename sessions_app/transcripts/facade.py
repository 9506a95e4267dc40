"""Public interface of transcripts: the names that other packages may use."""

from sessions_app.transcripts.one_text import leftovers_remove

__all__ = [
    "leftovers_remove",
]
