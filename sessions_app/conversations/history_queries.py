"""Read the history of a conversation for a prompt."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet, Subquery

from cards_app.rules.extract import (
    Entry,
    Said,
    choose_entries,
    entries_load,
    find_entries,
    render_entries,
    summary_text,
)
from cards_app.rules.session_data import Line
from memoryproject.foundation.text.characters import CHARACTERS_A_TOKEN, estimate_tokens
from sessions_app.conversations.message_text import is_knowledge, speaker_of, text_with_reactions
from sessions_app.models import AssistantProfile, ChatSession, Message, SummarizationMetadata
from sessions_app.models.messages import APOLOGY, Role
from sessions_app.recall.facade import LeftOut

# As many as most histories and their shortened passages have. Each further query costs more than
# the rows that weren't needed.
FIRST_BATCH = 200
MAX_BATCH = 1_600
# If the gap between the summary and the history is longer, only its newest messages are shown.
PASSAGE_MESSAGES = 60
# Limit of messages that are answered one after the other, numbered beyond the last of them.
MAX_BURST = 20
KEEP_LAST = 2
# Where the question to the last messages is looked for: a program may have called so many tools.
MAX_OF_A_TURN = 100
# Summaries that came from outside: each may cover a part of the conversation.
MAX_SUMMARIES_GIVEN = 10
# Summaries have a place of their own in a prompt. What an integrator stored as system text isn't
# passed on: it would command the model in the middle of the conversation, in prompts of its own.
NOT_SAID = (Role.SUMMARY, Role.SYSTEM)
# Before this number are all messages of a session.
_LAST = 2**31 - 1
# What is the same in each query is made once: making it takes longer than reading the rows.
_NOT_READ = ("terms", "history", "media")
_NEWEST_FIRST: QuerySet[Any] = Message.objects.defer(*_NOT_READ).order_by("-order_num")
_SUMMARIES = _NEWEST_FIRST.filter(role=Role.SUMMARY).annotate(
    last_order=F("summarization__last_order"), chapter=F("summarization__chapter")
)
# Questions with their answers.
_QUESTIONS = _NEWEST_FIRST.filter(answers__isnull=True).exclude(role__in=NOT_SAID)
_SAID = _QUESTIONS.select_related("answer").defer(*(f"answer__{name}" for name in _NOT_READ))


@dataclass(frozen=True)
class SummaryMessage:
    """A summary of ours.

    ``last_order``: the last message that it covers. ``entries``: its sentences; None for a summary
    of a version before 1.1, which is one text.
    """

    message: Message
    last_order: int
    entries: Sequence[Entry] | None

    def without(self, shown: set[int]) -> "SummaryMessage | None":
        """Return the summary without what stands in the messages of these order_nums.

        None if nothing else is in it.
        """
        if self.entries is None:
            return self
        rest, content = entries_without(self.entries, shown)
        message = copy(self.message)
        message.content, message.tokens = content, estimate_tokens(content)
        return replace(self, message=message, entries=rest) if rest else None


@dataclass(frozen=True)
class History:
    """The part of a conversation that a prompt holds.

    ``messages``: the newest, oldest first; ``tokens`` is their sum. ``left_out_until``: the
    last place (an order_num, 0 for none) that is not among them. ``summary``: the latest one made
    before the turn's message, without what stands in ``messages``. ``given``: summaries that were
    stored from outside before it, oldest first. ``passage``: the most telling sentences of the
    messages in neither.
    """

    messages: list[Message]
    tokens: int
    left_out_until: int = 0
    summary: SummaryMessage | None = None
    passage: str = ""
    given: Sequence[Message] = ()

    @property
    def summary_text(self) -> str:
        own = [self.summary.message] if self.summary else []
        return "\n".join(message.content for message in [*self.given, *own])


def profile_current() -> AssistantProfile:
    """Return the assistant's profile; its defaults if staff has written none."""
    return AssistantProfile.objects.filter(pk=1).first() or AssistantProfile(pk=1)


