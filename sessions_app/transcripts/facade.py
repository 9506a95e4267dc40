"""Public face of transcripts: what other packages may use."""

from sessions_app.transcripts.one_text import leftovers_remove

__all__ = [
    "leftovers_remove",
]
