"""What a probe did, in counts and names, never content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Look:
    """``queries`` were asked and ``rows`` examined; ``names`` are the columns, indexes and
    statistics that were looked at."""

    queries: int = 0
    rows: int = 0
    names: set[str] = field(default_factory=set)


class ProbeRecord:
    """The looks of a probe, by what was looked through."""

    def __init__(self) -> None:
        self._looks: defaultdict[str, Look] = defaultdict(Look)

    def note(
        self, look: str, *, queries: int = 0, rows: int = 0, names: Iterable[str] = ()
    ) -> None:
        """Add to one look."""
        noted = self._looks[look]
        noted.queries += queries
        noted.rows += rows
        noted.names.update(names)

    def as_dict(self) -> dict[str, object]:
        """For the receipt."""
        return {
            name: {"queries": look.queries, "rows": look.rows, "looked_at": sorted(look.names)}
            for name, look in sorted(self._looks.items())
        }