def messages_before(
    *, session: ChatSession, limit: int | None = None, before: datetime | None = None
) -> list[Message]:
    """Return the newest ``limit`` messages of a session before ``before``, by order_num.

    Nothing is in them twice: of our summaries there is the newest alone, which tells what the
    others do, without what stands in the messages that are returned.

    ``before`` is a timestamp. Without it, reads no more rows than ``limit``.
    """
    messages = session.messages.defer("terms").order_by("-order_num")
    if before is not None:
        messages = messages.filter(timestamp__lt=before)
    rows = list(messages if limit is None else messages[:limit])[::-1]
    shown = {row.order_num for row in rows if row.role != Role.SUMMARY}
    summaries = [row for row in rows if row.role == Role.SUMMARY]
    made = SummarizationMetadata.objects.filter(summary_message__in=summaries).order_by("number")
    chapters = dict(made.values_list("summary_message", "chapter"))
    *older, newest = chapters or [None]
    rows = [row for row in rows if row.pk not in older]
    entries = entries_load(chapters.get(newest, ""))
    if entries is None:
        return rows
    rest, content = entries_without(entries, shown)
    for row in rows:
        if row.pk == newest:
            row.content, row.tokens = content, estimate_tokens(content)
    return [row for row in rows if rest or row.pk != newest]


def entries_without(entries: Sequence[Entry], shown: set[int]) -> tuple[list[Entry], str]:
    """Return the sentences that don't stand in the messages of these order_nums, and their text."""
    rest = [each for each in entries if not each.is_in(shown)]
    return rest, summary_text(rest)


def summaries_before(*, message: Message) -> tuple[SummaryMessage | None, list[Message]]:
    """Return the latest summary that covers only messages before this one in its session.

    Beside it the summaries that were stored from outside before the message, oldest first: no
    summary of ours covers them.
    """
    earlier = Q(summarization__last_order__lt=message.order_num)
    given = Q(summarization=None, order_num__lt=message.order_num)
    rows = _SUMMARIES.filter(earlier | given, session_id=message.session_id)
    own = None
    others: list[Message] = []
    for stored in rows[: MAX_SUMMARIES_GIVEN + 1]:
        last_order = stored.last_order
        if last_order is None and not stored.revoked_at and stored.content.strip():
            others.insert(0, stored)
        if last_order is not None and own is None:
            own = SummaryMessage(stored, last_order, entries_load(stored.chapter))
    return own, others[-MAX_SUMMARIES_GIVEN:]


