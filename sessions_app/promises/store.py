"""Read the promises of a session's messages in a worker, store them, and note which are kept."""

import logging
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.fields.json import KT
from django.utils import timezone
from django.utils.translation import gettext as _

from cards_app.rules.words import split_sentences
from memories_app.errors import MemoryOperationError, MemoryStateError
from memories_app.facts.validation import (
    KEPT,
    ONLY_ASKS,
    OPEN,
    PROMISE,
    NewMemory,
    promise_completed,
)
from memories_app.models import Memory, MemoryStatus, Visibility
from memories_app.store.change import memory_locked, memory_supersede, texts_set
from memories_app.store.remember import memory_remember
from memories_app.store.retract import EXTRACTION, is_forgotten
from memories_app.visibility import scope_of
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.leases import advisory_lock
from sessions_app.conversations.chat_language import language_of
from sessions_app.conversations.epochs import Reader, forgetting_wait
from sessions_app.conversations.message_text import is_knowledge, without_notice
from sessions_app.conversations.phrases import TEXTS
from sessions_app.models import Chat, ChatSession, Message
from sessions_app.models.messages import APOLOGY, BY_PHONE, LEARN, Role
from sessions_app.models.turns import Outcome
from sessions_app.promises.promise_patterns import (
    Promise,
    forms_of,
    is_same,
    kept_in,
    promise_text,
    promises_in,
    sends,
)

logger = logging.getLogger(__name__)

# What was said before that is not read any more: an upgrade reads the promises of the last week.
READ_WITHIN = timedelta(days=7)
MAX_SWEPT = 1_000
# So many open promises of a chat are compared, the newest ones.
MAX_OPEN = 50
FILES = ("document", "image", "video")
# The names of our texts about a person who will answer begin so.
HANDOVERS = ("handover", "hours_reply")


@dataclass(frozen=True)
class PromiseReader:
    """The settings that reading depends on. ``memory_enabled``: if the chat itself doesn't say.

    ``reads_history``: old messages that a phone shared are read, too.
    """

    embedder: Embedder
    memory_enabled: bool = True
    reads_history: bool = False


class _ChangedError(Exception):
    """The message was edited, revoked or forgotten meanwhile, or memory was switched off."""


class _BusyError(Exception):
    """Another worker reads this session."""


def promises_waiting(now: datetime) -> list[UUID]:
    """Return the sessions with messages that were not read yet."""
    lately = ChatSession.objects.filter(last_active__gte=now - READ_WITHIN)
    unread = lately.filter(
        Q(promises_until__isnull=True) | Q(promises_until__lt=F("message_counter")),
        message_counter__gt=0,
    )
    return list(unread.order_by("-last_active").values_list("pk", flat=True)[:MAX_SWEPT])


def promises_read(*, session_id: UUID, reader: PromiseReader) -> int:
    """Read the messages that were not read yet; return how many promises were found.

    Returns at once if another worker reads this session. Raises EmbedderError, and the sweep tries
    again. To read a message twice changes nothing.
    """
    found = 0
    try:
        with advisory_lock(session_id.int % 2**63, _BusyError()):
            while session := _unread(session_id):
                until = session.promises_until or 0
                messages = Message.objects.filter(
                    session=session,
                    role=Role.ASSISTANT,
                    order_num__gt=until,
                    order_num__lte=session.message_counter,
                    received_at__gte=timezone.now() - READ_WITHIN,
                )
                rows = messages.select_related("chat", "answers", "replied_turn").defer("terms")
                for message in rows.order_by("order_num"):
                    found += _message_read(message, reader)
                # An edit meanwhile has set it back, so that the message is read again.
                same = ChatSession.objects.filter(
                    pk=session_id, promises_until=session.promises_until
                )
                same.update(promises_until=session.message_counter)
    except _BusyError:
        logger.info("Another worker reads the promises of session %s.", session_id)
    return found


def _unread(session_id: UUID) -> ChatSession | None:
    session = ChatSession.objects.filter(pk=session_id).first()
    is_read = session is None or (session.promises_until or 0) >= session.message_counter
    return None if is_read else session


