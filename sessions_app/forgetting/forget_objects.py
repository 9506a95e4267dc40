"""Forget a memory, a message, a session, a document or a whole chat.

Each is one transaction that removes the text everywhere it was derived, probes, and leaves a
receipt.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from django.apps import apps
from django.db import transaction

from cards_app.models import MemoryCard
from cards_app.services import cards_delete, chat_cards_delete
from memories_app.memory_documents.document_rows import document_lock
from memories_app.models import Memory, SourceDocument, Visibility
from memories_app.store.retract import tombstones_remove
from memories_app.visibility import scope_of
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, person_detach
from memoryproject.foundation.outgoing_webhooks.deliveries import chat_deliveries_erase
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery
from sessions_app import models
from sessions_app.cards.card_recall import cards_retract
from sessions_app.conversations import chat_addresses, epochs
from sessions_app.conversations.preview_recorder import ChangeKind, PreviewRecorder
from sessions_app.forgetting import execute
from sessions_app.forgetting.deletion_plan import (
    DeletionPlan,
    NothingToForgetError,
    chat_plan,
    memory_document_plan,
    messages_plan,
    one_plan,
    session_plan,
)
from sessions_app.forgetting.probe import FOUND, Prober, build_prober
from sessions_app.forgetting.sweep import ForgetDependencies, Sweep
from sessions_app.forgetting.write_receipt import erasure_events, receipt_begin
from sessions_app.history.clear_session import session_empty
from sessions_app.media.dependencies import media_forget
from sessions_app.models.receipts import MEDIA_FILES

logger = logging.getLogger(__name__)


def _remove_backups(sweep: Sweep, names: Collection[str]) -> None:
    """Remove whole backups of transcripts with all their files, at the very end."""
    backups = sweep.dependencies.transcripts
    if backups is None or not names:
        return
    try:
        sweep.swept[execute.BACKUP_FILES] += backups.remove(names)
    except OSError as error:
        logger.error("Transcript backups were not removed: %s", error)
        sweep.left.extend({"what": execute.BACKUP, "id": name} for name in sorted(names))


def _do_nothing(*_: object) -> None:
    return None


@dataclass(frozen=True)
class KindSteps:
    """The steps that forget objects of one kind.

    ``plan`` only reads, and raises NothingToForgetError. ``lock`` locks the rows that must not
    change from then on. ``before`` removes what the sweep doesn't need to see, and ``after``
    removes the object itself. ``is_locked_late``: memories are locked after the messages that go
    with them.
    """

    plan: Callable[[UUID], DeletionPlan]
    lock: Callable[[UUID], object] = _do_nothing
    before: Callable[[Sweep], None] = _do_nothing
    after: Callable[[Sweep], None] = _do_nothing
    is_locked_late: bool = False

    def plan_all(self, object_id: UUID, together: Collection[UUID]) -> DeletionPlan:
        """Plan the object with the memories that go together with it."""
        plan = self.plan(object_id)
        plan.add_memories(together)
        return plan


def object_forget(
    *,
    kind: str,
    object_id: UUID,
    dependencies: ForgetDependencies,
    actor: Actor = SYSTEM,
    prober: Prober | None = None,
    keep_turn: int | None = None,
    check: Callable[[], None] = _do_nothing,
    check_object: Callable[[], None] = _do_nothing,
    call_key: str = "",
    together: Collection[UUID] = (),
    begin: Callable[[epochs.Scopes], epochs.Held] = epochs.forgetting_begin,
) -> models.ForgetReceipt:
    """Forget the object of this kind with this id.

    A caller that has a transaction open holds no lock that a forgetting takes.

    ``keep_turn`` is the turn that asks for the forgetting; it isn't cancelled. ``check`` is called
    under the locks that ``begin`` takes, ``check_object`` later, with the object itself locked;
    their errors propagate. ``call_key``: see ForgetReceipt. ``together``: memories that go with
    this one under the same receipt.

    Raises NothingToForgetError if the object doesn't exist (any more).
    """
    steps = _KIND_STEPS[kind]
    prober = prober or build_prober(kind, object_id, together)
    scopes = _first_scopes(kind, object_id, together, keep_turn)
    while True:
        try:
            with transaction.atomic():
                held = begin(scopes)
                check()
                steps.lock(object_id)
                plan = steps.plan_all(object_id, together)
                held.require(execute.scopes_of(plan, keep_turn=keep_turn))
                if not steps.is_locked_late:
                    check_object()
                receipt = receipt_begin(kind=kind, object_id=object_id, call_key=call_key)
                events = erasure_events(receipt, plan, keep_turn)
                late = check_object if steps.is_locked_late else None
                sweep = Sweep(receipt, events, plan, dependencies, held, actor, keep_turn, late)
                return _erase(sweep, steps, prober)
        except epochs.ScopesGrewError as grew:
            # This ends: each round adds scopes, and their number is finite.
            scopes = grew.scopes


def _first_scopes(
    kind: str, object_id: UUID, together: Collection[UUID], keep_turn: int | None
) -> epochs.Scopes:
    """Return the scopes to lock at first.

    A memory mostly concerns no other scopes than its own, which cost much less to read than a plan.
    """
    plan = DeletionPlan(memories={object_id, *together})
    if kind != _MEMORY:
        plan = _KIND_STEPS[kind].plan_all(object_id, together)
    return execute.scopes_of(plan, keep_turn=keep_turn)


def _erase(sweep: Sweep, steps: KindSteps, prober: Prober) -> models.ForgetReceipt:
    """Execute the plan with the steps of its kind, and complete the receipt by what they did."""
    receipt = sweep.receipt
    _files_forget(sweep)
    steps.before(sweep)
    execute.execute_plan(sweep, prober)
    steps.after(sweep)
    stored, receipt.swept = receipt.swept, sweep.counts()
    if sweep.left:
        receipt.left, receipt.probe = [*receipt.left, *sweep.left], FOUND
    if sweep.left or receipt.swept != stored:
        receipt.save(update_fields=["swept", "left", "probe"])
    return receipt


def _files_forget(sweep: Sweep) -> None:
    """Have the files of what goes removed with the commit, and count them."""
    receipt = sweep.receipt
    messages = models.Message.objects.filter(pk__in=sweep.plan.messages).exclude(media={})
    if sweep.keep_turn is not None:
        messages = messages.exclude(turn__pk=sweep.keep_turn)
    keys = list(messages.values_list("pk", flat=True))
    chat_id = receipt.object_id if receipt.kind == str(models.ForgottenKind.CHAT) else None
    if keys or chat_id:
        files = media_forget(keys, receipt_id=receipt.receipt_id, chat_id=chat_id)
        sweep.swept[MEDIA_FILES] += files


def memories_forget(
    *, memory_ids: Iterable[UUID], dependencies: ForgetDependencies, actor: Actor = SYSTEM
) -> list[models.ForgetReceipt]:
    """Forget several memories, each with its receipt; skip those that went with another."""
    kind, receipts = str(models.ForgottenKind.MEMORY), []
    for key in memory_ids:
        try:
            receipts.append(
                object_forget(kind=kind, object_id=key, dependencies=dependencies, actor=actor)
            )
        except NothingToForgetError:
            continue
    return receipts


def memories_forget_together(
    *, memories: Sequence[Memory], dependencies: ForgetDependencies, actor: Actor, call_key: str
) -> dict[UUID, models.ForgetReceipt]:
    """Forget many memories, those of one chat in one transaction with one receipt.

    What only the owner sees has a receipt of its own, which the chat's tokens don't see. Return the
    receipts by the ids of the memories, without those that were gone meanwhile. ``call_key``: see
    ForgetReceipt.
    """
    groups: defaultdict[tuple[UUID | None, bool], list[UUID]] = defaultdict(list)
    for memory in memories:
        groups[memory.chat_id, memory.visibility == str(Visibility.OWNER)].append(memory.pk)
    receipts: dict[UUID, models.ForgetReceipt] = {}
    for keys in groups.values():
        for place, key in enumerate(keys):
            try:
                receipt = object_forget(
                    kind=_MEMORY,
                    object_id=key,
                    together=keys[place + 1 :],
                    dependencies=dependencies,
                    actor=actor,
                    call_key=call_key,
                )
            except NothingToForgetError:
                continue
            receipts |= dict.fromkeys(keys[place:], receipt)
            break
    return receipts


def _session_lock(session_id: UUID) -> None:
    list(models.ChatSession.objects.select_for_update().filter(pk=session_id))


def _message_lock(message_id: UUID) -> None:
    """Lock the session of the message: who edits a message holds it."""
    sessions = models.ChatSession.objects.filter(messages=message_id)
    list(sessions.select_for_update(no_key=True, of=("self",)))


def _document_lock(document_id: UUID) -> None:
    list(SourceDocument.objects.select_for_update().filter(pk=document_id))


def _chat_lock(chat_id: UUID) -> None:
    addresses = models.ChatAddress.objects.filter(chat=chat_id).values_list("address", flat=True)
    chat_addresses.addresses_lock(list(addresses))
    list(models.Chat.objects.select_for_update().filter(pk=chat_id))


def _session_before(sweep: Sweep) -> None:
    sweep.swept.update(_turns_delete(models.Turn.objects.filter(session=sweep.receipt.object_id)))
    summaries = models.SummarizationMetadata.objects.filter(session=sweep.receipt.object_id)
    sweep.swept[models.SummarizationMetadata._meta.db_table] += summaries.count()


def _chat_before(sweep: Sweep) -> None:
    chat = models.Chat.objects.get(pk=sweep.receipt.object_id)
    batches = models.TranscriptBatch.objects.filter(chat=chat)
    sweep.plan.backups |= execute.backup_names(batches)
    sweep.swept.update(_chat_delete(chat, sweep.dependencies.recorder))
    sweep.plan.chats.discard(sweep.receipt.object_id)
    sweep.plan.messages.clear()


def _session_after(sweep: Sweep) -> None:
    session = models.ChatSession.objects.get(pk=sweep.receipt.object_id)
    batches = models.TranscriptBatch.objects.filter(session=session)
    sweep.swept[models.TranscriptBatch._meta.db_table] += batches.count()
    backups = execute.backup_names(batches)
    # A card requested again while its messages were deleted has no session any more.
    sweep.swept[MemoryCard._meta.db_table] += cards_delete(session_ids=[session.pk])
    cards_retract(chat_id=session.chat_id, session_ids=[session.pk])
    models.ChatSession.objects.filter(pk=session.pk).delete()
    sweep.swept[models.ChatSession._meta.db_table] += 1
    _remove_backups(sweep, backups)


def _messages_after(sweep: Sweep) -> None:
    session = models.ChatSession.objects.select_for_update(no_key=True).get(
        pk=sweep.receipt.object_id
    )
    backups = execute.backup_names(models.TranscriptBatch.objects.filter(session=session))
    cards_retract(chat_id=session.chat_id, session_ids=[session.pk])
    session_empty(session=session, now=sweep.receipt.forgotten_at)
    _remove_backups(sweep, backups)


def _chat_after(sweep: Sweep) -> None:
    """Remove the chat's traces; the audit log keeps the events without the person they concern."""
    chat_id = sweep.receipt.object_id
    tombstones_remove(scope=scope_of(str(Visibility.CHAT), chat_id))
    person_detach(chat_id=chat_id)
    sweep.swept[WebhookDelivery._meta.db_table] += chat_deliveries_erase(chat_id=chat_id)
    _remove_backups(sweep, sweep.plan.backups)


