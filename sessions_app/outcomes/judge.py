"""Judge by evidence whether ended sessions helped the people in them.

Evidence for: thanks, a liked answer, a booking that was confirmed, and, where there is nothing
else, silence after an answered question. Against: a hand-over, an answer that failed or for which
nothing was known, a disliked or denied answer, a question that is asked again in the session, or
within a day of its end.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.dateparse import parse_datetime

from cards_app.rules.words import is_question, split_sentences
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.conversations.phrases import BOOKED, MAX_LENGTH, languages, phrases_at, words_of
from sessions_app.conversations.plain_words import ACK_SIGNS, IGNORED_SIGNS, asks_in_words, denies
from sessions_app.inbox.needs import is_unknown
from sessions_app.models import ChatSession, Evidence, Message, SessionOutcome, Turn, Verdict
from sessions_app.models.messages import ASKING, BY_PHONE, REACTED_AT, REACTIONS, SURVEY, Role
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import HANDOVER, Outcome, TurnState
from sessions_app.turns.facade import likeness, message_questions

logger = logging.getLogger(__name__)

# Other rules have another number: sessions are judged again.
RULES = 2
# Older sessions aren't judged: no page shows them.
JUDGED_WITHIN = timedelta(days=40)
RETURN_WITHIN = timedelta(hours=24)
# By then a message has its vector.
VECTORS_MADE = timedelta(minutes=2)
AT_ONCE = 200
# So many of a session's newest messages are read, and so many questions of those who came back.
MAX_MESSAGES, MAX_RETURNS = 1_000, 50
# Questions are the same if they are so much more alike than questions about one topic: a cosine of
# 0.6 of the default embedder, which one in a hundred pairs of other questions reaches.
SAME = 1.1

SPOKEN, ANSWERED = (Role.USER, Role.ASSISTANT), (Outcome.ANSWERED, Outcome.FROM_MEMORY)
LIKES = {True: Evidence.LIKED, False: Evidence.DISLIKED, None: ""}
SAID = {True: Evidence.SAID_YES, False: Evidence.SAID_NO}
FOR = (Evidence.THANKS, Evidence.LIKED, Evidence.BOOKED, Evidence.SILENCE, Evidence.SAID_YES)


# When it was, its kind, the id of its message, and the emoji of a reaction.
Found: TypeAlias = tuple[datetime, str, Any, str]


def sessions_judge(*, embedder: Embedder, now: datetime) -> int:
    """Judge sessions that ended or that something happened to since, the newest first.

    Returns how many were due. One that can't be judged doesn't block the others.
    """
    due = list(_due(now).values_list("pk", flat=True)[:AT_ONCE])
    for session_id in due:
        try:
            session_judge(session_id=session_id, embedder=embedder, now=now)
        except Exception:
            logger.exception("Session %s can't be judged now.", session_id)
    return len(due)


def session_judge(*, session_id: UUID, embedder: Embedder, now: datetime) -> None:
    """Store whether an ended session helped, and why.

    What staff decided stays in force. The session is locked, so that no evidence is stored of a
    message that is being erased.
    """
    ended = ChatSession.objects.exclude(status=SessionStatus.ACTIVE).filter(pk=session_id)
    with transaction.atomic():
        session = ended.select_for_update(no_key=True).first()
        if session is None or (ended_at := session.expired_at) is None:
            return
        # What was said in a message that is gone is no evidence.
        found = sorted(
            filter(itemgetter(2), _evidence(session, ended_at, embedder)), key=itemgetter(0)
        )
        judged = {
            "verdict": verdict_of([kind for _at, kind, *_more in found]),
            "evidence": [
                {"kind": kind, "message_id": str(key), "at": at.isoformat(), "emoji": emoji}
                for at, kind, key, emoji in found
            ],
            "rules": RULES,
            "ended_at": ended_at,
            "judged_at": now,
        }
        SessionOutcome.objects.update_or_create(session=session, defaults=judged)


def verdict_of(kinds: Sequence[str]) -> str:
    """Return the verdict by the kinds of evidence, the oldest first.

    What the person said when asked decides, then a hand-over, then the newest evidence; silence
    only if there is no other.
    """
    if not kinds:
        return Verdict.UNCLEAR
    if answers := [kind for kind in kinds if kind in SAID.values()]:
        return Verdict.HELPED if answers[-1] == Evidence.SAID_YES else Verdict.NOT_HELPED
    strong = [kind for kind in kinds if kind != Evidence.SILENCE] or kinds
    helped = Evidence.HANDED_OVER not in kinds and strong[-1] in FOR
    return Verdict.HELPED if helped else Verdict.NOT_HELPED


def is_doubtful(session: ChatSession, *, embedder: Embedder, now: datetime) -> bool:
    """Return whether a question was answered, and nothing but silence tells if that helped."""
    kinds = {kind for _at, kind, *_more in _evidence(session, now, embedder)}
    answered = Turn.objects.filter(session=session, state=TurnState.SENT, by_hand=False)
    questions = answered.filter(outcome__in=ANSWERED, message__terms__contains=[ASKING])
    return kinds <= {Evidence.SILENCE} and questions.exists()


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


def _evidence(session: ChatSession, ended_at: datetime, embedder: Embedder) -> Iterator[Found]:
    turns = list(Turn.objects.filter(session=session).order_by("id"))
    unknown = set(Turn.objects.filter(is_unknown(), session=session).values_list("pk", flat=True))
    spoken = Message.objects.filter(session=session, role__in=SPOKEN, revoked_at=None)
    spoken = spoken.exclude(metadata__has_any_keys=["command", SURVEY]).defer("media", "history")
    messages = list(spoken.order_by("-order_num")[:MAX_MESSAGES])[::-1]
    for turn in turns:
        if HANDOVER in turn.context:
            yield turn.created_at, Evidence.HANDED_OVER, turn.message_id, ""
        elif turn.state == TurnState.FAILED or turn.outcome == Outcome.FAILED:
            yield turn.created_at, Evidence.FAILED, turn.message_id, ""
        elif turn.pk in unknown:
            yield turn.created_at, Evidence.NOT_KNOWN, turn.message_id, ""
    since = Message.objects.filter(chat=session.chat_id, received_at__gte=session.created_at)
    replies = since.filter(role=Role.USER, revoked_at=None, metadata__survey__0=str(session.pk))
    for message in replies:
        yield message.received_at, SAID[message.metadata[SURVEY][1]], message.pk, ""
    yield from _of_messages(messages, {turn.reply_id for turn in turns if turn.by_hand})
    yield from _of_questions(messages, session, ended_at, embedder)
    asking = {message.pk for message in messages if ASKING in message.terms}
    answers = {
        turn.reply_id
        for turn in turns
        if turn.message_id in asking and turn.outcome in ANSWERED and turn.pk not in unknown
    }
    if messages and messages[-1].pk in answers:
        yield ended_at, Evidence.SILENCE, messages[-1].pk, ""


def _of_messages(messages: Sequence[Message], by_hand: set[UUID | None]) -> Iterator[Found]:
    """Yield what the words and signs of messages tell. by_hand: the replies that staff wrote."""
    was_answered = False
    for message in messages:
        at, by_staff = message.received_at, message.pk in by_hand or BY_PHONE in message.metadata
        if message.role == Role.ASSISTANT and not by_staff:
            was_answered = True
            if confirms_booking(message.content):
                yield at, Evidence.BOOKED, message.pk, ""
            yield from _of_reactions(message)
        # What is said before any answer tells nothing about one.
        elif was_answered and not by_staff and (kind := _reply_kind(message.content)):
            yield at, kind, message.pk, ""


def _of_reactions(answer: Message) -> Iterator[Found]:
    at = parse_datetime(str(answer.metadata.get(REACTED_AT, ""))) or answer.received_at
    reactions = answer.metadata.get(REACTIONS)
    for emoji in map(str, reactions.values() if isinstance(reactions, dict) else ()):
        if kind := LIKES[approval_of(emoji)]:
            yield at, kind, answer.pk, emoji


def _reply_kind(text: str) -> str:
    """Return what a message says about the answer before it; "" for nothing."""
    if kind := LIKES[approval_of(text)]:
        return kind
    if denies(text):
        return Evidence.DENIED
    return Evidence.THANKS if gives_thanks(text) else ""


def _of_questions(
    messages: Sequence[Message], session: ChatSession, ended_at: datetime, embedder: Embedder
) -> Iterator[Found]:
    """Yield the questions that were asked again: after an answer, or after the session's end."""
    own = [each for each in messages if each.role == Role.USER and ASKING in each.terms]
    later = Message.objects.filter(
        chat=session.chat_id,
        role=Role.USER,
        revoked_at=None,
        received_at__range=(ended_at, ended_at + RETURN_WITHIN),
        terms__contains=[ASKING],
    ).exclude(session=session)
    returned = later.order_by("received_at")[:MAX_RETURNS]
    questions = message_questions([*own, *returned], embedder.model_id)
    answers = [each.received_at for each in messages if each.role == Role.ASSISTANT]
    alike = likeness(questions, embedder.calibration)
    own_ids = {message.pk for message in own}
    count = sum(question.message_id in own_ids for question in questions)
    for place, question in enumerate(questions):
        # One after the end is compared with those of the session alone.
        earlier = (questions[n] for n in range(min(place, count)) if alike[n, place] >= SAME)
        if any(each.asked_at < at <= question.asked_at for each in earlier for at in answers):
            kind = Evidence.REPEATED if place < count else Evidence.RETURNED
            yield question.asked_at, kind, question.message_id, ""


