"""Forget a memory, a message, a session, a document or a whole chat.

Each is one transaction that removes the text everywhere it was derived, probes, and leaves a
receipt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.apps import apps
from django.db import transaction

from cards_app.models import MemoryCard
from cards_app.services.cards import cards_delete, chat_cards_delete
from memories_app.memory_documents.facade import document_lock
from memories_app.models import SourceDocument, Visibility
from memories_app.search.facade import scope_of
from memories_app.store.facade import tombstones_remove
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, person_detach
from memoryproject.foundation.outgoing_webhooks.deliveries import chat_deliveries_erase
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery
from sessions_app.cards.facade import cards_retract
from sessions_app.conversations.facade import (
    ChangeKind,
    Held,
    PreviewRecorder,
    Scopes,
    ScopesGrewError,
    addresses_lock,
    forgetting_begin,
)
from sessions_app.forgetting.delete_messages import messages_lock
from sessions_app.forgetting.deletion_plan import (
    DeletionPlan,
    NothingToForgetError,
    chat_plan,
    document_plan,
    memory_document_plan,
    memory_plan,
    message_plan,
    messages_plan,
    session_plan,
)
from sessions_app.forgetting.execute import (
    ForgetDependencies,
    backup_names,
    backups_remove,
    execute_plan,
    scopes_of,
)
from sessions_app.forgetting.probe import FOUND, Prober, build_prober
from sessions_app.forgetting.write_receipt import receipt_begin
from sessions_app.history.facade import session_empty
from sessions_app.media.dependencies import media_forget
from sessions_app.models import (
    Chat,
    ChatAddress,
    ChatSession,
    ForgetReceipt,
    ForgottenKind,
    InboundDelivery,
    Message,
    OutboundPart,
    SummarizationMetadata,
    TranscriptBatch,
    Turn,
    TurnReplay,
)
from sessions_app.models.receipts import MEDIA_FILES


@dataclass(frozen=True)
class StepInput:
    """The input of a step.

    ``swept`` counts the rows removed in addition to the sweep, ``left`` names what could not be.
    """

    object_id: UUID
    plan: DeletionPlan
    dependencies: ForgetDependencies
    swept: Counter[str] = field(default_factory=Counter)
    left: list[dict[str, str]] = field(default_factory=list)

    def remove_backups(self, names: Collection[str]) -> None:
        """Remove backups of transcripts with all their files."""
        self.swept.update(
            backups_remove(names=names, dependencies=self.dependencies, left=self.left)
        )


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
    before: Callable[[StepInput], None] = _do_nothing
    after: Callable[[StepInput, ForgetReceipt], None] = _do_nothing
    is_locked_late: bool = False


def object_forget(
    *,
    kind: str,
    object_id: UUID,
    dependencies: ForgetDependencies,
    actor: Actor = SYSTEM,
    prober: Prober | None = None,
    check: Callable[[], None] = _do_nothing,
    call_key: str = "",
) -> ForgetReceipt:
    """Forget the object of this kind with this id.

    ``check`` is called with the object locked, before it is deleted; its errors propagate.
    ``call_key``: see ForgetReceipt.

    Raises NothingToForgetError if the object doesn't exist (any more).
    """
    return object_forget_within(
        kind=kind,
        object_id=object_id,
        dependencies=dependencies,
        actor=actor,
        prober=prober,
        check_object=check,
        call_key=call_key,
    )


def object_forget_within(
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
    begin: Callable[[Scopes], Held] = forgetting_begin,
) -> ForgetReceipt:
    """Forget an object within the caller's transaction; see ``object_forget``.

    The caller holds no lock that a forgetting takes, and passes its own ``prober``.

    ``keep_turn`` is the turn that asks for the forgetting; it isn't cancelled. ``check`` is called
    under the locks that ``begin`` takes; its errors propagate. ``check_object`` is called later,
    with the object itself locked.
    """
    steps = _KIND_STEPS[kind]
    prober = prober or build_prober(kind=kind, object_id=object_id, embedder=dependencies.embedder)
    scopes = scopes_of(steps.plan(object_id), keep_turn=keep_turn)
    while True:
        try:
            with transaction.atomic():
                held = begin(scopes)
                check()
                steps.lock(object_id)
                step = StepInput(object_id, steps.plan(object_id), dependencies)
                held.require(scopes_of(step.plan, keep_turn=keep_turn))
                return _forget_locked(
                    kind=kind,
                    step=step,
                    held=held,
                    actor=actor,
                    prober=prober,
                    keep_turn=keep_turn,
                    check_object=check_object,
                    call_key=call_key,
                )
        except ScopesGrewError as grew:
            # This ends: each round adds scopes, and their number is finite.
            scopes = grew.scopes


def _forget_locked(
    *,
    kind: str,
    step: StepInput,
    held: Held,
    actor: Actor,
    prober: Prober,
    keep_turn: int | None,
    check_object: Callable[[], None],
    call_key: str,
) -> ForgetReceipt:
    """Execute the plan, with all scopes locked that it concerns."""
    steps = _KIND_STEPS[kind]
    if not steps.is_locked_late:
        check_object()
    head = receipt_begin(
        kind=kind,
        object_id=step.object_id,
        plan=step.plan,
        call_key=call_key,
        keep_turn=keep_turn,
    )
    _files_forget(kind, step, head.receipt_id, keep_turn)
    steps.before(step)
    receipt = execute_plan(
        head=head,
        plan=step.plan,
        prober=prober,
        dependencies=step.dependencies,
        held=held,
        actor=actor,
        keep_turn=keep_turn,
        check=check_object if steps.is_locked_late else None,
    )
    steps.after(step, receipt)
    return _complete(receipt, step)


def _files_forget(kind: str, step: StepInput, receipt_id: UUID, keep_turn: int | None) -> None:
    """Have the files of what goes removed with the commit, and count them."""
    messages = Message.objects.filter(pk__in=step.plan.messages).exclude(media={})
    if keep_turn is not None:
        messages = messages.exclude(turn__pk=keep_turn)
    keys = list(messages.values_list("pk", flat=True))
    chat_id = step.object_id if kind == str(ForgottenKind.CHAT) else None
    if keys or chat_id:
        files = media_forget(keys, receipt_id=receipt_id, chat_id=chat_id)
        step.swept[MEDIA_FILES] += files


def memories_forget(
    *, memory_ids: Iterable[UUID], dependencies: ForgetDependencies, actor: Actor = SYSTEM
) -> list[ForgetReceipt]:
    """Forget several memories, each with its receipt; skip those that went with another."""
    kind, receipts = str(ForgottenKind.MEMORY), []
    for key in memory_ids:
        try:
            receipts.append(
                object_forget(kind=kind, object_id=key, dependencies=dependencies, actor=actor)
            )
        except NothingToForgetError:
            continue
    return receipts


def _session_lock(session_id: UUID) -> None:
    list(ChatSession.objects.select_for_update().filter(pk=session_id))


def _message_lock(message_id: UUID) -> None:
    """Lock the session of the message: who edits a message holds it."""
    sessions = ChatSession.objects.filter(messages=message_id)
    list(sessions.select_for_update(no_key=True, of=("self",)))


def _document_lock(document_id: UUID) -> None:
    list(SourceDocument.objects.select_for_update().filter(pk=document_id))


def _chat_lock(chat_id: UUID) -> None:
    addresses = ChatAddress.objects.filter(chat=chat_id).values_list("address", flat=True)
    addresses_lock(list(addresses))
    list(Chat.objects.select_for_update().filter(pk=chat_id))


def _session_before(step: StepInput) -> None:
    step.swept.update(_turns_delete(Turn.objects.filter(session=step.object_id)))
    summaries = SummarizationMetadata.objects.filter(session=step.object_id)
    step.swept[SummarizationMetadata._meta.db_table] += summaries.count()


def _chat_before(step: StepInput) -> None:
    chat = Chat.objects.get(pk=step.object_id)
    batches = TranscriptBatch.objects.filter(chat=chat)
    step.plan.backups |= backup_names(batches)
    step.swept.update(_chat_delete(chat, step.dependencies.recorder))
    step.plan.chats.discard(step.object_id)
    step.plan.messages.clear()


def _session_after(step: StepInput, _receipt: ForgetReceipt) -> None:
    session = ChatSession.objects.get(pk=step.object_id)
    batches = TranscriptBatch.objects.filter(session=session)
    step.swept[TranscriptBatch._meta.db_table] += batches.count()
    backups = backup_names(batches)
    # A card requested again while its messages were deleted has no session any more.
    step.swept[MemoryCard._meta.db_table] += cards_delete(session_ids=[session.pk])
    cards_retract(chat_id=session.chat_id, session_ids=[session.pk])
    ChatSession.objects.filter(pk=session.pk).delete()
    step.swept[ChatSession._meta.db_table] += 1
    step.remove_backups(backups)


def _messages_after(step: StepInput, receipt: ForgetReceipt) -> None:
    session = ChatSession.objects.select_for_update(no_key=True).get(pk=step.object_id)
    backups = backup_names(TranscriptBatch.objects.filter(session=session))
    cards_retract(chat_id=session.chat_id, session_ids=[session.pk])
    session_empty(session=session, now=receipt.forgotten_at)
    step.remove_backups(backups)


def _chat_after(step: StepInput, _receipt: ForgetReceipt) -> None:
    """Remove the chat's traces; the audit log keeps the events without the person they concern."""
    chat_id = step.object_id
    tombstones_remove(scope=scope_of(str(Visibility.CHAT), chat_id))
    person_detach(chat_id=chat_id)
    step.swept[WebhookDelivery._meta.db_table] += chat_deliveries_erase(chat_id=chat_id)
    step.remove_backups(step.plan.backups)


