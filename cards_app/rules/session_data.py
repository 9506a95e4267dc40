"""Read the data of a session for a card, and ignore unknown fields.

The form is ``{"session_id", "messages": [{"role", "content", "timestamp"}]}`` (seed 001).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime


class SessionDataError(ValueError):
    """The session's data is invalid.

    ``path`` is the place in the data, such as ``messages[2].role``; the text states what was
    found there and what is expected.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


MAX_SESSION_ID_LENGTH = 255
MAX_ROLE_LENGTH = 32

# The id is written into a YAML comment, which a line break would end.
_SESSION_ID = re.compile(
    f"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]{{1,{MAX_SESSION_ID_LENGTH}}}"
)
# Only letters: no personal data, and no bracket that would end the bullet's "[role]".
_ROLE = re.compile(r"[^\W\d_]+(?:[-_][^\W\d_]+)*")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::[0-5]\d(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)


def read_session(session_data: object) -> "tuple[str, Iterator[Line]]":
    """Return the session's id and its messages in order; each message is validated when it is read.

    ``messages`` may be any iterable of objects. Raises SessionDataError, for a message when it is
    read.
    """
    session = _object("session_data", session_data)
    messages = session.get("messages")
    if not isinstance(messages, Iterable) or isinstance(messages, str | bytes | Mapping):
        raise SessionDataError("messages", f"must be a list, not {_kind(messages)}.")
    lines = (_line(f"messages[{place}]", message) for place, message in enumerate(messages))
    return _session_id(session.get("session_id")), lines


def _session_id(session_id: object) -> str:
    if not isinstance(session_id, str):
        raise SessionDataError("session_id", f"must be a text, not {_kind(session_id)}.")
    if not session_id.strip() or not _SESSION_ID.fullmatch(session_id):
        raise SessionDataError(
            "session_id",
            f"must be one line of 1 to {MAX_SESSION_ID_LENGTH} characters without control "
            "characters.",
        )
    return session_id


def _line(path: str, message: object) -> "Line":
    line = _object(path, message)
    role, content = line.get("role"), line.get("content")
    if not isinstance(role, str):
        raise SessionDataError(f"{path}.role", f"must be a text, not {_kind(role)}.")
    if len(role) > MAX_ROLE_LENGTH or not _ROLE.fullmatch(role):
        raise SessionDataError(
            f"{path}.role",
            f"must be a word of letters such as user or assistant, at most {MAX_ROLE_LENGTH} long.",
        )
    if not isinstance(content, str):
        raise SessionDataError(f"{path}.content", f"must be a text, not {_kind(content)}.")
    _check_timestamp(f"{path}.timestamp", line.get("timestamp"))
    return Line(role, content)


def _object(path: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise SessionDataError(path, f"must be an object, not {_kind(value)}.")
    return value


def _check_timestamp(path: str, timestamp: object) -> None:
    """Validate a timestamp. No rule uses it, but an invalid one reveals wrong data."""
    if timestamp is None or isinstance(timestamp, datetime):
        return
    if not isinstance(timestamp, str):
        raise SessionDataError(path, f"must be a text, not {_kind(timestamp)}.")
    found = _TIMESTAMP.fullmatch(timestamp)
    try:
        if found is None:
            raise ValueError
        datetime.fromisoformat(f"{found[1]}T{found[2] or '00:00'}")
    except ValueError:
        raise SessionDataError(
            path, "must be a time in ISO 8601, such as 2025-01-15T10:30:00Z."
        ) from None


def _kind(value: object) -> str:
    return "missing" if value is None else f"of type {type(value).__name__}"


# The input of the rules.

URL = r"(?:https?://|www\.)\S+"


@dataclass(frozen=True)
class Line:
    """A message: its role ("user", "assistant", …) and its text."""

    role: str
    content: str


def one_line(text: str) -> str:
    """Return the text with each run of white space replaced by one space."""
    return " ".join(text.split())