def history_until(
    message: Message,
    *,
    user_role: str,
    max_tokens: int,
    max_messages: int | None = None,
    passage_tokens: int = 0,
    walk: Iterator[Message] | None = None,
) -> History:
    """Return the history before a message, and that message, by turns.

    An answer stands after the message that it answers. Messages after this one are left out, in
    whatever order a burst was stored. The newest messages that fit into ``max_tokens`` are taken,
    at least the last two; where not all fit, together with the summary of others. The most telling
    sentences of the messages in neither have at most ``passage_tokens`` (0: left out). Reads as
    many rows as fit, never the whole session.

    user_role: how the passage names the person. walk: one that has arrived at the message, to go
    on with.
    """
    summary, given = summaries_before(message=message)
    summarized = summary.last_order if summary else 0
    # Summaries may have any length: half of the room stays for what was said.
    room = max_tokens - min(_tokens(given), max_tokens // 2)
    walk = conversation_walk(message.session_id, message.order_num) if walk is None else walk
    taken, left_out = _newest(message, walk, room, max_messages)
    gap: list[Message] = []
    if left_out and passage_tokens:
        gap = _unsummarized(chain(left_out, walk), summarized)
    if left_out and summary:
        room = max_tokens - min(_tokens([*given, summary.message]), max_tokens // 2)
    while left_out and not _is_least(taken) and _tokens(taken) > room - passage_tokens * bool(gap):
        popped = [taken.pop()]
        _leave_answers_out(taken, [*popped, *left_out], popped)
        left_out = popped
        gap[:0] = [each for each in popped if passage_tokens and each.order_num > summarized]
    if summary:
        summary = summary.without({each.order_num for each in taken})
    return History(
        messages=taken[::-1],
        tokens=_tokens(taken),
        left_out_until=_place(left_out[0]) if left_out else 0,
        summary=summary,
        passage=_passage(gap[:PASSAGE_MESSAGES][::-1], user_role, passage_tokens),
        given=given,
    )


def _newest(
    last: Message, walk: Iterator[Message], max_tokens: int, max_messages: int | None
) -> tuple[list[Message], list[Message]]:
    """Return the newest turns that fit, and those that were read and don't fit, newest first."""
    taken = [last]
    tokens = last.tokens
    most = max(min(max_messages or max_tokens, max_tokens), 1)
    for message in walk:
        is_full = tokens + message.tokens > max_tokens or len(taken) >= most
        if is_full and len(taken) >= KEEP_LAST and not _belongs(message, taken):
            left_out = [message]
            while left_out[-1].role != Role.USER and len(left_out) < MAX_OF_A_TURN:
                earlier = next(walk, None)
                if earlier is None:
                    break
                left_out.append(earlier)
            _leave_answers_out(taken, left_out[:], left_out)
            return taken, left_out
        taken.append(message)
        tokens += message.tokens
    return taken, []


def _belongs(message: Message, taken: Sequence[Message]) -> bool:
    """Return whether the last messages make no sense without this one.

    That is the question to the answer before the last message, and what leads to the last message
    where a user hasn't said it.
    """
    if all(each.role != Role.USER for each in taken):
        return len(taken) < MAX_OF_A_TURN
    is_answered = message.role == Role.USER and taken[-1].role != Role.USER
    return is_answered and len(taken) == KEEP_LAST


def _is_least(taken: Sequence[Message]) -> bool:
    """Return whether only the last message and the turn before it are left."""
    return len(taken) <= KEEP_LAST or all(each.role != Role.USER for each in taken[1:-1])


def _leave_answers_out(
    taken: list[Message], before: Sequence[Message], left_out: list[Message]
) -> None:
    """Move the oldest messages to those left out, up to a user's, if their question isn't there.

    ``before``: what was read of the messages before them. The owner's own words have no question.
    """
    if any(each.role == Role.USER for each in before):
        while len(taken) > 1 and taken[-1].role != Role.USER:
            left_out.insert(0, taken.pop())


def _unsummarized(walk: Iterator[Message], summarized: int) -> list[Message]:
    """Return the left-out messages that no summary covers, newest first.

    Returns no more than a passage shows. An answer may have a higher number than the summary
    covers although the summary includes its question, so the walk goes a little further.
    """
    gap: list[Message] = []
    for message in walk:
        if _place(message) <= summarized - MAX_BURST or len(gap) >= PASSAGE_MESSAGES:
            break
        if message.order_num > summarized:
            gap.append(message)
    return gap


def _place(message: Message) -> int:
    """Return the number at which a message stands in a prompt: an answer stands at its question's.

    The walk has read the question with it.
    """
    return message.answers.order_num if message.answers else message.order_num


def _tokens(messages: Sequence[Message]) -> int:
    return sum(message.tokens for message in messages)


def conversation_walk(session_id: UUID, before: int = _LAST) -> Iterator[Message]:
    """Yield the messages of a session, newest first, each question right after its answer.

    An apology for a missing answer is none.

    ``before``: only messages with a lower order_num, and their answers. Answers are numbered when
    they are made, so an answer may have a higher order_num.
    """
    rows = _SAID.filter(session_id=session_id)
    size = FIRST_BATCH
    while True:
        batch = list(rows.filter(order_num__lt=before)[:size])
        for message in batch:
            for each in (getattr(message, "answer", None), message):
                if each and not each.revoked_at and APOLOGY not in each.metadata:
                    yield each
        if len(batch) < size:
            return
        before = message.order_num
        size = min(size * 2, MAX_BATCH)


def last_messages(
    session_id: UUID, walk: Iterator[Message]
) -> tuple[Message | None, list[Message]]:
    """Return the last message, and its answer if it has one already.

    An answer counts as part of its question, so that the last message is never an answer.
    ``walk`` has arrived at the last message then.
    """
    answers: list[Message] = []
    for message in walk:
        if message.answers_id is None:
            here = (each for each in answers if each.session_id == session_id)
            return message, [each for each in here if each.answers_id == message.message_id]
        answers.append(message)
    return None, []


def _passage(gap: list[Message], user_role: str, longest: int) -> str:
    """Return the most telling sentences of the gap's messages."""
    lines = [
        Said(
            message.order_num,
            Line(speaker_of(message, user_role=user_role), text_with_reactions(message)),
        )
        for message in gap
        if is_knowledge(message)
    ]
    entries = choose_entries(find_entries(lines), longest=longest * CHARACTERS_A_TOKEN)
    return render_entries(entries)


def messages_left_out(history: History, chat_id: UUID) -> LeftOut:
    """Return the messages of this chat, the history's, that a prompt with it doesn't hold.

    They were said before the last message of the history. Those of earlier sessions are included.
    """
    session_id = history.messages[-1].session_id
    own = ChatSession.objects.filter(pk=session_id).order_by().values("created_at")
    later = ChatSession.objects.order_by().filter(~Q(pk=session_id), chat_id=chat_id)
    return LeftOut(
        session_id=session_id,
        until=history.left_out_until,
        first_id=history.messages[0].message_id,
        later=later.filter(created_at__gte=Subquery(own)).values("pk"),
    )