_KIND_STEPS = {
    str(ForgottenKind.MEMORY): KindSteps(memory_plan, is_locked_late=True),
    str(ForgottenKind.MESSAGE): KindSteps(message_plan, lock=_message_lock),
    str(ForgottenKind.MEMORY_DOCUMENT): KindSteps(memory_document_plan, lock=document_lock),
    str(ForgottenKind.DOCUMENT): KindSteps(document_plan, lock=_document_lock),
    str(ForgottenKind.SESSION): KindSteps(
        session_plan, lock=_session_lock, before=_session_before, after=_session_after
    ),
    str(ForgottenKind.MESSAGES): KindSteps(
        messages_plan, lock=_session_lock, after=_messages_after
    ),
    str(ForgottenKind.CHAT): KindSteps(
        chat_plan, lock=_chat_lock, before=_chat_before, after=_chat_after
    ),
}


def _turns_delete(turns: Iterable[Turn]) -> dict[str, int]:
    """Delete turns with their parts and count them; their raw deliveries are emptied later."""
    ids = [turn.pk for turn in turns]
    counts = {OutboundPart._meta.db_table: OutboundPart.objects.filter(turn__in=ids).count()}
    counts[Turn._meta.db_table] = len(ids)
    Turn.objects.filter(pk__in=ids).delete()
    return counts


