"""Write the receipt of a forgetting, which holds no text, and its audit event."""

import logging
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from memories_app.models import SourceDocument, Visibility
from memories_app.store.retract import keyed_hash
from memoryproject.foundation.audit.audit_events import Actor, actor_name, audit_record
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import all_forms
from memoryproject.foundation.outgoing_webhooks.deliveries import HookEvent
from memoryproject.foundation.outgoing_webhooks.models import EventType
from sessions_app.conversations.chat_queries import chat_at, stored_names, with_address
from sessions_app.forgetting.deletion_plan import MODELS, DeletionPlan
from sessions_app.forgetting.probe import ABSENT, FOUND, ProbeRecord
from sessions_app.models import (
    Chat,
    ChatAddress,
    ChatSession,
    ForgetReceipt,
    ForgottenKind,
    Message,
)

logger = logging.getLogger(__name__)


def receipt_begin(*, kind: str, object_id: UUID, call_key: str) -> ForgetReceipt:
    """Return the receipt, to be stored by ``receipt_write``, with the facts of its object.

    It is made while the object is still there. ``call_key``: see ForgetReceipt.
    """
    chat_id, is_owners = _chat_of(kind, object_id)
    current = ChatAddress.objects.filter(chat=chat_id, left_at__isnull=True).order_by()
    chats = Chat.objects.filter(pk=chat_id).order_by().values_list("whatsapp_chat")
    names = {name for (name,) in chats.union(current.values_list("address"))}
    return ForgetReceipt(
        kind=kind,
        object_id=object_id,
        chat_id=None if is_owners else chat_id,
        person_keys=sorted(map(person_key, names)),
        call_key=call_key,
    )


def person_key(whatsapp_chat: str) -> str:
    """Return the keyed hash of an address, by which the receipts of its person are found."""
    return keyed_hash(whatsapp_chat, purpose="receipt of a person")


def receipts_of(rows: QuerySet[ForgetReceipt], whatsapp_chat: str) -> QuerySet[ForgetReceipt]:
    """Return the receipts of a chat and of what came from it, also if the chat is erased.

    The id may be spelled in any way. Those of all present addresses of the chat's person count.
    """
    chat = chat_at(whatsapp_chat)
    names = set(stored_names(whatsapp_chat))
    if chat is not None:
        current = chat.addresses.filter(left_at__isnull=True)
        names |= {chat.whatsapp_chat, *current.values_list("address", flat=True)}
    found = Q(person_keys__overlap=sorted(map(person_key, all_forms(names))))
    if chat is not None:
        found |= Q(chat_id=chat.pk)
    return rows.filter(found)


def _chat_of(kind: str, object_id: UUID) -> tuple[UUID | None, bool]:
    """Return the chat of an object, and whether only the owner saw the object."""
    if kind == str(ForgottenKind.CHAT):
        return object_id, False
    found = MODELS[kind]._default_manager.filter(pk=object_id).first() if kind in MODELS else None
    if found is None:
        return None, False
    return found.chat_id, getattr(found, "visibility", "") == Visibility.OWNER


def erasure_events(
    receipt: ForgetReceipt, plan: DeletionPlan, keep_turn: int | None
) -> list[HookEvent]:
    """Return the events of what goes, except memories, which have events of their own.

    Messages that go with their whole session or chat have none.
    """
    kind, object_id, chat_id = receipt.kind, receipt.object_id, receipt.chat_id
    events = []
    if kind == str(ForgottenKind.CHAT):
        sessions = ChatSession.objects.filter(chat=object_id).order_by("created_at")
        ids = [str(key) for key in sessions.values_list("pk", flat=True)]
        events.append(HookEvent(EventType.CHAT_ERASED, object_id, {"session_ids": ids}, chat_id))
    elif kind == str(ForgottenKind.SESSION):
        data = {"session_id": str(object_id)}
        events.append(HookEvent(EventType.SESSION_FORGOTTEN, object_id, data, chat_id))
    elif plan.messages:
        found = Message.objects.filter(pk__in=plan.messages)
        if keep_turn is not None:
            found = found.exclude(turn__pk=keep_turn)
        rows = found.order_by("session_id", "order_num").values_list("pk", "session_id", "chat_id")
        for key, session_id, of_chat in rows:
            data = {"message_id": str(key), "session_id": str(session_id)}
            events.append(HookEvent(EventType.MESSAGE_FORGOTTEN, key, data, of_chat))
    documents = SourceDocument.objects.filter(pk__in=plan.documents).order_by("created_at")
    for key, of_chat in documents.values_list("pk", "chat_id"):
        events.append(_document_event(key, "document", of_chat))
    events += [_document_event(key, "memory_document", None) for key in plan.memory_documents]
    return events


