"""Execute a deletion plan in one transaction: delete, redact, tombstones, probe, receipt."""

import logging
from collections.abc import Collection, Sequence
from functools import partial
from uuid import UUID

from django.apps import apps
from django.db import transaction
from django.db.models import Q, QuerySet, Sum

from memories_app.documents.document_store import document_forget, file_remove
from memories_app.memory_documents.document_rows import document_erase
from memories_app.models import Memory, MemorySource, ProposalMemory, SourceDocument
from memories_app.store import retract
from memories_app.visibility import scope_of
from memoryproject.foundation.outgoing_webhooks.deliveries import hooks_gathered, hooks_raise
from memoryproject.foundation.retrieval.fragments import Fragments
from sessions_app import models
from sessions_app.conversations import epochs, session_lifecycle
from sessions_app.conversations.preview_recorder import ChangeKind, PreviewRecorder
from sessions_app.forgetting import deletion_plan, probe, redact_records, write_receipt
from sessions_app.forgetting.sweep import Lineage, Sweep
from sessions_app.models.turns import ANSWERABLE_STATES, TurnState, turns_move

logger = logging.getLogger(__name__)

# A receipt counts files under this name, next to the tables' rows.
BACKUP_FILES = "transcript backups"
# What a receipt calls a backup that could not be cleaned.
BACKUP = "transcript backup"


def execute_plan(sweep: Sweep, prober: probe.Prober) -> None:
    """Forget everything in the plan, and store the receipt.

    Call it in a transaction that began with ``forgetting_begin``. What the probe still finds is
    named in the receipt. Raises ScopesGrewError; then nothing is changed.
    """
    # Before the messages go, by which it knows what an answer was given.
    lineage = Lineage(sweep)
    _delete(sweep)
    _redact_and_probe(sweep, lineage, prober)
    # This is the last step that can fail: a rollback doesn't bring files back.
    _sweep_backups(sweep, prober.record)
    sweep.held.count()
    write_receipt.receipt_write(
        sweep.receipt,
        texts=list(sweep.plan.texts),
        swept=sweep.counts(),
        record=prober.record,
        actor=sweep.actor,
        now=sweep.now,
    )


def _delete(sweep: Sweep) -> None:
    """Delete the objects of the plan, and add tombstones for their facts."""
    plan, folder = sweep.plan, sweep.dependencies.documents
    _record_objects(plan, sweep.recorder)
    with hooks_gathered(receipt_id=sweep.receipt.receipt_id):
        hooks_raise(sweep.events)
        _delete_rows(sweep)
    if folder is not None:
        # The documents that wait to be read go once the forgetting is certain.
        for key in plan.documents:
            transaction.on_commit(partial(file_remove, folder, key))
    retract.tombstones_add(facts=plan.facts)


def _redact_and_probe(sweep: Sweep, lineage: Lineage, prober: probe.Prober) -> None:
    """Redact what derives from the texts, and look for it there."""
    redactions, quoting = redact_records.chats_redact(sweep, lineage)
    redact_records.own_command_redact(sweep)
    prober.probe_chats(sweep, redactions, quoting)
    prober.probe_memory_documents(sweep.plan.memory_documents)
    # This step comes after every session that is locked on the way.
    if sweep.emptied_chats:
        session_lifecycle.activity_recount(chat_ids=sweep.emptied_chats)
    epochs.unscoped_begin()
    read = redact_records.unscoped_redact(sweep)
    prober.probe_unscoped(sweep, read)


def _record_objects(plan: deletion_plan.DeletionPlan, recorder: PreviewRecorder) -> None:
    """Record memories and documents while they still exist."""
    if not recorder.most:
        return
    memories = Memory.objects.filter(pk__in=plan.memories).order_by("created_at", "memory_id")
    for key, content in memories.values_list("pk", "content")[: recorder.most]:
        recorder.record(ChangeKind.MEMORY, key, content)
    recorder.add_count(ChangeKind.MEMORY, max(0, len(plan.memories) - recorder.most))
    documents = SourceDocument.objects.filter(pk__in=plan.documents).order_by("created_at")
    for key, name in documents.values_list("pk", "name"):
        recorder.record(ChangeKind.DOCUMENT, key, name)


