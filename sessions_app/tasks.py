"""The workers' tasks. Each loads its objects and calls one service."""

import shutil
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from memories_app.documents.document_store import DocumentBusyError
from memories_app.documents.read_document import document_store
from memories_app.embedding_models.vectors import due_vectors_make
from memories_app.memory_documents.document_rows import documents_tend
from memories_app.models import SourceDocument
from memories_app.review.consolidate import memories_propose_merges
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.leases import leases_sweep
from memoryproject.foundation.outgoing_webhooks.deliveries import deliveries_drop, events_drop
from memoryproject.foundation.outgoing_webhooks.sending import endpoint_send
from sessions_app.cards.dependencies import card_maker, enqueue_cards
from sessions_app.cards.make_cards import cards_make
from sessions_app.conversations.redact_derived import chat_redact
from sessions_app.conversations.session_lifecycle import cards_sweep
from sessions_app.embedding.dependencies import enqueue_vectors
from sessions_app.embedding.facade import embedder, embeddings_tend, session_embed
from sessions_app.extraction.dependencies import build_extractor
from sessions_app.extraction.facade import chat_learn
from sessions_app.forgetting.dependencies import build_forget_dependencies, enqueue_forgetting
from sessions_app.forgetting.facade import run_work
from sessions_app.history.clear_session import sessions_archive, sessions_expire
from sessions_app.history.dependencies import (
    build_chat_memory,
    build_transcript_backups,
    transcript_retention,
)
from sessions_app.hours_answers import hours_remember
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.facade import raw_deliveries_drop
from sessions_app.jobs.run_jobs import job_run
from sessions_app.limits.answer_limits import usage_drop
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.media.dependencies import (
    build_media_dependencies,
    old_media_drop,
    ordered_media_remove,
)
from sessions_app.media.fetch import media_fetch
from sessions_app.outcomes.judge import sessions_judge
from sessions_app.partitions import partitions_tend
from sessions_app.promises.dependencies import build_promise_reader
from sessions_app.promises.store import promises_read
from sessions_app.rules import Outlet, rules_run
from sessions_app.surveys import surveys_ask
from sessions_app.sweeps import leased_kinds, summaries_due, unconfirmed_after
from sessions_app.takeover.facade import Writer
from sessions_app.takeover.presentation import default_number
from sessions_app.trials.dependencies import trial_model
from sessions_app.trials.run_trial import trial_run
from sessions_app.turns.dependencies import (
    build_file_dependencies,
    build_turn_dependencies,
    max_answer_age,
)
from sessions_app.turns.facade import (
    answer_soon,
    pauses_end,
    questions_resume,
    sends_resume,
    turns_sweep,
)
from sessions_app.turns.question_set import questions_check_store
from sessions_app.webhook_endpoints.dependencies import build_webhook_dependencies


def run_trial(trial_id: str) -> str:
    """Make an answer again for staff; return the trial's state."""
    return trial_run(
        trial_id=UUID(trial_id), dependencies=build_turn_dependencies(), model_named=trial_model
    )


def check_questions() -> dict[str, int]:
    """Check the question set; return how many questions passed and failed."""
    return questions_check_store(dependencies=build_turn_dependencies(), now=timezone.now())


def run_job(job_id: str) -> str:
    """Do a job that a program asked for, or go on with it; return its state."""
    return job_run(UUID(job_id))


def run_rules(chat_id: str) -> int:
    """Let staff's rules act on what happened in a chat; return how often they did."""
    return rules_run(chat_id=UUID(chat_id), outlet=_outlet())


def _outlet() -> Outlet:
    writer = Writer(None, SYSTEM, build_intake_rules(), answer_soon, timezone.now())
    return Outlet(writer, configured_providers(), default_number())


def tell_hours() -> int:
    """Store the opening hours as memories; return how many there are."""
    return hours_remember(embedder=embedder())


def sweep_work() -> dict[str, int]:
    """Queue the work that dead workers left or that is due again; return a count by kind."""
    return leases_sweep(list(leased_kinds()))


def summarize_sessions() -> dict[str, int]:
    """Queue the summaries that are due and that no worker makes; return a count by kind."""
    return leases_sweep(list(summaries_due()))


def sweep_turns() -> dict[str, int]:
    """Release the turns that dead workers left, resume the assistant where a pause is over, and go
    on with the questions and answers that an outage has kept.
    """
    now = timezone.now()
    pauses_end(now=now, enqueue=answer_soon, max_age=max_answer_age())
    questions_resume(enqueue=answer_soon, max_age=max_answer_age(), now=now)
    sends_resume(enqueue=answer_soon, now=now)
    return turns_sweep(unconfirmed_after=unconfirmed_after(), now=now)


def summarize_session(session_id: str) -> int:
    """Make the due summaries of a session."""
    return build_chat_memory().manage(conversation_id=UUID(session_id))


def learn_from_chat(chat_id: str) -> int:
    """Extract memories from the chat's due turns."""
    extractor = build_extractor()
    return 0 if extractor is None else chat_learn(chat_id=UUID(chat_id), extractor=extractor)


def read_promises(session_id: str) -> int:
    """Read the promises in the session's new messages; return how many there are."""
    return promises_read(session_id=UUID(session_id), reader=build_promise_reader())