def _document_event(key: UUID, kind: str, chat_id: UUID | None) -> HookEvent:
    data = {"document_id": str(key), "kind": kind}
    return HookEvent(EventType.DOCUMENT_FORGOTTEN, key, data, chat_id)


def receipt_write(
    receipt: ForgetReceipt,
    *,
    texts: Sequence[str],
    swept: dict[str, int],
    record: ProbeRecord,
    actor: Actor,
    now: datetime,
) -> ForgetReceipt:
    """Store the receipt and its audit event. ``record``: of the probe, with what it still found."""
    receipt.forgotten_at = now
    receipt.actor_kind, receipt.actor = actor.kind, actor_name(actor)
    receipt.content_hash = keyed_hash("\0".join(texts), purpose="receipt")
    receipt.swept, receipt.probe_details = swept, record.as_dict()
    receipt.left, receipt.probe = list(record.left), FOUND if record.left else ABSENT
    receipt.save(force_insert=True)
    details = {"kind": receipt.kind, "swept": swept, "probe": receipt.probe, "left": receipt.left}
    if receipt.kind != str(ForgottenKind.CHAT):
        # The id of an erased chat would lead to its person.
        details["object_id"] = str(receipt.object_id)
    audit_record(
        f"{receipt.kind}.forgotten",
        actor,
        "receipt",
        receipt.receipt_id,
        content_hash=receipt.content_hash,
        **details,
        # The erasure of a whole person cuts that person's events loose, this one as well.
        chat_id=None if receipt.kind == str(ForgottenKind.CHAT) else receipt.chat_id,
    )
    values = (receipt.kind, receipt.object_id, receipt.receipt_id)
    # Only once it is certain, because a preview is rolled back.
    transaction.on_commit(lambda: logger.info("%s %s was forgotten: receipt %s.", *values))
    return receipt


# Find the receipts of a person by their number, which no receipt holds: only a keyed hash.


# The country codes of these people's numbers are tried for a number written without one.
NEWEST = 500
MAX_COUNTRY_CODE = 3
MIN_DIGITS = 6
MAX_CHATS = 50


def receipts_found(
    rows: QuerySet[ForgetReceipt], term: str, *, home_numbers: Iterable[str]
) -> QuerySet[ForgetReceipt]:
    """Return the receipts of a person's number or address, or those of a request number.

    ``home_numbers``: numbers of the business's country, such as the owner's.
    """
    of_request = Q(request_number=term)
    digits = _digits(term)
    if not digits:
        return rows.filter(of_request) | receipts_of(rows, term)
    numbers = all_forms(f"{number}@c.us" for number in _whole_numbers(digits, home_numbers))
    keys = [*map(person_key, numbers)]
    # Who wasn't erased is found by their chat, by any part of their number.
    chats = (
        Chat.objects.filter(with_address(term)).order_by("-updated_at").values_list("pk", flat=True)
    )
    of_person = Q(person_keys__overlap=keys) | Q(chat_id__in=list(chats[:MAX_CHATS]))
    return rows.filter(of_request | of_person)


def _digits(term: str) -> str:
    """Return the digits of a number as people write it, "" if the text is none."""
    if "@" in term or any(map(str.isalpha, term)):
        return ""
    digits = "".join(filter(str.isdigit, term.replace("(0)", "")))
    return digits if len(digits) >= MIN_DIGITS else ""


def _whole_numbers(digits: str, home_numbers: Iterable[str]) -> Collection[str]:
    """Return the international numbers that the digits may mean."""
    if digits.startswith("00"):
        return {digits[2:]}
    if not digits.startswith("0"):
        return {digits}
    local = digits[1:]
    people = Chat.objects.exclude(client_phone="").order_by("-updated_at")
    known = people.values_list("client_phone", flat=True)[:NEWEST]
    whole = [*known, *(number.partition("@")[0] for number in home_numbers)]
    codes = {number[: -len(local)] for number in whole if number.isdigit()}
    return {code + local for code in codes if 1 <= len(code) <= MAX_COUNTRY_CODE} | {digits}
