"""The kinds of leased work that one sweep takes up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings

from memories_app.services.document_sweep import documents_abandoned, leftovers_remove
from memoryproject.hooks.waking import endpoint_wake, endpoints_abandoned
from memoryproject.lib.leases import LeasedKind
from sessions_app import wiring
from sessions_app.services.extraction.work import extractions_abandoned
from sessions_app.services.forget.runs import drafts_drop, runs_abandoned
from sessions_app.services.leases import sendings_settle, turns_abandoned
from sessions_app.services.pauses import pauses_end
from sessions_app.services.summaries.leases import summaries_abandoned


def leased_kinds() -> Iterator[LeasedKind]:
    """Return the kinds of work that the settings ask for."""
    yield LeasedKind("turns", turns_abandoned, wiring.enqueue_chat, _turns_settle)
    if settings.CHAT_MEMORY_STRATEGY != "none":
        yield LeasedKind("summaries", summaries_abandoned, wiring.enqueue_summary)
    if wiring.learns():
        yield LeasedKind("extractions", extractions_abandoned, wiring.enqueue_learning)
    yield LeasedKind("documents", documents_abandoned, wiring.enqueue_document, _files_remove)
    yield LeasedKind("forgettings", runs_abandoned, wiring.enqueue_forgetting, drafts_drop)
    yield LeasedKind("webhooks", endpoints_abandoned, endpoint_wake)


def unconfirmed_after() -> timedelta:
    """Return how long a send may wait for its confirmation."""
    return timedelta(minutes=settings.UNCONFIRMED_AFTER_MINUTES)


def _turns_settle(now: datetime) -> None:
    pauses_end(now=now)
    sendings_settle(now=now, unconfirmed_after=unconfirmed_after())


def _files_remove(_: datetime) -> None:
    leftovers_remove(wiring.documents_folder())
