"""Build the reader of promises from the settings."""

from __future__ import annotations

from django.conf import settings

from sessions_app.embedding.facade import embedder
from sessions_app.promises.store import PromiseReader


def build_promise_reader() -> PromiseReader:
    return PromiseReader(
        embedder=embedder(),
        memory_enabled=settings.ENABLE_MEMORY_SYSTEM,
        reads_history=settings.LEARN_FROM_HISTORY,
    )