def _sweep_backups(sweep: Sweep, record: probe.ProbeRecord) -> None:
    transcripts = sweep.dependencies.transcripts
    if transcripts is None or not sweep.texts:
        return
    for chat_id in sweep.plan.chats:
        texts = Fragments(sweep.plan.texts_by_chat[chat_id])
        names = backup_names(models.TranscriptBatch.objects.filter(chat=chat_id))
        try:
            files = transcripts.sweep(names, holds=texts.are_in)
        except OSError as error:
            logger.error("Transcript backups were not swept: %s", error)
            for name in sorted(names):
                record.found(BACKUP, name)
            continue
        if files:
            sweep.swept[BACKUP_FILES] += files


def backup_names(batches: QuerySet[models.TranscriptBatch]) -> set[str]:
    """Return the names of the backups that hold these batches."""
    return set(batches.order_by().values_list("backup", flat=True).distinct())


def _delete_rows(sweep: Sweep) -> None:
    """Delete the rows themselves and everything that depends on them."""
    plan, actor, receipt_id = sweep.plan, sweep.actor, sweep.receipt.receipt_id
    messages = models.Message.objects.filter(pk__in=plan.messages)
    if sweep.keep_turn is not None:
        messages = messages.exclude(turn__pk=sweep.keep_turn)
    of_messages = models.MessageEmbedding.objects.filter(message__in=messages)
    sweep.count(models.MessageEmbedding, of_messages.count())
    messages_delete(sweep, messages)
    memories = retract.memories_lock(plan.memories)
    # An edit or a merge of chats, which takes none of our locks, may have moved them.
    scopes, _ = _memory_scopes(Q(pk__in=[memory.pk for memory in memories]))
    sweep.held.require(epochs.Scopes(frozenset(scopes)))
    if sweep.check is not None:
        sweep.check()
    details = {"receipt_id": str(receipt_id)}
    _count_deleted(sweep, retract.proposals_delete(plan.memories))
    for document in SourceDocument.objects.filter(pk__in=plan.documents):
        _count_deleted(sweep, document_forget(document=document, actor=actor, details=details))
    rest = [memory for memory in memories if memory.document_id not in plan.documents]
    _count_deleted(sweep, retract.memories_remove(rest, actor=actor, details=details))
    for key in plan.memory_documents:
        sweep.swept.update(document_erase(document_id=key, actor=actor, receipt_id=receipt_id))
    # Other sources state it too: the memory stays, but no longer points to the deleted source.
    sources = MemorySource.objects.filter(source_message_id__in=plan.messages)
    sweep.count(MemorySource, sources.count())
    sources.delete()
    Memory.objects.filter(source_message_id__in=plan.messages).update(source_message_id=None)


def scopes_of(plan: deletion_plan.DeletionPlan, *, keep_turn: int | None = None) -> epochs.Scopes:
    """Return the current scopes of a deletion plan. ``keep_turn`` is the turn that asks for it."""
    mentioned_there = Q(pk__in=plan.memories)
    if plan.messages:
        mentioned_there |= Q(tellings__source_message_id__in=plan.messages)
        mentioned_there |= Q(source_message_id__in=plan.messages)
    names, chats = _memory_scopes(mentioned_there)
    has_memories = bool(names or plan.documents)
    spoken = models.Message.objects.filter(pk__in=plan.messages).order_by()
    chats |= plan.chats | set(spoken.values_list("chat_id", flat=True).distinct())
    if keep_turn is not None:
        chats |= set(models.Turn.objects.filter(pk=keep_turn).values_list("chat_id", flat=True))
    names |= {epochs.chat_scope(chat_id) for chat_id in chats}
    documents = SourceDocument.objects.filter(pk__in=plan.documents)
    for visibility, chat_id in documents.values_list("visibility", "chat_id"):
        names.add(scope_of(visibility, chat_id))
    backups = backup_names(models.TranscriptBatch.objects.filter(chat__in=chats))
    return epochs.Scopes(frozenset(names), has_memories, frozenset(backups))


def _memory_scopes(which: Q) -> tuple[set[str], set[UUID]]:
    """Return the scopes in which these memories are visible now, or were before an edit.

    An answer that is being made now may have read them there. Return their chats, too.
    """
    found = Memory.objects.filter(which).order_by()
    scopes, chats = set(), set()
    for scope, chat_id, before in found.values_list(
        "scope", "chat_id", "revisions__visibility"
    ).distinct():
        scopes.add(scope)
        chats |= {chat_id} - {None}
        if before is not None:
            scopes.add(scope_of(before, chat_id))
    return scopes, chats


