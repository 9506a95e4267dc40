"""Record what a forgetting erases and rewrites, for staff to confirm."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import Enum

# Limit of examples shown of each kind; the rest is only counted.
MAX_SHOWN = 100
MAX_SHOWN_LENGTH = 600


class ChangeKind(Enum):
    """The change to a record. The value is also its position on the page."""

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
class Change:
    """One change: ``text`` is erased; ``left`` is the part that stays if it is rewritten."""

    key: str
    text: str
    left: str = ""


class PreviewRecorder:
    """Keep the first ``most`` changes of each kind and count them all; by default, none."""

    def __init__(self, most: int = 0) -> None:
        self.most = most
        self.changes: defaultdict[ChangeKind, list[Change]] = defaultdict(list)
        self.counts: Counter[ChangeKind] = Counter()

    def record(self, kind: ChangeKind, key: object, text: str = "", *, left: str = "") -> None:
        """Record one change; the same change is recorded once."""
        if not self.most or any(each.key == str(key) for each in self.changes[kind]):
            return
        self.counts[kind] += 1
        if len(self.changes[kind]) < self.most:
            self.changes[kind].append(Change(str(key), _shown(text), _shown(left)))

    def add_count(self, kind: ChangeKind, rows: int) -> None:
        """Count changes that aren't shown."""
        if self.most:
            self.counts[kind] += rows


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_LENGTH else text[: MAX_SHOWN_LENGTH - 1] + "…"
