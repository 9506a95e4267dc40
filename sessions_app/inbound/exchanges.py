"""Messages that another program's model answers: their turns, and what is learned from them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.conversations import chat_addresses, session_lifecycle
from sessions_app.extraction.facade import extraction_request
from sessions_app.inbound.take_message import IntakeRules
from sessions_app.models import Chat, ChatSession, Message, Turn, TurnReplay
from sessions_app.models.chats import Provider
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import Outcome, TurnState, turn_create, turn_move, turns_move
from sessions_app.turns.facade import chat_locked

Learn = Callable[[UUID], object]


# Whether a worker learns from what was stored. NOTHING: no person says anything in it.
QUEUED, OFF, NOTHING = "queued", "off", "nothing"


class MemoryDisabledError(Exception):
    """Memory is off in this chat: nothing is stored."""


def session_open_in(
    *, whatsapp_chat: str, rules: IntakeRules, now: datetime, actor: Actor
) -> tuple[ChatSession, bool]:
    """Return the active session of a chat, and whether it was begun now.

    The chat and the session are created if necessary.

    Raises MemoryDisabledError, and then nothing is created.
    """
    with transaction.atomic():
        chat = chat_locked(chat_addresses.chat_at_or_new(whatsapp_chat).pk)
        if not rules.remember(chat):
            raise MemoryDisabledError
        active = ChatSession.objects.filter(chat=chat, status=SessionStatus.ACTIVE)
        before = active.values_list("pk", flat=True).first()
        session = session_lifecycle.session_open(
            chat=chat, now=now, timeout=rules.session_timeout, actor=actor
        )
        return session, session.pk != before


def exchange_record(
    *,
    chat: Chat,
    question: Message | None,
    reply: Message,
    role: str,
    context: Mapping[str, Any],
    learn: Learn | None,
    now: datetime,
    turn_id: UUID | None = None,
    replay: Mapping[str, Any] | None = None,
) -> tuple[Turn, str]:
    """Record that ``reply`` answers ``question``, as a turn that has ended.

    ``question`` None: it answers no person's message, but the result of a tool. ``role`` and
    ``context``: those of a turn. ``replay``: fields of its TurnReplay. Call it in the transaction
    that stores the messages.
    """
    if question is not None:
        Message.objects.filter(pk=reply.pk).update(answers=question)
    turn = turn_create(
        state=TurnState.REPLIED,
        turn_id=turn_id or uuid4(),
        chat=chat,
        session=reply.session,
        message=question,
        reply=reply,
        provider=Provider.CONSOLE,
        user_role=role,
        context=dict(context),
        asked_at=(question or reply).timestamp,
        outcome=Outcome.ANSWERED,
    )
    turn_move(turn, TurnState.SENT, finished_at=now)
    if question is not None:
        session_lifecycle.message_received(turn)
    session_lifecycle.answer_stored(turn)
    TurnReplay.objects.create(turn=turn, **(replay or {}))
    return turn, _queued([turn], learn, chat)


def messages_learn(
    *,
    chat: Chat,
    rows: Sequence[Message],
    role: str,
    context: Mapping[str, Any],
    learn: Learn | None,
    now: datetime,
) -> str:
    """Have facts learned from what people say in the messages; their turns are never answered.

    Call it in the transaction that stores the messages.
    """
    if learn is None:
        return OFF
    turns = [
        turn_create(
            state=TurnState.PENDING,
            chat=chat,
            session=row.session,
            message=row,
            provider=row.provider or Provider.CONSOLE,
            number_id=row.number_id,
            provider_message_id=row.provider_message_id or "",
            user_role=role,
            context=dict(context),
            asked_at=row.timestamp,
        )
        for row in rows
        if row.role == Role.USER
    ]
    keys = [turn.pk for turn in turns]
    turns_move(Turn.objects.filter(pk__in=keys), TurnState.CANCELLED, finished_at=now)
    return _queued(turns, learn, chat)


def _queued(turns: Sequence[Turn], learn: Learn | None, chat: Chat) -> str:
    if learn is None:
        return OFF
    if not [turn for turn in turns if extraction_request(turn)]:
        return NOTHING
    transaction.on_commit(lambda: learn(chat.pk), robust=True)
    return QUEUED