_MEMORY, _MESSAGE, _DOCUMENT = map(
    str, (models.ForgottenKind.MEMORY, models.ForgottenKind.MESSAGE, models.ForgottenKind.DOCUMENT)
)
_KIND_STEPS = {
    _MEMORY: KindSteps(one_plan(_MEMORY, DeletionPlan.add_memories), is_locked_late=True),
    _MESSAGE: KindSteps(one_plan(_MESSAGE, DeletionPlan.add_messages), lock=_message_lock),
    str(models.ForgottenKind.MEMORY_DOCUMENT): KindSteps(memory_document_plan, lock=document_lock),
    _DOCUMENT: KindSteps(one_plan(_DOCUMENT, DeletionPlan.add_documents), lock=_document_lock),
    str(models.ForgottenKind.SESSION): KindSteps(
        session_plan, lock=_session_lock, before=_session_before, after=_session_after
    ),
    str(models.ForgottenKind.MESSAGES): KindSteps(
        messages_plan, lock=_session_lock, after=_messages_after
    ),
    str(models.ForgottenKind.CHAT): KindSteps(
        chat_plan, lock=_chat_lock, before=_chat_before, after=_chat_after
    ),
}


def _turns_delete(turns: Iterable[models.Turn]) -> dict[str, int]:
    """Delete turns with their parts and count them; their raw deliveries are emptied later."""
    ids = [turn.pk for turn in turns]
    counts = {
        models.OutboundPart._meta.db_table: models.OutboundPart.objects.filter(turn__in=ids).count()
    }
    counts[models.Turn._meta.db_table] = len(ids)
    models.Turn.objects.filter(pk__in=ids).delete()
    return counts


