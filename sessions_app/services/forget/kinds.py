"""Forgets a memory, a message, a session, a document or a whole chat. Each is one transaction
that removes the text everywhere it was derived, probes, and leaves a receipt.

All of them raise NothingToForgetError where there is no such thing (any more), and
StillFoundError where the probe finds any of it: then nothing was changed. ``prober`` is given
by who calls them in a transaction of his own: see asking.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from django.apps import apps
from django.db import transaction

from cards_app.models import MemoryCard
from cards_app.services.cards import cards_delete, chat_cards_delete
from memories_app.models import Memory, SourceDocument, Visibility
from memories_app.services.locks import scope_of
from memories_app.services.tombstones import tombstones_remove
from memoryproject.audit.events import SYSTEM, Actor
from memoryproject.audit.pseudonyms import person_cut_loose
from memoryproject.hooks.deliveries import chat_deliveries_erase
from memoryproject.hooks.models import WebhookDelivery
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
from sessions_app.services.addresses import addresses_lock
from sessions_app.services.cards.recall import cards_take_back
from sessions_app.services.clear import session_empty
from sessions_app.services.forget.asking import prober_for
from sessions_app.services.forget.carry_out import (
    ForgetTools,
    backup_names,
    backups_remove,
    carry_out,
)
from sessions_app.services.forget.doomed import Doomed
from sessions_app.services.forget.guard import forgetting_begin
from sessions_app.services.forget.probe import Prober
from sessions_app.services.forget.sweep import BESIDE
from sessions_app.services.forget.witness import What, Witness

# A longer session's texts are looked for elsewhere only where they were recalled.
MOST_TEXTS = 2_000


class NothingToForgetError(Exception):
    """There is no such thing, or not any more."""


def memory_forget(
    *,
    memory_id: UUID,
    tools: ForgetTools,
    actor: Actor = SYSTEM,
    keep_turn: int | None = None,
    prober: Prober | None = None,
) -> ForgetReceipt:
    """A memory, what it had superseded, the messages that say nothing but it with their
    confirmations, and what answers and summaries told of it. ``keep_turn``: the turn that asks
    for it, which goes on."""
    prober = prober or _prober(str(ForgottenKind.MEMORY), memory_id, tools)
    with transaction.atomic():
        forgetting_begin()
        _there(Memory.objects.filter(pk=memory_id).exists(), "memory", memory_id)
        doomed = Doomed()
        doomed.add_memories([memory_id])
        return carry_out(
            kind=str(ForgottenKind.MEMORY),
            object_id=memory_id,
            doomed=doomed,
            prober=prober,
            tools=tools,
            actor=actor,
            keep_turn=keep_turn,
        )


def memories_forget(
    *, memory_ids: Iterable[UUID], tools: ForgetTools, actor: Actor = SYSTEM
) -> list[ForgetReceipt]:
    """Several memories, each with its receipt. One that went with another is left out."""
    receipts = []
    for memory_id in memory_ids:
        try:
            receipts.append(memory_forget(memory_id=memory_id, tools=tools, actor=actor))
        except NothingToForgetError:
            continue
    return receipts


def message_forget(
    *,
    message_id: UUID,
    tools: ForgetTools,
    actor: Actor = SYSTEM,
    prober: Prober | None = None,
) -> ForgetReceipt:
    """A message, what was learned from it alone, the documents that it brought, and what
    answers and summaries told of it."""
    prober = prober or _prober(str(ForgottenKind.MESSAGE), message_id, tools)
    with transaction.atomic():
        forgetting_begin()
        _there(Message.objects.filter(pk=message_id).exists(), "message", message_id)
        doomed = Doomed()
        doomed.add_messages([message_id])
        return carry_out(
            kind=str(ForgottenKind.MESSAGE),
            object_id=message_id,
            doomed=doomed,
            prober=prober,
            tools=tools,
            actor=actor,
        )


def document_forget_with_proof(
    *,
    document_id: UUID,
    tools: ForgetTools,
    actor: Actor = SYSTEM,
    prober: Prober | None = None,
) -> ForgetReceipt:
    """A document with its passages, and what answers and summaries told of them."""
    prober = prober or _prober(str(ForgottenKind.DOCUMENT), document_id, tools)
    with transaction.atomic():
        forgetting_begin()
        found = SourceDocument.objects.filter(pk=document_id).exists()
        _there(found, "document", document_id)
        doomed = Doomed()
        doomed.add_documents([document_id])
        return carry_out(
            kind=str(ForgottenKind.DOCUMENT),
            object_id=document_id,
            doomed=doomed,
            prober=prober,
            tools=tools,
            actor=actor,
        )


def session_forget(
    *,
    session_id: UUID,
    tools: ForgetTools,
    actor: Actor = SYSTEM,
    prober: Prober | None = None,
) -> ForgetReceipt:
    """A session with its messages, summaries and turns, what was learned in it alone, and what
    other conversations told of it."""
    prober = prober or _prober(str(ForgottenKind.SESSION), session_id, tools)
    with transaction.atomic():
        forgetting_begin()
        session = ChatSession.objects.select_for_update().filter(pk=session_id).first()
        _there(session is not None, "session", session_id)
        messages = list(Message.objects.filter(session=session_id).values_list("pk", flat=True))
        doomed = Doomed(erased={str(session_id)})
        doomed.add_messages(messages, texts=len(messages) <= MOST_TEXTS)
        if len(messages) > MOST_TEXTS:
            _add_recalled(doomed, session_id)
        counts = _turns_delete(Turn.objects.filter(session=session_id))
        counts[SummarizationMetadata._meta.db_table] = SummarizationMetadata.objects.filter(
            session=session_id
        ).count()
        receipt = carry_out(
            kind=str(ForgottenKind.SESSION),
            object_id=session_id,
            doomed=doomed,
            prober=prober,
            tools=tools,
            actor=actor,
        )
        batches = TranscriptBatch.objects.filter(session=session_id)
        counts[TranscriptBatch._meta.db_table] = batches.count()
        backups = backup_names(batches)
        # What was asked for again while its messages went has no session any more.
        counts[MemoryCard._meta.db_table] = cards_delete(session_ids=[session_id])
        cards_take_back(chat_id=session.chat_id, session_ids=[session_id])
        ChatSession.objects.filter(pk=session_id).delete()
        counts[ChatSession._meta.db_table] = 1
        counts |= backups_remove(names=backups, tools=tools)
        return _also_swept(receipt, counts)


def session_messages_forget(
    *,
    session_id: UUID,
    tools: ForgetTools,
    actor: Actor = SYSTEM,
    prober: Prober | None = None,
) -> ForgetReceipt:
    """All messages of a session, with what was learned in it alone and what other conversations
    told of it. The session stays, empty, and goes on counting where it was."""
    prober = prober or _prober(str(ForgottenKind.MESSAGES), session_id, tools)
    with transaction.atomic():
        forgetting_begin()
        session = ChatSession.objects.select_for_update().filter(pk=session_id).first()
        _there(session is not None, "session", session_id)
        messages = list(Message.objects.filter(session=session_id).values_list("pk", flat=True))
        if not messages:
            raise NothingToForgetError(f"There is no message in session {session_id}.")
        doomed = Doomed()
        doomed.add_messages(messages, texts=len(messages) <= MOST_TEXTS)
        if len(messages) > MOST_TEXTS:
            _add_recalled(doomed, session_id)
        receipt = carry_out(
            kind=str(ForgottenKind.MESSAGES),
            object_id=session_id,
            doomed=doomed,
            prober=prober,
            tools=tools,
            actor=actor,
        )
        batches = backup_names(TranscriptBatch.objects.filter(session=session_id))
        session = ChatSession.objects.select_for_update(no_key=True).get(pk=session_id)
        cards_take_back(chat_id=session.chat_id, session_ids=[session_id])
        session_empty(session=session, now=receipt.forgotten_at)
        return _also_swept(receipt, backups_remove(names=batches, tools=tools))


def chat_forget(
    *,
    chat_id: UUID,
    tools: ForgetTools,
    actor: Actor = SYSTEM,
    prober: Prober | None = None,
) -> ForgetReceipt:
    """A person: the chat with everything in it, the memories and documents that came from it,
    and what other chats were told of them. The audit log keeps that things were done, and
    nobody can tell any more to whom."""
    prober = prober or _prober(str(ForgottenKind.CHAT), chat_id, tools)
    with transaction.atomic():
        forgetting_begin()
        addresses = ChatAddress.objects.filter(chat=chat_id).values_list("address", flat=True)
        addresses_lock(list(addresses))
        chat = Chat.objects.select_for_update().filter(pk=chat_id).first()
        if chat is None:
            raise NothingToForgetError(f"There is no chat {chat_id}.")
        doomed = Doomed(erased=_within(chat), names=_names(chat))
        own = Memory.objects.filter(chat_id=chat_id, document__isnull=True)
        doomed.add_memories(list(own.values_list("pk", flat=True)))
        brought = SourceDocument.objects.filter(chat_id=chat_id)
        doomed.add_documents(list(brought.values_list("pk", flat=True)))
        backups = backup_names(TranscriptBatch.objects.filter(chat=chat))
        counts = _chat_delete(chat, tools.witness)
        doomed.chats.discard(chat_id)
        doomed.messages.clear()
        receipt = carry_out(
            kind=str(ForgottenKind.CHAT),
            object_id=chat_id,
            doomed=doomed,
            prober=prober,
            tools=tools,
            actor=actor,
        )
        tombstones_remove(scope=scope_of(str(Visibility.CHAT), chat_id))
        person_cut_loose(chat_id=chat_id)
        told = chat_deliveries_erase(chat_id=chat_id)
        counts[WebhookDelivery._meta.db_table] = told
        counts |= backups_remove(names=backups, tools=tools)
        return _also_swept(receipt, counts)


def _there(found: bool, what: str, key: UUID) -> None:
    if not found:
        raise NothingToForgetError(f"There is no {what} {key}.")


def _prober(kind: str, object_id: UUID, tools: ForgetTools) -> Prober:
    return prober_for(kind=kind, object_id=object_id, embedder=tools.embedder)


def _within(chat: Chat) -> set[str]:
    """The ids of a chat and of all that is in it."""
    inside = {str(chat.pk)}
    keys = (("sessions", "pk"), ("messages", "pk"), ("turns", "turn_id"))
    for name, key in keys:
        inside |= {str(each) for each in getattr(chat, name).values_list(key, flat=True)}
    return inside


def _names(chat: Chat) -> set[str]:
    """By which the person is known. An address's number counts without its ending, too."""
    names = {chat.whatsapp_chat, chat.client_name.strip(), chat.client_phone}
    names |= set(chat.addresses.values_list("address", flat=True))
    numbers = {name.partition("@")[0] for name in names if "@" in name}
    return (names | numbers) - {""}


