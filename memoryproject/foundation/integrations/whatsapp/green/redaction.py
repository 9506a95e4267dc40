"""Keeps Green API's token, which is part of each URL, out of logs and error texts."""

from __future__ import annotations

import logging
import re

_TOKEN_IN_PATH = re.compile(r"(/waInstance[^/\s]*/[^/\s]+/)[^\s/?#\"']+")


def without_token(text: str, token: str = "") -> str:
    """The text with the token, also a URL's, replaced by stars."""
    shown = _TOKEN_IN_PATH.sub(r"\1***", text)
    return shown.replace(token, "***") if token else shown


class TokenFilter(logging.Filter):
    """Replaces tokens in records that hold a Green API URL; the records themselves stay."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "/waInstance" in message:
            record.msg, record.args = without_token(message), ()
        return True


_FILTER = TokenFilter()


def guard_http_logs() -> None:
    """Keep tokens out of what the HTTP libraries log. Calling it again changes nothing."""
    for name in ("httpx", "httpcore", "httpcore.connection", "httpcore.http11"):
        logging.getLogger(name).addFilter(_FILTER)