def _own_labels(chat: models.Chat) -> list[int]:
    """Return the labels that no other chat has, and no rule: they tell of this one alone."""
    own = set(chat.chat_labels.values_list("label", flat=True))
    others = models.ChatLabel.objects.filter(label__in=own).exclude(chat=chat)
    ruled = chain.from_iterable(models.Rule.objects.values_list("label", "add_label"))
    return [*own.difference(others.values_list("label", flat=True).distinct(), ruled)]


def _chat_delete(chat: models.Chat, recorder: PreviewRecorder) -> dict[str, int]:
    """Delete the chat with everything that depends on it, and count the rows."""
    messages = chat.messages.order_by("received_at", "order_num").values_list("pk", "content")
    for key, content in messages[: recorder.most]:
        recorder.record(ChangeKind.MESSAGE, key, content)
    cards = MemoryCard.objects.filter(chat_id=chat.pk).values_list("pk", "title")
    for key, title in cards[: recorder.most]:
        recorder.record(ChangeKind.CARD, key, title)
    for key, text in chat.notes.values_list("pk", "text")[: recorder.most]:
        recorder.record(ChangeKind.NOTE, key, text)
    raw = models.InboundDelivery.objects.filter(chat=chat)
    # The keys stay, so that a repeated delivery doesn't restore anything.
    emptied = raw.update(raw=None, change=None, outcome="forgotten", subject_id="")
    chat_id = chat.pk
    sessions = models.ChatSession.objects.select_for_update().filter(chat=chat_id)
    list(sessions.order_by("pk").values_list("pk", flat=True))
    execute.messages_lock(chat.messages.all())
    labels = _own_labels(chat)
    _, deleted = chat.delete()
    deleted[models.Label._meta.label] = models.Label.objects.filter(pk__in=labels).delete()[0]
    counts = {apps.get_model(label)._meta.db_table: rows for label, rows in deleted.items()}
    # A turn and its replay count as one.
    counts.pop(models.TurnReplay._meta.db_table, None)
    counts[models.InboundDelivery._meta.db_table] = emptied
    # After its sessions: a worker that stores a card locks one of them.
    counts[MemoryCard._meta.db_table] = chat_cards_delete(chat_id=chat_id)
    recorder.add_count(
        ChangeKind.MESSAGE, max(0, counts.get(models.Message._meta.db_table, 0) - recorder.most)
    )
    return counts
