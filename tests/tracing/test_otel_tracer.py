"""What the tracer logs, and which traces it continues."""

from __future__ import annotations

import logging

import pytest

from memoryproject.foundation.process.tracing import Kind
from tests.tracing.needed import need_tracing_packages

need_tracing_packages()

from memoryproject.foundation.process.otel_tracer import OtelTracer, RareLinesWithoutAddress  # noqa: E402 needs the packages
from tests.processes.waiting import wait_until  # noqa: E402
from tests.tracing.collector import Collector  # noqa: E402 needs the packages

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


def test_of_an_error_its_class_is_logged_and_further_lines_are_held_back() -> None:
    error = ConnectionError("http://127.0.0.1/token-in-the-path")
    record = logging.makeLogRecord({"msg": "failed: %s %d", "args": (error, 7)})
    rare = RareLinesWithoutAddress()

    assert rare.filter(record)
    assert record.getMessage() == "failed: ConnectionError 7"
    assert not rare.filter(logging.makeLogRecord({"msg": "failed again"}))


@pytest.mark.parametrize(
    ("parent", "trace", "parent_id"),
    [
        (f"00-{TRACE}-{PARENT}-01", TRACE, PARENT),
        # What nobody can read begins a trace of its own.
        ("00-broken", None, ""),
        ("", None, ""),
    ],
)
def test_a_trace_is_continued_by_its_traceparent(
    monkeypatch: pytest.MonkeyPatch, parent: str, trace: str | None, parent_id: str
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    with Collector() as collector:
        tracer = OtelTracer(endpoint=collector.url, service_name="tests")
        outer = tracer.start("outer", Kind.CONSUMER, parent or None, {"memory.job": "j1"})
        inner = tracer.start("inner", Kind.INTERNAL, outer, {})
        inner.end()
        outer.end()
        wait_until(lambda: len(collector.spans()) == 2, "both spans")

        (first,), (second,) = collector.spans("outer", job="j1"), collector.spans("inner")
        assert first.parent == parent_id
        assert second.parent == first.id
        assert second.trace == first.trace
        assert trace in (None, first.trace)
        assert outer.traceparent.startswith(f"00-{first.trace}-{first.id}-0")


def test_a_trace_that_is_not_sampled_stays_so_in_the_next_process() -> None:
    tracer = OtelTracer(endpoint="http://127.0.0.1:9", service_name="tests")
    span = tracer.start("outer", Kind.CONSUMER, f"00-{TRACE}-{PARENT}-00", {})
    span.note({"http.route": "/"})
    span.rename("other")
    span.fail("ValueError")
    span.end()

    assert span.traceparent.startswith(f"00-{TRACE}-")
    assert span.traceparent.endswith("-00")