# Delete messages with what hangs on them: vectors, notes, quotations, summaries, waiting turns.


def messages_delete(sweep: Sweep, messages: QuerySet[models.Message]) -> None:
    """Delete messages with their vectors and raw deliveries.

    Summaries that cover them are retracted, and turns that wait to answer them are cancelled.
    """
    found = list(messages.order_by("session_id", "order_num").defer("terms"))
    ids = [message.pk for message in found]
    if not ids:
        return
    sweep.emptied_chats.update(message.chat_id for message in found)
    _delete_notes(sweep, ids)
    waiting = models.Turn.objects.filter(message__in=ids, state__in=ANSWERABLE_STATES)
    turns_move(
        waiting.exclude(pk=sweep.keep_turn),
        TurnState.CANCELLED,
        finished_at=sweep.now,
        lease_token=None,
    )
    sweep.empty_deliveries(models.InboundDelivery.objects.filter(message__in=ids))
    for message in found:
        sweep.recorder.record(ChangeKind.MESSAGE, message.pk, message.content)
        if message.provider_message_id:
            sweep.deleted_messages.add((message.provider, message.provider_message_id))
    _remove_quotes(sweep, found)
    first: dict[UUID, int] = {}
    for message in found:
        first.setdefault(message.session_id, message.order_num)
    sessions = models.ChatSession.objects.select_for_update(no_key=True).filter(pk__in=first)
    locked = list(sessions.order_by("pk"))
    messages_lock(models.Message.objects.filter(pk__in=ids))
    for session in locked:
        _delete_in_session(sweep, session, first[session.pk], ids)
    sweep.count(models.Message, len(ids))


def messages_lock(messages: QuerySet[models.Message]) -> None:
    """Lock messages, after their sessions, before their rows and those that hang on them go.

    A worker that is adding their vectors ends first, and no other one begins. It locks messages in
    the same order.
    """
    rows = messages.select_for_update().order_by("order_num", "pk")
    list(rows.values_list("pk", flat=True))


def _delete_notes(sweep: Sweep, message_ids: Sequence[UUID]) -> None:
    notes = models.Note.objects.filter(message__in=message_ids)
    for key, text in notes.values_list("pk", "text"):
        sweep.recorder.record(ChangeKind.NOTE, key, text)
    deleted, _ = notes.delete()
    sweep.count(models.Note, deleted)


def _delete_in_session(
    sweep: Sweep, session: models.ChatSession, first_order: int, message_ids: Sequence[UUID]
) -> None:
    """Delete those of the messages that are in this session; ``first_order`` is the first one's."""
    sweep.retract_summaries(session, first_order)
    sweep.delete_card(session)
    here = models.Message.objects.filter(pk__in=message_ids, session=session)
    in_window = here.filter(order_num__gte=session.window_start)
    session.total_tokens -= in_window.aggregate(all=Sum("tokens"))["all"] or 0
    session.save(update_fields=["total_tokens"])
    _count_deleted(sweep, here.delete()[1])
    sweep.chat_memory.manage_after_commit(session)


def _count_deleted(sweep: Sweep, rows: dict[str, int]) -> None:
    """Count the rows that were deleted by cascade and aren't counted elsewhere."""
    for label, count in rows.items():
        model = apps.get_model(label)
        if model not in (models.Message, models.MessageEmbedding, ProposalMemory):
            sweep.count(model, count)


def _remove_quotes(sweep: Sweep, deleted: Collection[models.Message]) -> None:
    """Remove quotations of the messages from the remaining ones, which keep their own words."""
    by_chat: dict[UUID, list[str]] = {}
    for message in deleted:
        if message.provider_message_id:
            by_chat.setdefault(message.chat_id, []).append(message.provider_message_id)
    ids = [message.pk for message in deleted]
    for chat_id, keys in by_chat.items():
        quoting = models.Message.objects.filter(
            chat_id=chat_id, metadata__has_key="quoted", metadata__reply_to_id__in=keys
        )
        for message in quoting.exclude(pk__in=ids).only("metadata"):
            sweep.remove_quote(message)