def make_cards(session_ids: list[str]) -> int:
    """Make the cards of these sessions."""
    return cards_make(session_ids=[UUID(key) for key in session_ids], make=card_maker())


def sweep_cards() -> int:
    """Make the cards that are due and that no worker made."""
    return cards_sweep(enqueue=enqueue_cards)


def judge_sessions() -> int:
    """Ask whether sessions helped, where people are asked, and judge those that ended."""
    now = timezone.now()
    if settings.SURVEY_DAYS:
        every = timedelta(days=settings.SURVEY_DAYS)
        surveys_ask(every=every, outlet=_outlet(), embedder=embedder())
    return sessions_judge(embedder=embedder(), now=now)


def redact_chat(chat_id: str) -> int:
    """Redact deleted texts in what was derived from them; return the number of changes."""
    return chat_redact(chat_id=UUID(chat_id))


def run_forgetting(run_id: str) -> int:
    """Forget what staff selected and confirmed."""
    return run_work(
        run_id=UUID(run_id), dependencies=build_forget_dependencies(), enqueue=enqueue_forgetting
    )


def expire_sessions() -> int:
    """Expire the sessions that have been idle for too long."""
    timeout = timedelta(hours=settings.SESSION_TIMEOUT_HOURS)
    return sessions_expire(now=timezone.now(), timeout=timeout)


def archive_sessions() -> int:
    """Archive the sessions that expired long ago."""
    retention = timedelta(days=settings.EXPIRED_RETENTION_DAYS)
    return sessions_archive(now=timezone.now(), older_than=retention)


def embed_session(session_id: str, before: int | None = None) -> int:
    """Make the vectors that a session's messages lack, a batch at a time.

    An EmbedderError shows as a failed task; until a retry succeeds, lexical search finds the
    messages.
    """
    return session_embed(
        session_id=UUID(session_id), embedder=embedder(), go_on=enqueue_vectors, before=before
    )


def embed_memories() -> int:
    """Make vectors that memories wait for; see ``embed_session`` for errors."""
    return due_vectors_make(embedder=embedder())


def propose_merges() -> int:
    """Propose to merge memories that state much the same."""
    return memories_propose_merges(model_id=embedder().model_id)


def read_document(document_id: str) -> str:
    """Read an uploaded document; return its state.

    A document that another worker is reading, or that was forgotten, is not changed.
    """
    files = build_file_dependencies()
    try:
        return document_store(
            document_id=UUID(document_id),
            folder=files.folder,
            extractor=files.extractor,
            embedder=embedder(),
        ).state
    except (DocumentBusyError, SourceDocument.DoesNotExist) as error:
        return str(error)


def fetch_media(media_id: str) -> str:
    """Fetch the file of a message; return its state."""
    return media_fetch(media_id=UUID(media_id), dependencies=build_media_dependencies())


def remove_media() -> int:
    """Remove the files of messages that are gone; return how many."""
    return ordered_media_remove()


def drop_old_media() -> int:
    """Remove the files of messages whose retention has ended."""
    return old_media_drop(timezone.now())


def tend_embeddings() -> dict[str, int]:
    """Create the active model's missing index, and delete the vectors of retired models."""
    return embeddings_tend(embedder=embedder(), now=timezone.now())


def tend_memory_documents() -> dict[str, int]:
    """Remove old context documents, and archive completed handoffs."""
    days = settings.MEMORY_DOCUMENTS_CONTEXT_DAYS
    return documents_tend(
        now=timezone.now(), context_older_than=timedelta(days=days) if days else None
    )


def drop_raw_deliveries() -> int:
    """Empty raw bodies whose retention has ended."""
    return raw_deliveries_drop(
        now=timezone.now(), older_than=timedelta(days=settings.RAW_RETENTION_DAYS)
    )


def tend_partitions() -> int:
    """Make the partitions of the next months, and drop those past their retention."""
    replays = settings.REPLAY_RETENTION_DAYS
    changed = partitions_tend(
        now=timezone.now(),
        deliveries_kept=timedelta(days=settings.RAW_RETENTION_DAYS),
        replays_kept=timedelta(days=replays) if replays else None,
    )
    return len(changed)


def drop_transcript_backups() -> int:
    """Remove backups of transcripts whose retention has ended.

    Also remove texts that a killed save of an earlier version left: it wrote them to the disk.
    """
    shutil.rmtree(settings.DATA_DIR / "transcript-texts", ignore_errors=True)
    before = timezone.now() - transcript_retention()
    return build_transcript_backups().prune(before=before)


def drop_old_usage() -> int:
    """Remove the usage of chats on days that are long past."""
    return usage_drop(today=build_usage_limits().day_of(timezone.now()))


def send_webhooks(endpoint_id: int) -> int:
    """Send the due deliveries of an endpoint."""
    return endpoint_send(endpoint_id=endpoint_id, dependencies=build_webhook_dependencies())


def drop_webhook_deliveries() -> int:
    """Remove deliveries, and events of the log, whose retention has ended."""
    now = timezone.now()
    events_drop(now=now, older_than=timedelta(days=settings.EVENT_LOG_DAYS))
    return deliveries_drop(now=now, older_than=timedelta(days=settings.WEBHOOKS_LOG_DAYS))
