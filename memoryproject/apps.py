"""The project itself as an app: its checks and commands."""

import logging
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from memoryproject.foundation.process import logfile, tracing

logger = logging.getLogger(__name__)


def note_job(sender: object, task: dict[str, Any], **_: object) -> None:
    """Add the id of the job to the log's lines of this worker, until its next job."""
    logfile.log_context_set(job=task["id"])


def disable_jit(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Let PostgreSQL interpret statements: compiling one takes many times as long as running it.

    It compiles what it expects to read many rows, and of its generic plans it expects far too many.
    """
    connection.connection.execute("SET jit = off")


def trace(endpoint: str) -> None:
    """Send traces to the collector. Where the packages for that are missing, a check says so."""
    try:
        from memoryproject.foundation.process.otel_tracer import OtelTracer  # noqa: PLC0415 optional
    except ImportError:
        return
    from memoryproject.foundation.process.traced_work import trace_work  # noqa: PLC0415 needs the apps

    tracing.use_tracer(OtelTracer(endpoint=endpoint, service_name=settings.OTEL_SERVICE_NAME))
    trace_work()


class MemoryProjectConfig(AppConfig):
    name = "memoryproject"

    def ready(self) -> None:
        from django_q.signals import pre_execute  # noqa: PLC0415 needs the apps

        from memoryproject import checks  # noqa: F401, PLC0415 registers the checks
        from sessions_app.stored_settings import stored_settings_look  # noqa: PLC0415 needs the apps

        def look(**_: object) -> None:
            """Do each job with the settings of now."""
            stored_settings_look(at_once=True)

        pre_execute.connect(look, weak=False)
        pre_execute.connect(note_job)
        connection_created.connect(disable_jit)
        if settings.TRACES_ENDPOINT:
            trace(settings.TRACES_ENDPOINT)
        for note in settings.CONFIG_NOTES:
            logger.log(logging.getLevelName(note.level), "%s", note.text)
