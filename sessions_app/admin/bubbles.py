"""What the page of a conversation shows of each message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django.urls import reverse
from django.utils.timezone import localdate

from sessions_app.models import Chat, ChatSession, Message, SummarizationMetadata, Turn
from sessions_app.models.messages import DeliveryStatus, Role
from sessions_app.models.turns import TurnState

# As WhatsApp shows them: one tick, two, and two in colour.
TICKS = {
    DeliveryStatus.SENT: ("✓", ""),
    DeliveryStatus.DELIVERED: ("✓✓", ""),
    DeliveryStatus.READ: ("✓✓", "read"),
    DeliveryStatus.PLAYED: ("✓✓", "read"),
    DeliveryStatus.FAILED: ("!", "failed"),
}
TROUBLED = {
    TurnState.FAILED: "the answer failed",
    TurnState.MISSED: "not answered: it came too late",
    TurnState.UNCONFIRMED: "it isn't known whether the answer went out",
    TurnState.PENDING: "waits for its answer",
    TurnState.RUNNING: "is being answered",
    TurnState.REPLIED: "is being answered",
    TurnState.SENDING: "is being answered",
}


@dataclass(frozen=True)
class Bubble:
    """``side``: in (the person's), out (ours) or note (neither's). ``day`` and ``begins`` are set
    on the first message of a day and of a session. ``why``: the address of the replay of the
    answer. ``trouble``: what there is to know of the message's turn."""

    message: Message
    side: str
    who: str
    day: date | None
    begins: ChatSession | None
    sums_up: SummarizationMetadata | None
    tick: str
    tick_class: str
    quoted: Message | None
    reactions: Sequence[str]
    why: str
    trouble: str

    @property
    def kind(self) -> str:
        return "" if self.message.kind == "text" else self.message.kind

    @property
    def filename(self) -> str:
        return str(self.message.media.get("filename", ""))


@dataclass
class _Around:
    """What the messages of a page refer to."""

    quoted: dict[str, Message] = field(default_factory=dict)
    turns: dict[Any, Turn] = field(default_factory=dict)


def bubbles_of(chat: Chat, messages: Sequence[Message]) -> list[Bubble]:
    """In the order of the messages, by as many queries for one as for a page."""
    around = _around(chat, messages)
    found: list[Bubble] = []
    day: date | None = None
    session: ChatSession | None = None
    for message in messages:
        new_day = localdate(message.timestamp)
        begins = message.session if session is None or session != message.session else None
        found.append(_bubble(chat, message, new_day if new_day != day else None, begins, around))
        day, session = new_day, message.session
    return found


def _bubble(
    chat: Chat,
    message: Message,
    day: date | None,
    begins: ChatSession | None,
    around: _Around,
) -> Bubble:
    tick, tick_class = TICKS.get(message.delivery_status, ("", ""))
    turn = around.turns.get(message.pk)
    answered = turn is not None and turn.reply_id == message.pk
    return Bubble(
        message=message,
        side={Role.USER: "in", Role.ASSISTANT: "out"}.get(message.role, "note"),
        who=_who(chat, message),
        day=day,
        begins=begins,
        sums_up=getattr(message, "summarization", None),
        tick=tick,
        tick_class=tick_class,
        quoted=around.quoted.get(str(message.metadata.get("reply_to_id", ""))),
        reactions=[str(emoji) for emoji in message.metadata.get("reactions", {}).values()],
        why=reverse("admin:sessions_app_turn_change", args=[turn.pk]) if turn else "",
        trouble="" if turn is None or answered else TROUBLED.get(turn.state, ""),
    )


def _who(chat: Chat, message: Message) -> str:
    """In a group each message says whose it is."""
    if message.role == Role.ASSISTANT or not chat.is_group:
        return ""
    return str(message.metadata.get("sender_name") or message.sender)


def _around(chat: Chat, messages: Iterable[Message]) -> _Around:
    messages = list(messages)
    quoted = {str(message.metadata.get("reply_to_id", "")) for message in messages} - {""}
    keys = [message.pk for message in messages]
    turns = Turn.objects.only("pk", "state", "message_id", "reply_id")
    about = _Around()
    for message in Message.objects.filter(chat=chat, provider_message_id__in=quoted).defer("terms"):
        about.quoted[str(message.provider_message_id)] = message
    for turn in turns.filter(message__in=keys):
        about.turns[turn.message_id] = turn
    for turn in turns.filter(reply__in=keys):
        about.turns[turn.reply_id] = turn
    return about
