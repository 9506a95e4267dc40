"""Record what a probe did, as counts and names, never content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Look:
    """One step of a probe.

    ``queries`` is the number of queries made and ``rows`` the number of rows examined. ``names``
    are the columns, indexes and statistics that were checked.
    """

    queries: int = 0
    rows: int = 0
    names: set[str] = field(default_factory=set)


class ProbeRecord:
    """The steps of a probe, by what they searched."""

    def __init__(self) -> None:
        self._looks: defaultdict[str, Look] = defaultdict(Look)

    def note(
        self, look: str, *, queries: int = 0, rows: int = 0, names: Iterable[str] = ()
    ) -> None:
        """Add to one step."""
        noted = self._looks[look]
        noted.queries += queries
        noted.rows += rows
        noted.names.update(names)

    def as_dict(self) -> dict[str, object]:
        """Return the record in the form that the receipt stores."""
        return {
            name: {"queries": look.queries, "rows": look.rows, "looked_at": sorted(look.names)}
            for name, look in sorted(self._looks.items())
        }
