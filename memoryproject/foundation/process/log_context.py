"""The ids that a line of the log carries: request, chat, turn, job."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

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
