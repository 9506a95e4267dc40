"""Store a reply that staff write to a chat.

It goes out in the same way as an answer: as a turn, after those of the chat that are being sent,
and never twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.integrations.whatsapp.base import WhatsAppProvider
from memoryproject.foundation.text.characters import shows_nothing
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations.chat_queries import has_window, last_heard
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.session_lifecycle import session_open
from sessions_app.inbound.facade import IntakeRules
from sessions_app.media.fetch import attachment_of
from sessions_app.models import AnswerTrial, Chat, Message, Turn
from sessions_app.models.chats import Provider
from sessions_app.models.messages import AUTHOR, Role
from sessions_app.models.takeover import PauseCause
from sessions_app.models.trials import TrialMemories
from sessions_app.models.turns import BY_RULE, QUOTES, SENDS_FILE, Outcome, TurnState, turn_create
from sessions_app.takeover import attachment as attachments
from sessions_app.turns.facade import chat_locked, parts_store, step_in, turn_audit


@dataclass(frozen=True)
class StaffReply:
    """A reply as it was written.

    The same ``key`` sends once, however often it comes. ``quote`` is the id of a message of the
    chat that the reply quotes, or empty. ``file`` goes with the text. ``draft`` is the id of the
    assistant's draft that the text began as, or empty.
    """

    text: str
    key: UUID
    quote: str = ""
    file: UploadedFile[Any] | None = None
    draft: str = ""


def chat_reply(
    *,
    chat_id: UUID,
    reply: StaffReply,
    writer: Writer,
    providers: Mapping[str, WhatsAppProvider],
    otherwise: OwnNumber,
    storage: MediaStorage | None = None,
) -> HandReply:
    """Store the reply as an assistant message and hand it to the chat's provider.

    Its file is kept in ``storage``. The reply goes by ``otherwise`` where the chat came by the
    terminal, the API or an import, and pauses the assistant: see ``step_in``. Raises
    ReplyRefusedError and Chat.DoesNotExist. The text goes out as it was written: WhatsApp's own
    marks, such as ``*bold*``, work.
    """
    text = _checked(reply.text, has_file=reply.file is not None)
    provider = providers[number_of(Chat.objects.get(pk=chat_id), otherwise).provider]
    attaching = attachments.attached(reply.file, provider=provider, storage=storage)
    with attaching as attachment, transaction.atomic():
        chat = chat_locked(chat_id)
        sha256 = attachment.file.sha256 if attachment else ""
        if earlier := sent_before(key=reply.key, chat=chat, text=text, sha256=sha256):
            return earlier
        by = number_of(chat, otherwise)
        asked_at = _asked_at(chat, by, writer.rules, writer.now)
        quoted = _quoted(chat, by, reply.quote)
        context = {QUOTES: quoted} if quoted else {}
        details = {"file": attachment.kind} if attachment else {}
        if draft := draft_of(chat, reply.draft):
            context[DRAFT] = str(draft.pk)
            details["draft"] = "sent" if draft.text.strip() == text.strip() else "changed"
        parts = attachments.parts_of(text, attachment, providers[by.provider])
        return reply_turn_store(
            action="reply",
            chat=chat,
            by=by,
            key=reply.key,
            written=Written(
                text=text,
                parts=parts,
                asked_at=asked_at,
                kind=attachment.kind if attachment else "text",
                context=context,
                metadata={"reply_to_id": quoted} if quoted else {},
                details=details,
                attachment=attachment,
            ),
            writer=writer,
        )


def _checked(text: str, *, has_file: bool) -> str:
    """Return the text, "" if it is blank. Raises ReplyRefusedError."""
    if not has_file and shows_nothing(text):
        raise attachments.ReplyRefusedError("reply_empty")
    if len(text) > attachments.MAX_LENGTH:
        raise attachments.ReplyRefusedError("reply_too_long", most=attachments.MAX_LENGTH)
    return "" if shows_nothing(text) else text


def _asked_at(chat: Chat, by: OwnNumber, rules: IntakeRules, now: datetime) -> datetime:
    """Return when the person last wrote, or now where no window holds.

    Raises ReplyRefusedError.
    """
    heard = last_heard(chat)
    if heard is not None and now - heard <= rules.max_answer_age:
        return heard
    if has_window(by.provider):
        raise attachments.ReplyRefusedError("reply_window_closed")
    return now


def _quoted(chat: Chat, by: OwnNumber, quote: str) -> str:
    """Return the provider's id of the message to quote, or "". Raises ReplyRefusedError."""
    if not quote:
        return ""
    message = quotable(chat, by, quote)
    if message is None:
        raise attachments.ReplyRefusedError("reply_quote_gone")
    return str(message.provider_message_id)


