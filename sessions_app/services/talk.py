"""One whole turn for a caller who waits for the answer: the terminal and the API."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from datetime import datetime

from memoryproject.integrations.whatsapp.events import InboundMessage, Party
from memoryproject.integrations.whatsapp.recording import RecordingProvider
from sessions_app.models import Turn
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.services.inbound import events_receive
from sessions_app.services.intake import IntakeRules
from sessions_app.services.tools import Tools
from sessions_app.services.work import chat_answer

CONSOLE = "console"
LOOK_AGAIN_SECONDS = 0.2


class NoAnswerError(Exception):
    """The turn ended without an answer; the text says why."""


@dataclass(frozen=True)
class Talk:
    """The answer and the turn that holds how it came about."""

    reply: str
    turn: Turn


def talk(
    *, whatsapp_chat: str, content: str, tools: Tools, rules: IntakeRules, now: datetime
) -> Talk:
    """Say something in a chat and wait for the answer, behind the turns already waiting
    there. Nothing of it is sent to WhatsApp. Raises NoAnswerError.
    """
    heard = RecordingProvider(name=CONSOLE)
    providers = {**tools.providers, CONSOLE: heard}
    tools = replace(tools, providers=providers)
    event = _event(whatsapp_chat, content, now)
    events_receive(received=[event], rules=rules, enqueue=lambda _: None, now=now)
    turn = Turn.objects.filter(
        provider=CONSOLE, provider_message_id=event.provider_message_id
    ).first()
    if turn is None:
        raise NoAnswerError("The message was stored; by the group's policy it is not answered.")
    while turn.state in (*WAITING_STATES, TurnState.SENDING):
        if not chat_answer(chat_id=turn.chat_id, tools=tools):
            # Another worker is at work in this chat.
            time.sleep(LOOK_AGAIN_SECONDS)
        turn.refresh_from_db()
    if turn.state != TurnState.SENT:
        raise NoAnswerError(f"The turn ended as {turn.state}. {turn.error}".strip())
    reply = turn.reply.content if turn.reply else "\n".join(part.text for part in heard.sent)
    return Talk(reply=reply, turn=turn)


def party_of(whatsapp_chat: str) -> Party:
    """Who is behind an address in ``whatsapp_chat`` form."""
    name, _, domain = whatsapp_chat.partition("@")
    if domain == "c.us" and name.isdigit():
        return Party(phone=name)
    if domain == "bsuid":
        return Party(bsuid=name)
    return Party(other=whatsapp_chat)


def _event(whatsapp_chat: str, content: str, now: datetime) -> InboundMessage:
    message_id = f"console-{uuid.uuid4()}"
    is_group = whatsapp_chat.endswith("@g.us")
    return InboundMessage(
        provider=CONSOLE,
        number_id="",
        delivery_key=message_id,
        provider_message_id=message_id,
        party=party_of(whatsapp_chat),
        timestamp=now,
        kind="text",
        text=content.replace("\x00", ""),
        group_id=whatsapp_chat if is_group else None,
        mentions_us=is_group,
        business_address="assistant",
    )
