"""Reads: every query that is more than one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q

from sessions_app.models import AssistantProfile, ChatSession, Message, Turn
from sessions_app.models.messages import Role

HISTORY_BATCH = 50


@dataclass(frozen=True)
class History:
    """The messages of a prompt, oldest first, and what the budget left out: the messages of
    the session up to ``left_out_until`` (an order_num, 0 for none)."""

    messages: list[Message]
    tokens: int
    left_out_until: int = 0


def profile_current() -> AssistantProfile:
    """The assistant's profile; its defaults where staff has written none."""
    return AssistantProfile.objects.filter(pk=1).first() or AssistantProfile(pk=1)


def conversation_history(*, session: ChatSession) -> list[dict[str, str]]:
    """The session's window as a model reads it: ``[{"role", "content"}]`` in order."""
    window = session.messages.filter(order_num__gte=session.window_start).order_by("order_num")
    return [{"role": message.role, "content": message.content} for message in window]


def history_for_turn(*, turn: Turn, max_tokens: int, max_messages: int | None = None) -> History:
    """What was said before the turn's message, and that message, by turns.

    An answer stands after the message that it answers, and nothing that came after the
    turn's message is there, whatever the order in which a burst was stored. The newest
    messages that fit into ``max_tokens`` are taken, at least the last two. Reads as many rows
    as fit, never the whole session.
    """
    assert turn.message is not None
    last = turn.message
    taken: list[Message] = [last]
    tokens = last.tokens
    limit = min(max_messages or max_tokens, max_tokens)
    for message in _backwards(last):
        full = tokens + message.tokens > max_tokens or len(taken) >= limit
        if full and len(taken) >= 2:
            return History(taken[::-1], tokens, left_out_until=_place(message))
        taken.append(message)
        tokens += message.tokens
    return History(taken[::-1], tokens)


def _backwards(last: Message) -> Iterator[Message]:
    """The messages before ``last``, newest first: each question right after its answer.

    Answers are numbered when they are made, so one may carry a higher order_num than
    ``last``; each is read with the message that it answers.
    """
    said = Message.objects.filter(session_id=last.session_id)
    # Summaries have their own place in a prompt.
    said = said.exclude(role=Role.SUMMARY).filter(answers__isnull=True)
    before = last.order_num
    while True:
        batch = list(
            said.filter(order_num__lt=before)
            .select_related("answer")
            .order_by("-order_num")[:HISTORY_BATCH]
        )
        for message in batch:
            answer = getattr(message, "answer", None)
            if answer is not None and answer.revoked_at is None:
                yield answer
            if message.revoked_at is None:
                yield message
        if len(batch) < HISTORY_BATCH:
            return
        before = batch[-1].order_num


def _place(message: Message) -> int:
    """Where a message stands in the conversation: an answer stands with its question."""
    return message.answers.order_num if message.answers else message.order_num


def messages_left_out(*, turn: Turn, history: History) -> Q:
    """A condition on messages of the turn's chat: said before the turn's message and not in
    its prompt. Those of earlier sessions are among them."""
    session = history.messages[-1].session
    earlier = Q(session__created_at__lt=session.created_at)
    until = history.left_out_until
    same = Q(session_id=session.pk) & (
        Q(order_num__lte=until, answers__isnull=True) | Q(answers__order_num__lte=until)
    )
    return (earlier | same) & ~Q(pk=history.messages[0].pk)
