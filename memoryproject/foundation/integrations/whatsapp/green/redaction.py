"""Redact Green API's token, which is part of each URL, in logs and error texts."""

from __future__ import annotations

import logging
import re

_TOKEN_IN_PATH = re.compile(r"(/waInstance[^/\s]*/[^/\s]+/)[^\s/?#\"']+")


def without_token(text: str, token: str = "") -> str:
    """Return the text with the token, also that of a URL, replaced by stars."""
    shown = _TOKEN_IN_PATH.sub(r"\1***", text)
    return shown.replace(token, "***") if token else shown


class TokenFilter(logging.Filter):
    """Replaces tokens in log records with a Green API URL; no record is dropped."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "/waInstance" in message:
            record.msg, record.args = without_token(message), ()
        return True


_FILTER = TokenFilter()


def guard_http_logs() -> None:
    """Redact tokens in the logs of the HTTP libraries. A repeated call changes nothing."""
    for name in ("httpx", "httpcore", "httpcore.connection", "httpcore.http11"):
        logging.getLogger(name).addFilter(_FILTER)
