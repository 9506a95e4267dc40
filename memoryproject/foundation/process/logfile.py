"""The log: as lines of text in a file, or as JSON for collectors, one object a line.

Each line has the ids of its context.
"""

import logging
import logging.handlers
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from memoryproject.foundation.redaction.redact import redact


class ContentlessJsonFormatter(JsonFormatter):
    """Writes time, level, logger, message and the ids of the context; no user content.

    An error's traceback is in ``exc_info``, redacted as the message is.
    """

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        """Return the line's values, the texts of them without user content."""
        return {
            name: without_content(value)
            if isinstance(value, str) and name not in _OF_OPERATORS
            else value
            for name, value in log_data.items()
        }


# A log file that only its owner can read (NFR-SEC-002), and that contains no user content.


# The details that PostgreSQL adds to an error: the row or the statement, with all its values. They
# end where the next error of a chain begins, or not at all.
_ADDED = re.compile(
    r"\n(?:DETAIL|CONTEXT|HINT|LINE \d+): .*?(?=\n\n(?:The above|During handling)|\Z)", re.DOTALL
)

SERVER_ERROR = 500


def without_quotes(text: str) -> str:
    """Return the text without the values that the database quotes in its errors."""
    return _ADDED.sub("\n(what the database quoted is left out)", text)


# What a line has beside its texts.
_OF_OPERATORS = {"time", "level", "logger", "program", "request", "chat", "turn", "job"}


def without_content(text: str) -> str:
    """Return a text of the log without the database's values, personal data and secrets.

    Texts of people come into the log by errors: of providers, of models, by a URL with its token.
    """
    return redact(without_quotes(text))


class ContentlessFormatter(logging.Formatter):
    """Writes a line of text without user content; the time before it isn't searched."""

    def format(self, record: logging.LogRecord) -> str:
        # Other handlers have the same record.
        line = copy(record)
        line.msg, line.args = without_content(record.getMessage()), None
        line.exc_text = without_content(record.exc_text) if record.exc_text else None
        return super().format(line)

    def formatException(self, ei: Any) -> str:  # noqa: N802 the name of logging
        return without_content(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 the name of logging
        return without_content(stack_info)


class RefusalsInOneLine(logging.Filter):
    """Removes the traceback of a request that was refused, which is no fault of the server.

    Django adds one where a view raises PermissionDenied or a request is malformed. The address in
    its line becomes that of the view: ids of people and keys of memories would outlive an erasure.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        request: Any = getattr(record, "request", None)
        if hasattr(request, "path"):
            # JSON would have all of the address; its line has the request's id, also now that the
            # context has ended.
            record.request = request.META.get("HTTP_X_REQUEST_ID", "")
            if record.args:
                record.args = (*tuple(record.args)[:-1], view_address(request))
        if getattr(record, "status_code", SERVER_ERROR) < SERVER_ERROR:
            record.exc_info = record.exc_text = None
        return True


def view_address(request: Any) -> str:
    """Return the pattern of a request's address; of an unknown address its beginning."""
    match = request.resolver_match
    return f"/{match.route}" if match else "/".join(request.path.split("/")[:4])


class PrivateFileHandler(logging.handlers.WatchedFileHandler):
    """Appends to a file of mode 600 in a folder of mode 700, and follows log rotation."""

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record; a full disk loses it, and never the work that it is about.

        The standard library handles errors of writing, but not those of reopening the file.
        """
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 the name of logging
        """Say in one line that the file can't be written; all of any other error."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        with suppress(OSError):
            sys.stderr.write(f"{self.baseFilename} can't be written: {error}\n")


# The ids that a line of the log carries: request, chat, turn, job.

_context: ContextVar[dict[str, str] | None] = ContextVar("log_context", default=None)


@contextmanager
def log_context(**ids: object) -> Iterator[None]:
    """Add these ids to the log's lines within the block. They must not be personal data."""
    added = {name: str(value) for name, value in ids.items() if value}
    token = _context.set({**(_context.get() or {}), **added})
    try:
        yield
    finally:
        _context.reset(token)


def log_context_set(**ids: object) -> None:
    """Add these ids to the log's lines from here on."""
    _context.set({**(_context.get() or {}), **{name: str(value) for name, value in ids.items()}})


def log_ids() -> Mapping[str, str]:
    """Return the ids that the log's lines have here."""
    return _context.get() or {}


class ContextFilter(logging.Filter):
    """Gives each record the ids of its context."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in (_context.get() or {}).items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True
