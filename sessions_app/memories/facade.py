"""Public face of memories: what other packages may use."""

from sessions_app.memories.transfer import MAX_ERRORS, lines_of, memories_import, memory_lines
