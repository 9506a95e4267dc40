"""Traces by OpenTelemetry, sent by OTLP over HTTP. Needs the packages of requirements-tracing.txt.

The tracer is not the global one of OpenTelemetry: other packages would add spans to that which hold
names and error messages.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.util import Finalize

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    Span as OtelSpan,
    SpanKind,
    StatusCode,
    Tracer as SdkTracer,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from memoryproject.foundation.process.tracing import TRACEPARENT, Attributes, Kind, Span

SCOPE = "memoryproject"
# How long the end of a process waits for the collector.
LAST_EXPORT_MILLISECONDS = 2_000
QUIET_SECONDS = 60.0

_propagator = TraceContextTextMapPropagator()


class StartedSpan(Span):
    """A span of OpenTelemetry's SDK."""

    def __init__(self, span: OtelSpan) -> None:
        self._span = span
        self._has_failed = False
        self.context = set_span_in_context(span, Context())

    @property
    def traceparent(self) -> str:
        carrier: dict[str, str] = {}
        _propagator.inject(carrier, self.context)
        return carrier.get(TRACEPARENT, "")

    def note(self, attributes: Attributes) -> None:
        for name, value in attributes.items():
            self._span.set_attribute(name, value)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, kind: str) -> None:
        """See Span.fail. The status has no text, and there is no event: both would quote."""
        if self._has_failed:
            return
        self._has_failed = True
        self._span.set_attribute("error.type", kind)
        self._span.set_status(StatusCode.ERROR)

    def end(self) -> None:
        self._span.end()


class OtelTracer:
    """Sends spans to ``endpoint``, the base address of an OTLP collector.

    The SDK reads OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER and its other variables itself.
    Its thread starts with a process's first span: gunicorn and the workers are forked before that.
    """

    def __init__(self, *, endpoint: str, service_name: str) -> None:
        self._endpoint = f"{endpoint}/v1/traces"
        self._service_name = service_name
        self._starting = threading.Lock()
        self._tracer: SdkTracer | None = None

    def start(
        self,
        name: str,
        kind: Kind,
        parent: Span | str | None,
        attributes: Mapping[str, str | int | Sequence[str]],
    ) -> StartedSpan:
        """See Tracer.start."""
        span = self._sdk_tracer().start_span(
            name, context=_context_of(parent), kind=SpanKind[kind.name], attributes=attributes
        )
        return StartedSpan(span)

    def _sdk_tracer(self) -> SdkTracer:
        with self._starting:
            if self._tracer is None:
                self._tracer = self._connect()
            return self._tracer

    def _connect(self) -> SdkTracer:
        logging.getLogger(trace_exporter.__name__).addFilter(RareLinesWithoutAddress())
        provider = TracerProvider(
            resource=Resource.create({SERVICE_NAME: self._service_name}), shutdown_on_exit=False
        )
        exporter = trace_exporter.OTLPSpanExporter(endpoint=self._endpoint)
        provider.add_span_processor(BriefSpanProcessor(exporter))
        # Unlike atexit, this also runs at the end of a multiprocessing child.
        Finalize(None, provider.shutdown, exitpriority=0)
        return provider.get_tracer(SCOPE)


class BriefSpanProcessor(BatchSpanProcessor):
    """Sends spans in the background, and gives up soon when the process ends."""

    def shutdown(self) -> None:
        """Send the rest. The SDK's own method would wait half a minute for a dead collector."""
        self._batch_processor.shutdown(timeout_millis=LAST_EXPORT_MILLISECONDS)


class RareLinesWithoutAddress(logging.Filter):
    """Lets one line a minute pass that says why spans could not be sent.

    An error's text may hold the collector's address, and that a token; its class is shown instead.
    """

    def __init__(self) -> None:
        super().__init__()
        self._quiet_until = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now < self._quiet_until:
            return False
        self._quiet_until = now + QUIET_SECONDS
        if isinstance(record.args, tuple):
            record.args = tuple(
                type(value).__name__ if isinstance(value, BaseException) else value
                for value in record.args
            )
        return True


def _context_of(parent: Span | str | None) -> Context:
    """Return the context of a new span. Without a parent it is empty: the span begins a trace."""
    if isinstance(parent, StartedSpan):
        return parent.context
    if isinstance(parent, str):
        return _propagator.extract({TRACEPARENT: parent}, Context())
    return Context()
