"""Notes what a forgetting takes away and rewrites, for staff who are asked to confirm it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import Enum

# So many of each kind are shown; of more there is a number.
MAX_SHOWN = 100
MAX_SHOWN_LENGTH = 600


class What(Enum):
    """What became of something. The value is its place on the page, too."""

    MEMORY = "memories"
    DOCUMENT = "documents"
    MESSAGE = "messages"
    ANSWER = "answers"
    COMMAND = "commands"
    QUOTE = "quotes"
    SUMMARY = "summaries"
    CARD = "cards"
    NOTE = "notes"
    REPLAY = "replays"
    PART = "parts"
    DELIVERY = "deliveries"


@dataclass(frozen=True)
class Seen:
    """``text`` goes; ``left`` is what stays of it where it is rewritten."""

    key: str
    text: str
    left: str = ""


class PreviewRecorder:
    """Keeps the first ``most`` of each kind and counts them all; by default none and nothing."""

    def __init__(self, most: int = 0) -> None:
        self.most = most
        self.seen: defaultdict[What, list[Seen]] = defaultdict(list)
        self.counts: Counter[What] = Counter()

    def saw(self, what: What, key: object, text: str = "", *, left: str = "") -> None:
        """Note one; the same one is noted once."""
        if not self.most or any(each.key == str(key) for each in self.seen[what]):
            return
        self.counts[what] += 1
        if len(self.seen[what]) < self.most:
            self.seen[what].append(Seen(str(key), _shown(text), _shown(left)))

    def saw_more(self, what: What, rows: int) -> None:
        """Count some that aren't shown."""
        if self.most:
            self.counts[what] += rows


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_LENGTH else text[: MAX_SHOWN_LENGTH - 1] + "…"