def _add_recalled(doomed: Doomed, session_id: UUID) -> None:
    """The texts of a long session that answers outside of it had in reach."""
    others = TurnReplay.objects.filter(turn__chat__sessions=session_id)
    others = others.exclude(turn__session=session_id)
    others = others.filter(recalled__contains=[{"session_id": str(session_id)}])
    for recalled in others.values_list("recalled", flat=True).iterator():
        for entry in recalled:
            if entry.get("session_id") == str(session_id):
                beside = [entry[name]["content"] for name in BESIDE if name in entry]
                doomed.texts.update(dict.fromkeys([entry["content"], *beside]))
    session = ChatSession.objects.get(pk=session_id)
    doomed.chats.add(session.chat_id)
    doomed.since = min(doomed.since or session.created_at, session.created_at)


def _turns_delete(turns: Iterable[Turn]) -> dict[str, int]:
    """The turns with their parts; what was delivered of their messages is emptied later."""
    ids = [turn.pk for turn in turns]
    counts = {OutboundPart._meta.db_table: OutboundPart.objects.filter(turn__in=ids).count()}
    counts[Turn._meta.db_table] = len(ids)
    Turn.objects.filter(pk__in=ids).delete()
    return counts


def _chat_delete(chat: Chat, witness: Witness) -> dict[str, int]:
    """The chat with its sessions, messages, turns, deliveries and addresses, and whatever else
    hangs on them."""
    said = chat.messages.order_by("received_at", "order_num").values_list("pk", "content")
    for key, content in said[: witness.most]:
        witness.saw(What.MESSAGE, key, content)
    cards = MemoryCard.objects.filter(chat_id=chat.pk).values_list("pk", "title")
    for key, title in cards[: witness.most]:
        witness.saw(What.CARD, key, title)
    for key, text in chat.notes.values_list("pk", "text")[: witness.most]:
        witness.saw(What.NOTE, key, text)
    raw = InboundDelivery.objects.filter(chat=chat)
    # The keys stay, so that a repeated delivery doesn't bring anything back.
    emptied = raw.update(raw=None, change=None, outcome="forgotten", subject_id="")
    chat_id = chat.pk
    _, gone = chat.delete()
    counts = {apps.get_model(label)._meta.db_table: rows for label, rows in gone.items()}
    # A turn and its replay count once.
    counts.pop(TurnReplay._meta.db_table, None)
    counts[InboundDelivery._meta.db_table] = emptied
    # After its sessions: whoever is storing a card holds one of them.
    counts[MemoryCard._meta.db_table] = chat_cards_delete(chat_id=chat_id)
    witness.saw_more(What.MESSAGE, max(0, counts.get(Message._meta.db_table, 0) - witness.most))
    return counts


