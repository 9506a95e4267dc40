"""A tracer that keeps its spans, for tests within one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memoryproject.foundation.process.tracing import Attributes, Kind, Span


@dataclass
class Recorded(Span):
    """A span, as the code around it left it. ``failed``: why."""

    name: str
    kind: Kind
    parent: Span | str | None
    attributes: dict[str, str | int | Sequence[str]]
    failed: list[str] = field(default_factory=list)
    ended: bool = False
    traceparent: str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    def note(self, attributes: Attributes) -> None:
        for name, value in attributes.items():
            self.attributes[name] = value

    def rename(self, name: str) -> None:
        self.name = name

    def fail(self, kind: str) -> None:
        self.failed.append(kind)

    def end(self) -> None:
        self.ended = True


class Recorder:
    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    def start(
        self,
        name: str,
        kind: Kind,
        parent: Span | str | None,
        attributes: Mapping[str, str | int | Sequence[str]],
    ) -> Recorded:
        self.spans.append(Recorded(name, kind, parent, dict(attributes)))
        return self.spans[-1]