def _chat_delete(chat: Chat, recorder: PreviewRecorder) -> dict[str, int]:
    """Delete the chat with everything that depends on it, and count the rows."""
    messages = chat.messages.order_by("received_at", "order_num").values_list("pk", "content")
    for key, content in messages[: recorder.most]:
        recorder.record(ChangeKind.MESSAGE, key, content)
    cards = MemoryCard.objects.filter(chat_id=chat.pk).values_list("pk", "title")
    for key, title in cards[: recorder.most]:
        recorder.record(ChangeKind.CARD, key, title)
    for key, text in chat.notes.values_list("pk", "text")[: recorder.most]:
        recorder.record(ChangeKind.NOTE, key, text)
    raw = InboundDelivery.objects.filter(chat=chat)
    # The keys stay, so that a repeated delivery doesn't restore anything.
    emptied = raw.update(raw=None, change=None, outcome="forgotten", subject_id="")
    chat_id = chat.pk
    sessions = ChatSession.objects.select_for_update().filter(chat=chat_id)
    list(sessions.order_by("pk").values_list("pk", flat=True))
    messages_lock(chat.messages.all())
    _, deleted = chat.delete()
    counts = {apps.get_model(label)._meta.db_table: rows for label, rows in deleted.items()}
    # A turn and its replay count as one.
    counts.pop(TurnReplay._meta.db_table, None)
    counts[InboundDelivery._meta.db_table] = emptied
    # After its sessions: a worker that stores a card locks one of them.
    counts[MemoryCard._meta.db_table] = chat_cards_delete(chat_id=chat_id)
    recorder.add_count(
        ChangeKind.MESSAGE, max(0, counts.get(Message._meta.db_table, 0) - recorder.most)
    )
    return counts


def _complete(receipt: ForgetReceipt, step: StepInput) -> ForgetReceipt:
    """Add to the receipt what the steps removed after it was written, and what they could not."""
    swept = Counter(receipt.swept)
    swept.update(step.swept)
    receipt.swept = {table: rows for table, rows in sorted(swept.items()) if rows}
    if step.left:
        receipt.left, receipt.probe = [*receipt.left, *step.left], FOUND
    receipt.save(update_fields=["swept", "left", "probe"])
    return receipt
