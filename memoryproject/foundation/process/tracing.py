"""Spans: the time that a request, a job or an answer takes, and the parts of it.

Nothing is traced until ``use_tracer`` was called. A span holds ids, numbers and words of the code,
and never what people write: its attributes are those of ``Attribute``, and of an error it holds the
class.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum, auto
from typing import Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from memoryproject.foundation.process.logfile import log_ids

# By the semantic conventions of OpenTelemetry. Those of the log's ids begin with "memory.".
Attribute: TypeAlias = Literal[
    "db.collection.name",
    "db.operation.name",
    "db.query.text",
    "db.system.name",
    "error.type",
    "gen_ai.memory.record.count",
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.finish_reasons",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "http.request.method",
    "http.response.status_code",
    "http.route",
    "memory.job.function",
    "server.address",
    "server.port",
]
Attributes: TypeAlias = Mapping[Attribute, str | int | Sequence[str]]
# The operations on memories that the conventions for generative AI name.
MemoryOperation: TypeAlias = Literal[
    "create_memory", "delete_memory", "search_memory", "update_memory"
]

METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
OTHER = "_OTHER"
# The name under which a job's package and a turn keep the span that they belong to.
TRACEPARENT = "traceparent"
SERVER_ERROR = 500
# gen_ai.provider.name of what this server does itself.
OURSELVES = "whatsapp-memory"
CLIENT_ERROR = 400


class Kind(Enum):
    """OpenTelemetry's kinds of spans. ``CLIENT``: of what another server does."""

    INTERNAL = auto()
    SERVER = auto()
    CONSUMER = auto()
    CLIENT = auto()


class Span:
    """A span that has begun. This one stands for it where nothing is traced."""

    @property
    def traceparent(self) -> str:
        """Its id in the form of W3C Trace Context, by which another process continues the trace."""
        return ""

    def note(self, attributes: Attributes) -> None: ...

    def rename(self, name: str) -> None: ...

    def fail(self, kind: str) -> None:
        """Mark it as failed. ``kind``: an exception's class or an HTTP status; the first counts."""

    def end(self) -> None: ...


class Tracer(Protocol):
    """Begins spans. ``parent``: a span of this process, the traceparent of another one, or None."""

    def start(
        self,
        name: str,
        kind: Kind,
        parent: Span | str | None,
        attributes: Mapping[str, str | int | Sequence[str]],
    ) -> Span: ...


NO_SPAN = Span()

_tracer: Tracer | None = None
# Not OpenTelemetry's own context: packages that know that one must not add spans of their own,
# which may hold content.
_current: ContextVar[Span | None] = ContextVar("span", default=None)


def use_tracer(tracer: Tracer | None) -> None:
    """Trace from now on, or, with None, no longer."""
    global _tracer
    _tracer = tracer


def current_span() -> Span | None:
    """Return the innermost span around the caller."""
    return _current.get()


@contextmanager
def span(
    name: str, kind: Kind = Kind.INTERNAL, *, parent: str = "", attributes: Attributes | None = None
) -> Iterator[Span]:
    """Trace the block as a part of the span around it, or else of ``parent``, a traceparent.

    The span has the ids of the log's lines. A call of another server is traced only as a part of
    something.
    """
    around = _current.get() or parent or None
    if _tracer is None or (around is None and kind is Kind.CLIENT):
        yield NO_SPAN
        return
    all_attributes: dict[str, str | int | Sequence[str]] = {}
    if kind is not Kind.CLIENT:
        all_attributes.update({f"memory.{key}": value for key, value in log_ids().items()})
    for key, value in (attributes or {}).items():
        all_attributes[key] = value
    started = _tracer.start(name, kind, around, all_attributes)
    token = _current.set(started)
    try:
        yield started
    except BaseException as error:
        started.fail(type(error).__name__)
        raise
    finally:
        _current.reset(token)
        started.end()


@contextmanager
def memory_span(operation: MemoryOperation) -> Iterator[Span]:
    """Trace an operation on memories; also as a decorator. See ``note_records``."""
    attributes: Attributes = {"gen_ai.operation.name": operation, "gen_ai.provider.name": OURSELVES}
    with span(operation, attributes=attributes) as traced:
        yield traced


def note_records(count: int) -> None:
    """Note how many memories the operation around the caller has found or changed."""
    if around := _current.get():
        around.note({"gen_ai.memory.record.count": count})


@contextmanager
def model_span(operation: Literal["chat", "embeddings"], model: str) -> Iterator[Span]:
    """Trace a call of a model with all its attempts. ``model``: as the settings name it."""
    attributes: Attributes = {
        "gen_ai.operation.name": operation,
        # This stands for the form of the API: any server may be behind it.
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": model,
    }
    with span(f"{operation} {model}", Kind.CLIENT, attributes=attributes) as traced:
        yield traced


@contextmanager
def call_span(method: str, url: str) -> Iterator[Span]:
    """Trace an HTTP call. Of the URL only host and port are kept: the rest may hold a token."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    attributes: dict[Attribute, str | int] = {"http.request.method": method}
    if host:
        attributes["server.address"] = host
    if port:
        attributes["server.port"] = port
    with span(method, Kind.CLIENT, attributes=attributes) as traced:
        yield traced


def note_status(traced: Span, status: int, *, failed_from: int = CLIENT_ERROR) -> None:
    """Note the status of an HTTP response."""
    traced.note({"http.response.status_code": status})
    if status >= failed_from:
        traced.fail(str(status))