# Decide which message a reply may quote.


def quotable(chat: Chat, by: OwnNumber, message_id: str) -> Message | None:
    """Return the message, or None where a reply by this number can't quote it.

    A provider knows a message by its own id, and only at the number at which it came or went.
    """
    key = uuid_or_none(message_id)
    if key is None:
        return None
    return (
        Message.objects.filter(
            pk=key,
            chat=chat,
            provider=by.provider,
            number_id=by.number_id,
            provider_message_id__isnull=False,
            revoked_at__isnull=True,
        )
        .exclude(provider_message_id="")
        .first()
    )


# The drafts that the assistant makes for staff.

# The key of the context of a reply that began as a draft, for the draft's id.
DRAFT = "draft"


def draft_of(chat: Chat, draft_id: str) -> AnswerTrial | None:
    """Return a draft of the chat; None where there is none, or not any more."""
    drafts = AnswerTrial.objects.filter(turn__chat=chat, memories=TrialMemories.DRAFT)
    return drafts.filter(pk=uuid_or_none(draft_id)).first()


def draft_question(chat: Chat) -> Turn | None:
    """Return the turn of the person's last words, which a draft replies to."""
    turns = Turn.objects.filter(chat=chat, by_hand=False, message__revoked_at=None)
    return turns.filter(message__content__gt="").order_by("-id").first()


# Name one of our numbers, and choose the one that writes to a chat.


@dataclass(frozen=True)
class OwnNumber:
    """One of our numbers, at its provider."""

    provider: str
    number_id: str = ""


def number_of(chat: Chat, otherwise: OwnNumber) -> OwnNumber:
    """Return which of our numbers sends a reply."""
    if chat.provider == str(Provider.CONSOLE):
        return otherwise
    return OwnNumber(chat.provider, chat.number_id)


# Store what staff write to a chat as a turn, which a worker sends.


@dataclass(frozen=True)
class Writer:
    """The writer of a reply, the rules and the time. ``enqueue`` hands the chat to a worker.

    ``author_id``: None where a rule of staff writes; the assistant isn't paused for it.
    """

    author_id: int | None
    actor: Actor
    rules: IntakeRules
    enqueue: Callable[[UUID], None]
    now: datetime

    @property
    def mark(self) -> dict[str, Any]:
        """Return what says in the turn and the message who wrote it."""
        return {BY_RULE: True} if self.author_id is None else {AUTHOR: self.author_id}


@dataclass(frozen=True)
class Written:
    """The parts of a reply that are stored and sent.

    ``text`` stands in the conversation, ``parts`` are sent, the first one with ``attachment``, if
    there is one. ``asked_at``: when the person last
    wrote, or now where no window holds. ``context`` and ``metadata``: what the turn and the message
    hold beyond what each reply by staff holds. ``details`` go to the audit log. ``pauses``: the
    assistant, for a while.
    """

    text: str
    parts: Sequence[str]
    asked_at: datetime
    kind: str = "text"
    context: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    attachment: attachments.Attachment | None = None
    pauses: bool = True


@dataclass(frozen=True)
class HandReply:
    """The turn of a reply.

    ``fresh`` is false where this key had been sent before. ``paused_until``: the end of the pause
    that this reply started.
    """

    turn: Turn
    fresh: bool
    paused_until: datetime | None = None


