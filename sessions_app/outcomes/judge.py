"""Judge by evidence whether ended sessions helped the people in them.

Evidence for: thanks, a liked answer, a booking that was confirmed, and, where there is nothing
else, silence after an answered question. Against: a hand-over, an answer that failed or for which
nothing was known, a disliked or denied answer, a question that is asked again in the session, or
within a day of its end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.dateparse import parse_datetime

from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.conversations.plain_words import denies
from sessions_app.models import ChatSession, Message, SessionOutcome, Turn, Verdict
from sessions_app.models.messages import ASKING, BY_PHONE, REACTED_AT, REACTIONS, Role
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import HANDOVER, Outcome, TurnState
from sessions_app.outcomes.signs import approval_of, confirms_booking, gives_thanks
from sessions_app.turns.facade import is_unknown, likeness, message_questions

logger = logging.getLogger(__name__)

# Other rules have another number: sessions are judged again.
RULES = 1
# Older sessions aren't judged: no page shows them.
JUDGED_WITHIN = timedelta(days=40)
RETURN_WITHIN = timedelta(hours=24)
# By then a message has its vector.
VECTORS_MADE = timedelta(minutes=2)
AT_ONCE = 200
# So many of a session's newest messages are read, and so many questions of those who came back.
MAX_MESSAGES = 1_000
MAX_RETURNS = 50
# Questions are the same if they are so much more alike than questions about one topic: a cosine of
# 0.6 of the default embedder, which one in a hundred pairs of other questions reaches.
SAME = 1.1

THANKS, LIKED, BOOKED, SILENCE = "thanks", "liked", "booked", "silence"
DENIED, DISLIKED, REPEATED, RETURNED = "denied", "disliked", "repeated", "returned"
HANDED_OVER, NOT_KNOWN, FAILED = "handed_over", "not_known", "failed"
FOR = (THANKS, LIKED, BOOKED, SILENCE)


def sessions_judge(*, embedder: Embedder, now: datetime) -> int:
    """Judge sessions that ended or that something happened to since, the newest first.

    Returns how many. One that can't be judged doesn't block the others.
    """
    judged = 0
    for session_id in _due(now).values_list("pk", flat=True)[:AT_ONCE]:
        try:
            judged += session_judge(session_id=session_id, embedder=embedder, now=now)
        except Exception:
            logger.exception("Session %s can't be judged now.", session_id)
    return judged


def session_judge(*, session_id: UUID, embedder: Embedder, now: datetime) -> bool:
    """Store whether a session helped, and why; return False if it is gone or active.

    What staff decided stays in force. The session is locked, so that no evidence is stored of a
    message that is being erased.
    """
    with transaction.atomic():
        ended = ChatSession.objects.exclude(status=SessionStatus.ACTIVE).filter(pk=session_id)
        session = ended.select_for_update(no_key=True).first()
        if session is None or session.expired_at is None:
            return False
        evidence = sorted(_evidence(session, embedder), key=lambda each: each["at"])
        stored = [{**each, "at": each["at"].isoformat()} for each in evidence]
        SessionOutcome.objects.update_or_create(
            session=session,
            defaults={
                "verdict": verdict_of([each["kind"] for each in evidence]),
                "evidence": stored,
                "rules": RULES,
                "ended_at": session.expired_at,
                "judged_at": now,
            },
        )
    return True


def verdict_of(kinds: Sequence[str]) -> Verdict:
    """Return the verdict by the kinds of evidence, the oldest first.

    A hand-over decides, then the newest evidence; silence only if there is no other.
    """
    if HANDED_OVER in kinds:
        return Verdict.NOT_HELPED
    strong = [kind for kind in kinds if kind != SILENCE]
    if not kinds:
        return Verdict.UNCLEAR
    return Verdict.HELPED if (strong or kinds)[-1] in FOR else Verdict.NOT_HELPED


def _due(now: datetime) -> QuerySet[ChatSession]:
    ended = ChatSession.objects.exclude(status=SessionStatus.ACTIVE)
    back = Message.objects.filter(
        chat=OuterRef("chat"),
        role=Role.USER,
        received_at__gt=OuterRef("expired_at"),
        received_at__lte=OuterRef("expired_at") + RETURN_WITHIN,
    ).exclude(session=OuterRef("pk"))
    back = back.filter(received_at__gt=OuterRef("outcome__judged_at") - VECTORS_MADE)
    came_back = Q(Exists(back), expired_at__gt=now - RETURN_WITHIN - VECTORS_MADE)
    due = Q(outcome=None) | Q(outcome__rules__lt=RULES) | came_back
    return ended.filter(due, last_active__gte=now - JUDGED_WITHIN).order_by("-last_active")


def _evidence(session: ChatSession, embedder: Embedder) -> Iterator[dict[str, Any]]:
    """Yield the evidence: its kind, its message's id, its time, and a reaction's emoji."""
    turns = list(Turn.objects.filter(session=session).select_related(None).order_by("id"))
    unknown = set(Turn.objects.filter(is_unknown(), session=session).values_list("pk", flat=True))
    messages = _messages(session)
    yield from _of_turns(turns, unknown)
    yield from _of_messages(messages, {turn.reply_id for turn in turns if turn.by_hand})
    yield from _of_questions(session, messages, embedder)
    last = messages[-1] if messages else None
    answers = (turn for turn in turns if last and turn.reply_id == last.pk)
    if last and any(_is_answered(turn, messages) and turn.pk not in unknown for turn in answers):
        yield _found(SILENCE, last.pk, session.expired_at)


def _messages(session: ChatSession) -> list[Message]:
    """Return what people and the assistant said in the session, without commands, in order."""
    said = Message.objects.filter(
        session=session, role__in=[Role.USER, Role.ASSISTANT], revoked_at=None
    ).exclude(metadata__has_key="command")
    newest = said.defer("media", "history").order_by("-order_num")[:MAX_MESSAGES]
    return list(reversed(newest))


def _of_turns(turns: Sequence[Turn], unknown: set[int]) -> Iterator[dict[str, Any]]:
    for turn in turns:
        if HANDOVER in turn.context:
            yield _found(HANDED_OVER, turn.message_id, turn.created_at)
        elif turn.state == TurnState.FAILED or turn.outcome == Outcome.FAILED:
            yield _found(FAILED, turn.message_id, turn.created_at)
        elif turn.pk in unknown:
            yield _found(NOT_KNOWN, turn.message_id, turn.created_at)


def _of_messages(messages: Sequence[Message], by_hand: set[Any]) -> Iterator[dict[str, Any]]:
    """Yield what the words and signs of messages tell. by_hand: the replies that staff wrote."""
    was_answered = False
    for message in messages:
        if message.role == Role.ASSISTANT:
            if message.pk not in by_hand and BY_PHONE not in message.metadata:
                was_answered = True
                yield from _of_answer(message)
        # What is said before any answer tells nothing about one.
        elif was_answered and (kind := _reply_kind(message.content)):
            yield _found(kind, message.pk, message.received_at)


def _of_answer(answer: Message) -> Iterator[dict[str, Any]]:
    if confirms_booking(answer.content):
        yield _found(BOOKED, answer.pk, answer.received_at)
    at = parse_datetime(str(answer.metadata.get(REACTED_AT, ""))) or answer.received_at
    reactions = answer.metadata.get(REACTIONS)
    for emoji in map(str, reactions.values() if isinstance(reactions, dict) else ()):
        if (likes := approval_of(emoji)) is not None:
            yield {**_found(LIKED if likes else DISLIKED, answer.pk, at), "emoji": emoji}


def _reply_kind(text: str) -> str:
    """Return what a message says about the answer before it; "" for nothing."""
    likes = approval_of(text)
    if likes is not None:
        return LIKED if likes else DISLIKED
    if denies(text):
        return DENIED
    return THANKS if gives_thanks(text) else ""


def _of_questions(
    session: ChatSession, messages: Sequence[Message], embedder: Embedder
) -> Iterator[dict[str, Any]]:
    """Yield the questions that were asked again: after an answer, or after the session's end."""
    ended = session.expired_at
    later = Message.objects.filter(chat=session.chat_id, role=Role.USER, revoked_at=None)
    later = later.filter(received_at__gt=ended, received_at__lte=ended + RETURN_WITHIN)
    later = later.exclude(session=session).filter(terms__contains=[ASKING]).order_by("received_at")
    asked = [message for message in messages if message.role == Role.USER]
    questions = message_questions([*asked, *later[:MAX_RETURNS]], embedder.model_id)
    answers = [each.received_at for each in messages if each.role == Role.ASSISTANT]
    alike = likeness(questions, embedder.calibration)
    own = {message.pk for message in asked}
    count = sum(question.message_id in own for question in questions)
    for place, question in enumerate(questions):
        # One after the end is compared with those of the session alone.
        earlier = (questions[n] for n in range(min(place, count)) if alike[n, place] >= SAME)
        if any(each.asked_at < at <= question.asked_at for each in earlier for at in answers):
            kind = REPEATED if place < count else RETURNED
            yield _found(kind, question.message_id, question.asked_at)


def _is_answered(turn: Turn, messages: Sequence[Message]) -> bool:
    """Return whether the turn is the assistant's answer to a question, with nothing lacking."""
    asked = next((each for each in messages if each.pk == turn.message_id), None)
    is_answer = turn.outcome in (Outcome.ANSWERED, Outcome.FROM_MEMORY) and not turn.by_hand
    return is_answer and asked is not None and ASKING in asked.terms


def _found(kind: str, message_id: UUID | None, at: Any) -> dict[str, Any]:
    return {"kind": kind, "message_id": None if message_id is None else str(message_id), "at": at}
