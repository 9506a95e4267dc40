"""The kinds of work that the common sweep retries."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from memories_app.documents.dependencies import documents_folder
from memories_app.documents.document_store import documents_abandoned, leftovers_remove
from memories_app.embedding_models.vectors import vectors_waiting
from memories_app.store.keyed import keyed_expire
from memoryproject.foundation.leases import LeasedKind
from memoryproject.foundation.outgoing_webhooks.deliveries import endpoint_wake, endpoints_abandoned
from sessions_app.broadcasts.send_broadcast import broadcast_step, broadcasts_due
from sessions_app.conversations.redact_derived import redactions_due
from sessions_app.conversations.session_lifecycle import enqueue_rules
from sessions_app.documents.upload import enqueue_document
from sessions_app.embedding.dependencies import enqueue_memory_vectors, enqueue_vectors
from sessions_app.embedding.facade import vectors_abandoned
from sessions_app.extraction.dependencies import enqueue_learning, is_learning_enabled
from sessions_app.extraction.facade import extractions_abandoned
from sessions_app.forgetting.dependencies import enqueue_forgetting
from sessions_app.forgetting.facade import drafts_drop, runs_abandoned
from sessions_app.inbound.dependencies import build_intake_rules, enqueue_redaction
from sessions_app.inbound.facade import deliveries_due, delivery_retry
from sessions_app.jobs.run_jobs import enqueue_job, jobs_abandoned, jobs_drop
from sessions_app.media.dependencies import enqueue_media, ordered_media_remove
from sessions_app.media.fetch import media_abandoned
from sessions_app.promises.dependencies import enqueue_promises
from sessions_app.promises.store import promises_waiting
from sessions_app.rules import chats_due, old_runs_drop
from sessions_app.summaries.dependencies import enqueue_again, enqueue_summary
from sessions_app.summaries.summary_store import excerpts_waiting, summaries_abandoned
from sessions_app.trials.dependencies import enqueue_trial
from sessions_app.trials.run_trial import trials_abandoned
from sessions_app.turns.facade import answer_soon

# A job makes new vectors by then, or begins to.
VECTORS_SOON = timedelta(seconds=15)


def leased_kinds() -> Iterator[LeasedKind]:
    """Return the kinds of work that the settings enable, besides summaries."""
    if is_learning_enabled():
        yield LeasedKind("extractions", extractions_abandoned, enqueue_learning)
    yield LeasedKind("promises", promises_waiting, enqueue_promises)
    yield LeasedKind("deliveries", deliveries_due, _delivery_retry)
    yield LeasedKind("redactions", redactions_due, enqueue_redaction)
    yield LeasedKind("vectors", vectors_abandoned, enqueue_vectors)
    yield LeasedKind(
        "memory vectors", _memories_waiting, lambda _: enqueue_memory_vectors(), keyed_expire
    )
    yield LeasedKind("documents", documents_abandoned, enqueue_document, _files_remove)
    yield LeasedKind("media", media_abandoned, enqueue_media, _media_remove)
    yield LeasedKind("forgettings", runs_abandoned, enqueue_forgetting, drafts_drop)
    yield LeasedKind("trials", trials_abandoned, enqueue_trial)
    yield LeasedKind("jobs", jobs_abandoned, enqueue_job, jobs_drop)
    yield LeasedKind("broadcasts", broadcasts_due, broadcast_step)
    yield LeasedKind("rules", chats_due, enqueue_rules, old_runs_drop)
    yield LeasedKind("webhooks", endpoints_abandoned, endpoint_wake)


def summaries_due() -> Iterator[LeasedKind]:
    """Return the kinds of summaries that the settings enable."""
    if settings.CHAT_MEMORY_STRATEGY != "none":
        yield LeasedKind("summaries", summaries_abandoned, enqueue_summary)
        if settings.DELETE_SUMMARIZED_MESSAGES:
            yield LeasedKind("excerpts", excerpts_waiting, enqueue_again)


def _memories_waiting(now: datetime) -> list[str]:
    """Return one key, whatever their number, if memories wait whose job ended or was lost."""
    return ["memories"] if vectors_waiting(now - VECTORS_SOON) else []


def unconfirmed_after() -> timedelta:
    """Return how long a send may wait for its confirmation."""
    return timedelta(minutes=settings.UNCONFIRMED_AFTER_MINUTES)


def _delivery_retry(delivery_id: int) -> bool:
    """Process it here and now: it takes no longer than to queue it."""
    return delivery_retry(
        delivery_id=delivery_id, rules=build_intake_rules(), enqueue=answer_soon, now=timezone.now()
    )


def _media_remove(_: datetime) -> None:
    ordered_media_remove()


def _files_remove(_: datetime) -> None:
    leftovers_remove(documents_folder())