# What a message says, in any of the languages in conversations/languages.


GOOD_SIGNS = ACK_SIGNS + "😍🥰😘😁🤗🥳🔥⭐🌟♥💕💖💗💙💚💛🧡💜🤍🖤🤎🤩☺"
BAD_SIGNS = "👎😡🤬😠😤😒🙄😞😢😭💔🤮🖕💩😕🙁☹"


def approval_of(text: str) -> bool | None:
    """Return whether signs without words like or dislike something; None: they say neither."""
    signs = {sign for sign in text if not sign.isspace() and sign not in IGNORED_SIGNS}
    return signs.isdisjoint(BAD_SIGNS) if signs and signs <= {*GOOD_SIGNS, *BAD_SIGNS} else None


def gives_thanks(text: str) -> bool:
    """Return whether the message thanks: not as part of a complaint, a refusal or a question."""
    is_meant = set(text).isdisjoint(BAD_SIGNS) and not (asks_in_words(text) or denies(text))
    return is_meant and _says(text, "thanks", ("thanks_not", "negations"))


def confirms_booking(text: str) -> bool:
    """Return whether one of its sentences says that something was booked for the person."""
    sentences = (sentence.text for sentence in split_sentences(text))
    return any(not is_question(s) and _says(s, BOOKED, ("booked_not",)) for s in sentences)


def _says(text: str, kind: str, cancelled_by: Sequence[str]) -> bool:
    """Return whether a phrase of the kind is in the text, and no word of its language cancels it.

    "No, thanks" and "no thanks" say the opposite.
    """
    texts = [word.text for word in words_of(text[:MAX_LENGTH])]
    for place in range(len(texts)):
        # "Thx" is said in several languages: the words of any of them may cancel it.
        spoken = {phrase.language for phrase in phrases_at(texts[place:], (kind,))}
        if spoken and not any(_cancels(texts, place, each, cancelled_by) for each in spoken):
            return True
    return False


def _cancels(texts: Sequence[str], place: int, code: str, cancelled_by: Sequence[str]) -> bool:
    language = languages()[code]
    cancelling = frozenset[str]().union(*(language[name] for name in cancelled_by))
    no = [word.text for word in words_of(language["texts"]["no"])]
    return not cancelling.isdisjoint(texts) or texts[max(place - len(no), 0) : place] == no