def _message_read(message: Message, reader: PromiseReader) -> int:
    """Store what the message promises, and note what it keeps; return how many it promises."""
    if message.edited_at or message.revoked_at:
        _reopen(message)
    if not _is_read(message, reader):
        return 0
    content = without_notice(message.content)
    actor = Actor("system", chat_id=message.chat_id)
    promises = [
        promise
        for promise in promises_in(content, message.timestamp)
        if not _fixed_text().fullmatch(promise.text)
    ]
    try:
        kept = _kept_by(message, content)
        if kept is not None:
            promise_mark(memory_id=kept, state=KEPT, actor=actor, evidence=message.pk)
        for promise in promises:
            _promise_store(promise, message, reader, actor)
    except (_ChangedError, MemoryOperationError) as error:
        logger.info("A promise is not stored: %s", error)
    return len(promises)


def _is_read(message: Message, reader: PromiseReader) -> bool:
    turn = getattr(message, "replied_turn", None)
    about = message.metadata
    return (
        settings.LONGTERM_ENABLED
        and _remembers(message.chat, reader)
        and message.revoked_at is None
        and (is_knowledge(message) or message.kind in FILES)
        # Approved for many, and sent to one or to all: nobody wrote it to this person.
        and message.kind != "template"
        and not (about.keys() & {APOLOGY, "command", "system_text"})
        and about.get(LEARN) is not False
        and (reader.reads_history or "history" not in about)
        # It repeats what was said before.
        and not (turn is not None and turn.outcome == Outcome.FROM_MEMORY)
    )


@cache
def _fixed_text() -> re.Pattern[str]:
    """Return what matches a sentence of the texts that follow an answer which hands over."""
    texts = (text for name in TEXTS if name.startswith(HANDOVERS) for text in TEXTS[name].values())
    sentences = (re.escape(each.text) for text in texts for each in split_sentences(text))
    return re.compile("|".join(re.sub(r"\\{\w+\\}", ".{1,300}", each) for each in sentences))


def _remembers(chat: Chat, reader: PromiseReader) -> bool:
    return reader.memory_enabled if chat.memory_enabled is None else chat.memory_enabled


def _promise_store(promise: Promise, message: Message, reader: PromiseReader, actor: Actor) -> None:
    """Store a promise. One that is said again counts as told again; another day replaces it."""
    alike = (each for each in _open_before(message) if is_same(promise.text, _sentence(each)))
    earlier = next(alike, None)
    is_moved = bool(earlier and promise.due and promise_of(earlier)["due"] != str(promise.due))
    content = _content(promise, message)
    if earlier is not None and not is_moved:
        content = earlier.content
    if is_forgotten(content=content, scope=scope_of(str(Visibility.CHAT), message.chat_id)):
        return

    def is_current() -> None:
        forgetting_wait(Reader(message.chat_id))
        ChatSession.objects.select_for_update(no_key=True).filter(pk=message.session_id).first()
        now = Message.objects.select_related("chat").filter(pk=message.pk).first()
        if now is None or now.content != message.content or not _remembers(now.chat, reader):
            raise _ChangedError(f"message {message.pk} changed while it was read")

    by_staff = message.metadata.keys() & {BY_PHONE, "by_hand"}
    about = {
        "state": OPEN,
        "by": "business" if by_staff else "assistant",
        "due": promise.due and promise.due.isoformat(),
        # Every "I'll ask the owner" would be near every question of its chat.
        **(ONLY_ASKS[PROMISE] if promise.only_asks else {}),
    }
    stored = memory_remember(
        NewMemory(
            content=content,
            visibility=str(Visibility.CHAT),
            chat_id=message.chat_id,
            type=PROMISE,
            source=EXTRACTION,
            source_message_id=message.pk,
            said_at=min(message.timestamp, timezone.now()),
            metadata={} if earlier and not is_moved else {PROMISE: about},
            supersedes=False,
            # The same words of the same day, after the earlier promise was kept, open it again.
            merges=True,
        ),
        embedder=reader.embedder,
        actor=actor,
        before_storing=is_current,
    )
    if earlier is not None and is_moved and stored.memory.pk != earlier.pk:
        _replace(earlier, stored.memory, actor)


def _replace(older: Memory, newer: Memory, actor: Actor) -> None:
    with transaction.atomic():
        locked = memory_locked(older.pk)
        if locked.status == MemoryStatus.ACTIVE and not locked.pinned:
            memory_supersede(older=locked, newer=newer, actor=actor)


