"""A collector of traces on this machine: OTLP over HTTP, as its specification describes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from tests.loopback.httpd import FaultyServer

Value = str | int


@dataclass(frozen=True)
class Received:
    """One span. ``process``: which process sent it, and under which name (its resource)."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Value]
    process: dict[str, Value] = field(repr=False)
    has_failed: bool
    # What may hold a text, and must hold none.
    free_texts: tuple[str, ...]


class Collector(FaultyServer):
    """Takes every batch of spans."""

    def handle(self, request: Request) -> Answer:
        if not request.path.endswith("/v1/traces") or request.method != "POST":
            return Answer(404, {})
        answer = ExportTraceServiceResponse().SerializeToString()
        headers = {"Content-Type": "application/x-protobuf", "Content-Length": str(len(answer))}
        return Answer(200, {}, headers, content=answer)

    @property
    def bodies(self) -> bytes:
        """All that arrived, as it was sent."""
        return b"\n".join(request.raw for request in list(self.requests))

    def spans(self, name: str = "", **attributes: Any) -> list[Received]:
        """The spans with this name and these attributes of ours, such as turn=…"""
        wanted = {f"memory.{key}": str(value) for key, value in attributes.items()}.items()
        return [
            span
            for span in self._all()
            if name in ("", span.name) and wanted <= span.attributes.items()
        ]

    def path_to(self, span: Received) -> list[Received]:
        """The span with the spans around it, the outermost first."""
        by_id = {each.id: each for each in self._all() if each.trace == span.trace}
        path = [span]
        while path[0].parent in by_id:
            path.insert(0, by_id[path[0].parent])
        return path

    def _all(self) -> Iterator[Received]:
        for request in list(self.requests):
            batch = ExportTraceServiceRequest.FromString(request.raw)
            for resource in batch.resource_spans:
                process = _attributes(resource.resource.attributes)
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        yield _received(span, process)


def _received(span: Span, process: dict[str, Value]) -> Received:
    return Received(
        name=span.name,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        attributes=_attributes(span.attributes),
        process=process,
        has_failed=span.status.code == Status.StatusCode.STATUS_CODE_ERROR,
        free_texts=(
            *filter(None, (span.status.message, span.trace_state)),
            *(str(event) for event in span.events),
            *(str(link) for link in span.links),
        ),
    )


def _attributes(pairs: Any) -> dict[str, Value]:
    found: dict[str, Value] = {}
    pair: KeyValue
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        assert kind in ("string_value", "int_value", "array_value"), pair
        if kind == "array_value":
            found[pair.key] = " ".join(each.string_value for each in pair.value.array_value.values)
        else:
            found[pair.key] = getattr(pair.value, str(kind))
    return found
