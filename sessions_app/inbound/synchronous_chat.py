"""Run one whole turn for a caller that waits for the answer: the terminal and the API."""

import time
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction

from memoryproject.foundation.integrations.whatsapp.events import InboundMessage
from sessions_app.conversations import chat_addresses, redact_derived
from sessions_app.inbound import receive, take_message
from sessions_app.models import ChatSession, InboundDelivery, Message, Turn
from sessions_app.models.chats import Speaker
from sessions_app.models.turns import WAITING_STATES, Outcome, TurnState, turn_move
from sessions_app.turns.facade import Dependencies, chat_answer

CONSOLE = "console"

LOOK_AGAIN_SECONDS = 0.2


class NoAnswerError(Exception):
    """The turn ended without an answer; the text says why."""


class NotYetAnsweredError(NoAnswerError):
    """Other turns in the chat take too long; the message is stored and answered after them."""


@dataclass(frozen=True)
class Talk:
    """The answer, and the turn that records how it was made."""

    reply: str
    turn: Turn


def talk(
    *,
    whatsapp_chat: str,
    content: str,
    dependencies: Dependencies,
    rules: take_message.IntakeRules,
    now: datetime,
    ref: str | None = None,
    patience: timedelta | None = None,
) -> Talk:
    """Write a message in a chat and wait for the answer, after the turns that already wait.

    Nothing of it is sent to WhatsApp. See talk_begin and talk_finish. Raises NoAnswerError.
    """
    turn = talk_begin(whatsapp_chat=whatsapp_chat, content=content, rules=rules, now=now, ref=ref)
    return talk_finish(turn=turn, dependencies=dependencies, patience=patience)


def talk_begin(
    *,
    whatsapp_chat: str,
    content: str,
    rules: take_message.IntakeRules,
    now: datetime,
    ref: str | None = None,
    speaker: Speaker | None = None,
) -> Turn:
    """Store the message with its turn.

    ``speaker`` writes it in the person's place. ``ref``: a repeated call with the same reference
    returns the same turn; where its answer failed, to be answered anew. Raises NoAnswerError.
    """
    event = _event(whatsapp_chat, content, now, ref or str(uuid.uuid4()))
    rules = replace(rules, speaker=speaker)
    receive.events_receive(received=[event], rules=rules, enqueue=lambda _: None, now=now)
    turns = Turn.objects.select_related("message", "reply")
    turn = turns.filter(provider=CONSOLE, provider_message_id=event.provider_message_id).first()
    if turn is not None:
        return _reopened(turn, content) if turn.outcome == Outcome.FAILED else turn
    delivery = InboundDelivery.objects.filter(
        provider=CONSOLE, subject_id=event.provider_message_id
    ).first()
    if delivery is not None and delivery.outcome.startswith(take_message.NOT_ANSWERED):
        raise NoAnswerError(f"The message is {delivery.outcome}")
    if not Message.objects.filter(
        provider=CONSOLE, provider_message_id=event.provider_message_id
    ).exists():
        raise NoAnswerError("The message could not be stored; the log says why.")
    raise NoAnswerError("The message was stored; by the group's policy it is not answered.")


def _reopened(turn: Turn, content: str) -> Turn:
    """Let a turn whose answer failed be answered anew.

    The apology stays where it was said, but answers nothing any more.
    """
    with transaction.atomic():
        if turn.session_id is not None:
            # Session before turn: the order in which all code locks.
            ChatSession.objects.select_for_update(no_key=True).get(pk=turn.session_id)
        held = Turn.objects.select_for_update(no_key=True).get(pk=turn.pk)
        if held.outcome == Outcome.FAILED:
            Message.objects.filter(pk=held.reply_id).update(answers=None)
            held.parts.all().delete()
            turn_move(
                held,
                TurnState.PENDING,
                reply=None,
                unstored_text=content if held.message_id is None else "",
                unstored_reply="",
                attempts=0,
                error="",
                finished_at=None,
            )
    turn.refresh_from_db()
    return turn


def talk_finish(
    *, turn: Turn, dependencies: Dependencies, patience: timedelta | None = None
) -> Talk:
    """Answer the turn, or wait until another worker has.

    ``patience``: the longest time to wait. Raises NoAnswerError.
    """
    until = None if patience is None else time.monotonic() + patience.total_seconds()
    while turn.state in (*WAITING_STATES, TurnState.SENDING):
        if not chat_answer(chat_id=turn.chat_id, dependencies=dependencies):
            # Another worker is at work in this chat.
            if until is not None and time.monotonic() > until:
                raise NotYetAnsweredError("The chat is busy: the answer isn't there yet.")
            time.sleep(LOOK_AGAIN_SECONDS)
        try:
            turn.refresh_from_db()
        except Turn.DoesNotExist:
            raise NoAnswerError("The chat was erased meanwhile.") from None
    if turn.state == TurnState.HELD:
        raise NoAnswerError("The message is stored; the assistant is paused in this chat.")
    # With an apology for its answer it has failed.
    is_apology = turn.state == TurnState.FAILED and (turn.reply_id or turn.unstored_reply)
    if turn.state != TurnState.SENT and not is_apology:
        raise NoAnswerError(f"The turn ended as {turn.state}. {turn.error}".strip())
    reply = turn.reply.content if turn.reply else turn.unstored_reply
    if turn.session_id is None:
        # Memory is off: the answer was kept only for the caller that waits here.
        redact_derived.unstored_forget(turn)
    return Talk(reply=reply, turn=turn)


def is_group(whatsapp_chat: str) -> bool:
    return whatsapp_chat.endswith("@g.us")


def _event(whatsapp_chat: str, content: str, now: datetime, ref: str) -> InboundMessage:
    message_id = f"console-{ref}"
    in_group = is_group(whatsapp_chat)
    return InboundMessage(
        provider=CONSOLE,
        number_id="",
        delivery_key=message_id,
        provider_message_id=message_id,
        party=chat_addresses.party_of(whatsapp_chat),
        timestamp=now,
        kind="text",
        text=content.replace("\x00", ""),
        group_id=whatsapp_chat if in_group else None,
        mentions_us=in_group,
        business_address="assistant",
    )