def _also_swept(receipt: ForgetReceipt, counts: dict[str, int]) -> ForgetReceipt:
    swept = dict(receipt.swept)
    for table, rows in counts.items():
        if rows:
            swept[table] = swept.get(table, 0) + rows
    receipt.swept = dict(sorted(swept.items()))
    receipt.save(update_fields=["swept"])
    return receipt


_FORGET: dict[str, Callable[[UUID, ForgetTools, Actor, Prober | None], ForgetReceipt]] = {
    str(ForgottenKind.MEMORY): lambda key, tools, actor, prober: memory_forget(
        memory_id=key, tools=tools, actor=actor, prober=prober
    ),
    str(ForgottenKind.MESSAGE): lambda key, tools, actor, prober: message_forget(
        message_id=key, tools=tools, actor=actor, prober=prober
    ),
    str(ForgottenKind.MESSAGES): lambda key, tools, actor, prober: session_messages_forget(
        session_id=key, tools=tools, actor=actor, prober=prober
    ),
    str(ForgottenKind.SESSION): lambda key, tools, actor, prober: session_forget(
        session_id=key, tools=tools, actor=actor, prober=prober
    ),
    str(ForgottenKind.DOCUMENT): lambda key, tools, actor, prober: document_forget_with_proof(
        document_id=key, tools=tools, actor=actor, prober=prober
    ),
    str(ForgottenKind.CHAT): lambda key, tools, actor, prober: chat_forget(
        chat_id=key, tools=tools, actor=actor, prober=prober
    ),
}


def object_forget(
    *,
    kind: str,
    object_id: UUID,
    tools: ForgetTools,
    actor: Actor = SYSTEM,
    prober: Prober | None = None,
) -> ForgetReceipt:
    """What is of this kind and has this id."""
    return _FORGET[kind](object_id, tools, actor, prober)