def sent_before(*, key: UUID, chat: Chat, text: str, sha256: str = "") -> HandReply | None:
    """Return the earlier turn of a form that was posted twice; None for a new key.

    ``sha256``: of the file that is sent with the text. Raises ReplyRefusedError where the key sent
    something else.
    """
    sent = Turn.objects.select_related("reply").filter(turn_id=key).first()
    if sent is None:
        return None
    sent_text = sent.reply.content if sent.reply else sent.unstored_reply
    # A text that was erased by now can't be compared.
    if not sent.by_hand or sent.chat_id != chat.pk or (sent_text and sent_text != text):
        raise attachments.ReplyRefusedError("reply_key_used")
    file = attachment_of(sent)
    if bool(sha256) != (SENDS_FILE in sent.context) or (file and file.sha256 != sha256):
        raise attachments.ReplyRefusedError("reply_key_used")
    return HandReply(sent, fresh=False)


def reply_turn_store(
    *, action: str, chat: Chat, by: OwnNumber, key: UUID, written: Written, writer: Writer
) -> HandReply:
    """Store the turn, its message and its parts, and pause the assistant where it isn't paused.

    ``action`` names it in the audit log. Call it with the chat locked.
    """
    pause = None
    if written.pauses and writer.author_id is not None:
        pause = step_in(
            chat=chat,
            cause=PauseCause.REPLY,
            lasts=writer.rules.owner_pause(chat),
            at=writer.now,
            actor=writer.actor,
            by=writer.author_id,
        )
    turn = _turn(chat, by, key, written, writer)
    parts_store(turn, written.parts)
    if written.attachment is not None:
        owner: dict[str, Any] = {"message": turn.reply} if turn.reply else {"turn": turn}
        written.attachment.keep(**owner)
    action = f"{'takeover' if writer.author_id else 'rule'}.{action}"
    turn_audit(action, turn, writer.actor, **written.details)
    chat_id = chat.pk
    # Where the queue is down the sweep finds it.
    transaction.on_commit(lambda: writer.enqueue(chat_id), robust=True)
    return HandReply(turn, fresh=True, paused_until=pause.until if pause else None)


def _turn(chat: Chat, by: OwnNumber, key: UUID, written: Written, writer: Writer) -> Turn:
    role = writer.rules.chat_memory.role_in(chat)
    stored: dict[str, Any]
    context: dict[str, Any] = {"kind": written.kind if written.attachment else "text"}
    if written.attachment is not None:
        context[SENDS_FILE] = written.attachment.kind
    if writer.rules.remember(chat):
        reply = _message(chat, by, role, written, writer)
        stored = {"reply": reply, "session": reply.session}
    else:
        # As with the assistant's answers: kept until it is sent.
        stored = {"unstored_reply": written.text}
        if written.attachment is not None:
            context["media"] = written.attachment.media
    return turn_create(
        turn_id=key,
        chat=chat,
        by_hand=True,
        state=TurnState.REPLIED,
        outcome=Outcome.ANSWERED,
        provider=by.provider,
        number_id=by.number_id,
        user_role=role,
        asked_at=written.asked_at,
        context={**context, **writer.mark, **written.context},
        **stored,
    )


def _message(chat: Chat, by: OwnNumber, role: str, written: Written, writer: Writer) -> Message:
    rules, now = writer.rules, writer.now
    session = session_open(chat=chat, now=now, timeout=rules.session_timeout, actor=writer.actor)
    new = NewMessage(
        role=Role.ASSISTANT,
        content=written.text,
        timestamp=now,
        sender="assistant",
        recipient=chat.whatsapp_chat,
        kind=written.kind,
        provider=by.provider,
        number_id=by.number_id,
        was_received=False,
        media=written.attachment.media if written.attachment else {},
        metadata={
            "by_hand" if writer.author_id else "system_text": True,
            **writer.mark,
            **written.metadata,
        },
    )
    (stored,) = rules.chat_memory.append(session=session, new=[new], role=role, now=now)
    return stored
