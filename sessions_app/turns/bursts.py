"""Answer one thought once: messages that come within seconds get one answer that knows all of them.

A burst is waited for before its answer is begun. What comes while the answer is made, before it is
stored, joins it: then the answer is made anew, once.

A command goes before questions that have waited for long: their model may be slow or away.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from memoryproject.foundation.leases import RELEASED
from sessions_app.conversations.buttons import addressed, is_own_turn
from sessions_app.conversations.plain_words import small_talk
from sessions_app.models import WAITING_STATES, Provider, Turn, TurnState
from sessions_app.models.turns import turn_move
from sessions_app.turns.turn_claims import WHOLE_TURNS, TurnLease, is_command

# The key of a turn's context: its message came while an answer was made, which was dropped.
REMADE = "remade"
# Small talk that asks for nothing.
POLITE = ("thanks", "greeting", "acks")
# Marks the turn of a command, by a slash or in plain words, and of a text that says nothing.
QUICK = "quick"
IS_QUICK = Q(context__has_any_keys=["notice", QUICK])
# Who never stops writing is answered all the same, after so many times the wait for one message.
MAX_WAITS = 4
# So many messages before the newest are read.
LOOKED_AT = 6

# So long a command keeps its place behind a question.
KEEPS_PLACE = timedelta(seconds=10)

OPEN_STATES = (TurnState.PENDING, TurnState.RUNNING)


def without_open_bursts(turns: QuerySet[Turn], *, wait: timedelta, now: datetime) -> QuerySet[Turn]:
    """Leave out the turns of chats whose person may still be writing: wrote within ``wait``.

    A command, a notice and a message whose answer somebody waits for are never put off.
    """
    if not wait:
        return turns
    waiting = Turn.objects.filter(chat=OuterRef("chat"), state=TurnState.PENDING, attempts=0)
    at_once = waiting.filter(IS_QUICK)
    awaited = waiting.filter(provider=Provider.CONSOLE)
    fresh = waiting.filter(created_at__gt=now - wait)
    old = waiting.filter(created_at__lte=now - MAX_WAITS * wait)
    return turns.exclude(Exists(fresh) & ~Exists(old) & ~Exists(at_once) & ~Exists(awaited))


def burst_join(lease: TurnLease, *, gap: timedelta, begun_at: datetime | None = None) -> TurnLease:
    """Merge the burst that begins with the lease's turn into its newest turn.

    The newest message of the burst stands for the others. Each came within ``gap`` of the one
    before it, or after ``begun_at``, when the answer was begun.

    Returns the lease of the turn to answer, which is the same one where it is alone. Raises
    LeaseLostError.
    """
    while len(burst := _burst(lease, gap, begun_at)) > 1:
        if merged := _merge(lease, burst):
            return merged
    return lease


def commands_first(now: datetime) -> QuerySet[Turn]:
    """Return the commands and notices that go before all that waits in their chats.

    That is nothing but questions, the first of which came more than KEEPS_PLACE ago. Commands keep
    their order.
    """
    of_chat = Turn.objects.filter(chat=OuterRef("chat"))
    before = of_chat.filter(id__lt=OuterRef("id"), state__in=WAITING_STATES)
    late = before.filter(created_at__lte=now - KEEPS_PLACE)
    others = before.filter(Q(state=TurnState.REPLIED) | IS_QUICK)
    sending = of_chat.filter(state=TurnState.SENDING, lease_until__gt=now)
    first = Turn.objects.filter(
        IS_QUICK, state=TurnState.PENDING, attempts=0, lease_token=None, not_before=None
    )
    return first.filter(Exists(late), ~Exists(others), ~Exists(sending)).order_by("id")


def command_claim(*, chat_id: UUID) -> TurnLease | None:
    """Claim a command that goes before the questions of its chat; None where there is none.

    It isn't running, because a question may be.
    """
    now = timezone.now()
    keys = commands_first(now).filter(chat=chat_id).values("pk")[:1]
    turn = WHOLE_TURNS.filter(pk__in=keys).first()
    if turn is None:
        return None
    text = turn.message.content if turn.message else turn.unstored_text
    if text.strip() and not is_command(turn):
        # It was edited since.
        return None
    token, mine = uuid4(), commands_first(now).filter(pk=turn.pk)
    if not mine.update(attempts=1, **Turn.lease_values(token, now)):
        return None
    turn.attempts = 1
    return TurnLease(turn, token)


def texts_to_answer(turn: Turn, text: str) -> list[str]:
    """Return the texts of the burst that the turn answers, without thanks and greetings.

    ``text``: that of the turn's own message, which stands alone where nothing else was said.
    """
    texts = [text, *texts_before(turn, (TurnState.MERGED,))]
    if len(texts) == 1:
        return texts
    language = turn.chat.language
    return [
        each
        for each in reversed(texts)
        if each.strip() and (small_talk(each, language=language) or ("",))[0] not in POLITE
    ] or [text]


def texts_before(turn: Any, states: Collection[str]) -> Iterator[str]:
    """Yield the person's texts just before this one, the newest first, whose turns are in a state.

    That is the rest of a burst, and what waited while the assistant was paused.
    """
    if turn.state_before not in states:
        return
    before = Turn.objects.filter(session=turn.session_id, id__lt=turn.pk).order_by("-id")
    for earlier in before.select_related("message").defer("message__terms")[:LOOKED_AT]:
        if earlier.state not in states:
            return
        if earlier.message and not earlier.message.revoked_at and is_own_turn(earlier):
            yield addressed(earlier.message.content, in_group=turn.chat.is_group)


def names_file(context: Mapping[str, Any]) -> bool:
    """Return whether the turn has a file to read, which is done in its own turn."""
    return context.get("kind") in ("document", "voice", "audio")


def _burst(lease: TurnLease, gap: timedelta, begun_at: datetime | None) -> list[Turn]:
    """Return the turns that can be answered with the one of the lease, that one first.

    The burst ends before the first command, and in a group before another member's message.
    Messages at its end that hold nothing to read are left out, unless all do, as in an album. The
    list is empty where the turn must not be answered with others.
    """
    first = Turn.objects.only("chat_id").get(pk=lease.turn_id)
    waiting = Turn.objects.filter(
        chat_id=first.chat_id, state__in=OPEN_STATES, id__gte=lease.turn_id
    )
    burst: list[Turn] = []
    talk, last = None, 0
    for turn in waiting.select_related("message", "chat").order_by("id"):
        is_alone = turn.message is None or is_command(turn) or names_file(turn.context)
        # A caller in the terminal or at the API waits for this very answer.
        is_awaited = turn.provider == str(Provider.CONSOLE)
        before = talk
        talk = turn.session_id, turn.chat.is_group and turn.message and turn.message.sender
        is_later = burst and turn.created_at - burst[-1].created_at > gap
        is_meanwhile = begun_at is not None and turn.created_at >= begun_at
        is_others = burst and talk != before
        if is_alone or is_awaited or is_others or (is_later and not is_meanwhile):
            break
        burst.append(turn)
        if turn.message and turn.message.content.strip():
            last = len(burst)
    return burst[: last or None] if burst and burst[0].pk == lease.turn_id else []


def _merge(lease: TurnLease, burst: list[Turn]) -> TurnLease | None:
    """Hand the lease from the burst's first turn to its newest.

    The older messages stay in the history, where the newest turn's prompt has them. Returns None,
    and changes nothing, where one of the turns was cancelled meanwhile.
    """
    with transaction.atomic():
        held = lease.lock()
        turns = Turn.objects.select_for_update().filter(pk__in=[turn.pk for turn in burst])
        *older, newest = turns.order_by("id")
        if any(turn.state not in OPEN_STATES for turn in (*older, newest)):
            return None
        # The older ones first: one chat has one running turn.
        for turn in older:
            turn_move(
                turn,
                TurnState.MERGED,
                finished_at=timezone.now(),
                lease_token=None,
                context={**turn.context, "merged_into": str(newest.turn_id)},
            )
        turn_move(
            newest,
            TurnState.RUNNING,
            attempts=newest.attempts + 1,
            **{name: getattr(held, name) for name in RELEASED},
        )
        # Within the transaction: without this lease nobody could release the newest turn's.
        return TurnLease(WHOLE_TURNS.get(pk=newest.pk), lease.token)
