"""The log as JSON: one object a line, for collectors."""

from __future__ import annotations

from typing import Any

from pythonjsonlogger.json import JsonFormatter

from memoryproject.foundation.process.logfile import without_quotes


class ContentlessJsonFormatter(JsonFormatter):
    """Writes time, level, logger, message and the ids of the context; no user content.

    An error's traceback is in ``exc_info``, without the values that the database quotes.
    """

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        """Return the line's values, without what the database quotes in its errors."""
        return {
            name: without_quotes(value) if isinstance(value, str) else value
            for name, value in log_data.items()
        }