def _content(promise: Promise, message: Message) -> str:
    """Return the memory's text: when and to whom it was promised, and the sentence itself."""
    chat, question = message.chat, message.answers
    name = str(question.metadata.get("sender_name") or "") if question and chat.is_group else ""
    name = name or chat.staff_name or chat.client_name
    return promise_text(
        promise,
        day=message.timestamp.astimezone(ZoneInfo(settings.BUSINESS_TIME_ZONE)),
        # A name with a colon would seem to end before the sentence.
        name=" ".join(name.replace(":", " ").split()),
        # In a chat that was made over the API nobody has written yet, perhaps.
        language=chat.fixed_language or chat.language or language_of(promise.text),
    )


def _sentence(memory: Memory) -> str:
    """Return the promise itself, without the words that say when and to whom it was made."""
    return memory.content.partition(": ")[2] or memory.content


# Promises and their states.


def promise_of(memory: Memory) -> dict[str, Any]:
    """Return the state of a promise."""
    return dict(promise_completed(memory.metadata)[PROMISE])


def promises() -> QuerySet[Memory]:
    """Return the promises that hold: not those that were replaced or wait for review."""
    return Memory.objects.filter(type=PROMISE, status=MemoryStatus.ACTIVE)


def open_promises(memories: QuerySet[Memory]) -> QuerySet[Memory]:
    # An index finds what holds this.
    return memories.filter(metadata__contains={PROMISE: {"state": OPEN}})


def due_until(memories: QuerySet[Memory], day: date) -> QuerySet[Memory]:
    """Return those that are to be kept on that day or before. ISO dates are in order as texts."""
    # As a JSON value, null would be less than any text.
    return memories.alias(due=KT("metadata__promise__due")).filter(
        due__lt=(day + timedelta(days=1)).isoformat()
    )


def today() -> date:
    """Return the day in the time zone of the business."""
    return timezone.now().astimezone(ZoneInfo(settings.BUSINESS_TIME_ZONE)).date()


def promise_mark(
    *, memory_id: UUID, state: str, actor: Actor, evidence: UUID | None = None
) -> None:
    """Set the state of a promise. ``evidence``: the message that keeps it.

    Raises MemoryNotFoundError and MemoryStateError.
    """
    with transaction.atomic():
        memory = memory_locked(memory_id)
        if memory.type != PROMISE:
            raise MemoryStateError(_("This memory is no promise."))
        after = {**promise_of(memory), "state": state, "set_by": actor.kind}
        after["evidence"] = evidence and str(evidence)
        texts_set(memory, {"metadata": {**memory.metadata, PROMISE: after}}, text=None, actor=actor)


def _open_before(message: Message) -> list[Memory]:
    """Return the chat's open promises of other messages, said before this one, the newest first."""
    found = open_promises(promises()).filter(
        chat_id=message.chat_id,
        visibility=Visibility.CHAT,
        said_at__lte=max(message.timestamp, message.received_at),
    )
    others = found.exclude(source_message_id=message.pk).defer("terms", "likeness")
    return list(others.order_by("-said_at", "memory_id")[:MAX_OPEN])


def _kept_by(message: Message, content: str) -> UUID | None:
    """Return the promise that the message certainly keeps; None if there is none, or a doubt."""
    kept = kept_in(content)
    is_file = message.kind in FILES and bool(message.media)
    if kept is None and not is_file:
        return None
    waiting = [each for each in _open_before(message) if promise_of(each).get("set_by") != "staff"]
    named = [each for each in waiting if kept and kept.names(_sentence(each))]
    if len(named) == 1:
        return named[0].pk
    if len(waiting) != 1 or named:
        return None
    if is_file and sends(_sentence(waiting[0])):
        return waiting[0].pk
    if kept is not None and kept.is_bare and _is_about(message, waiting[0]):
        return waiting[0].pk
    return None


def _is_about(message: Message, promise: Memory) -> bool:
    """Return whether "Done!" is about the promise, not about what the person asked just now."""
    before = Message.objects.filter(session=message.session_id, order_num__lt=message.order_num)
    last = before.exclude(role=Role.SUMMARY).order_by("-order_num").defer("terms").first()
    if last is None or last.role != Role.USER:
        return True
    return bool(forms_of(last.content) & forms_of(_sentence(promise)))


def _reopen(message: Message) -> None:
    """Open the promises again that this message kept before it was edited or revoked."""
    kept = promises().filter(chat_id=message.chat_id, metadata__promise__evidence=str(message.pk))
    for key in kept.values_list("pk", flat=True):
        promise_mark(memory_id=key, state=OPEN, actor=Actor("system", chat_id=message.chat_id))
