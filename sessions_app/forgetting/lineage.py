"""Find which answers were given which erased texts, by the turns' own records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sessions_app.forgetting.recalled_entries import objects_named
from sessions_app.forgetting.sweep import Sweep
from sessions_app.models import Message, Turn, TurnReplay
from sessions_app.models.messages import Role


@dataclass(frozen=True)
class Answered:
    """A deleted message that a turn answered: its id and its place in its session."""

    message_id: str
    order_num: int


class Lineage:
    """Which answers were given which erased texts.

    Build it before the messages are deleted. ``texts_by_id``: see DeletionPlan; the parts that are
    cut out of an answer are stated by that answer from then on.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self.texts_by_id = sweep.plan.texts_by_id
        self.ids = set(sweep.ids)
        # The erased texts that each id carries: an object its own, an answer those it was given.
        self._carried: defaultdict[str, set[str]] = defaultdict(set)
        for key in self.ids & self.texts_by_id.keys():
            self._carried[key].add(key)
        # The same of each session, from a place in it on.
        self._in_session: defaultdict[UUID, list[tuple[int, set[str]]]] = defaultdict(list)
        self._answered: dict[int, Answered] = {}
        messages = Message.objects.filter(pk__in=sweep.plan.messages)
        rows = messages.values_list("pk", "session_id", "order_num", "turn__id", "role")
        for key, session_id, order_num, turn_id, role in rows.iterator():
            if turn_id is not None:
                self._answered[turn_id] = Answered(str(key), order_num)
            after = 0 if role == Role.USER else 1
            self._in_session[session_id].append((order_num + after, {str(key)}))
            self._carried[str(session_id)].add(str(key))

    def given(self, turn: Turn, replay: TurnReplay, seen: Collection[str] | None) -> set[str]:
        """Return the ids of the erased objects and redacted answers whose texts a turn had.

        ``seen``: the messages whose pictures its model saw; None if no model was asked, such as
        for a command, which reads nothing of its session.
        """
        named = set(seen or ())
        answered = self._answered.get(turn.pk)
        if answered is not None:
            named.add(answered.message_id)
        keys = self.listed(replay)
        keys |= {key for name in named & self._carried.keys() for key in self._carried[name]}
        if turn.session_id is not None and seen is not None:
            place = self._place(turn)
            for since, handed_on in self._in_session[turn.session_id]:
                keys |= handed_on if since <= place else set()
        return keys

    def listed(self, replay: TurnReplay) -> set[str]:
        """Return the same of what was recalled for a turn, and what it listed."""
        named = {*objects_named(replay.recalled), *replay.shown}
        return {key for name in named & self._carried.keys() for key in self._carried[name]}

    def hand_on(self, turn: Turn, keys: set[str], removed: Collection[str]) -> None:
        """Record that later turns may have the texts from this turn's answer."""
        if turn.reply_id is not None:
            answer = str(turn.reply_id)
            self.texts_by_id[answer].update(removed)
            keys = keys | {answer}
            self._carried[answer] |= keys
        if turn.session_id is not None:
            self._in_session[turn.session_id].append((self._place(turn) + 1, keys))
            self._carried[str(turn.session_id)] |= keys

    def _place(self, turn: Turn) -> int:
        """Return the place of the answered message in its session."""
        if turn.message is not None:
            return turn.message.order_num
        answered = self._answered.get(turn.pk)
        if answered is not None:
            return answered.order_num
        # Its message was deleted before: the answer stands behind it.
        return turn.reply.order_num - 1 if turn.reply is not None else 0
