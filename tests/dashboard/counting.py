"""The dashboard's figures, counted over the tables in the plainest way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.admin_kit.list_filters import DAYS, period_named
from memoryproject.staff_site.dashboard.figures import Figures, figures_of
from memoryproject.staff_site.dashboard.rollups import ERROR, MIN_LENGTH, rollups_recount
from sessions_app.models import ForgetReceipt, Message, Turn, TurnReplay


@dataclass
class Rows:
    """All rows that are counted, read once for all slots."""

    messages: list[Message]
    turns: list[Turn]
    receipts: list[ForgetReceipt]
    memories: list[Memory]

    @classmethod
    def read(cls) -> Rows:
        return cls(
            messages=list(Message.objects.all()),
            turns=list(
                Turn.objects.select_related("replay", "message").prefetch_related("ratings")
            ),
            receipts=list(ForgetReceipt.objects.all()),
            memories=list(Memory.objects.all()),
        )


def counted(rows: Rows, start: datetime, end: datetime) -> dict[str, Any]:
    """Every figure that is summed up, from here to there."""
    messages = [one for one in rows.messages if start <= one.received_at < end]
    turns = [one for one in rows.turns if start <= one.created_at < end]
    receipts = [one for one in rows.receipts if start <= one.forgotten_at < end]
    memories = [one for one in rows.memories if start <= one.created_at < end]
    tokens: dict[str, tuple[int, int]] = {}
    for turn in turns:
        replay = TurnReplay.of(turn)
        sent, got = replay.prompt_tokens or 0, replay.completion_tokens or 0
        if sent or got:
            before = tokens.get(replay.model, (0, 0))
            tokens[replay.model] = (before[0] + sent, before[1] + got)
    return {
        "messages": len(messages),
        "messages_in": sum(one.role == "user" for one in messages),
        "messages_out": sum(one.role == "assistant" for one in messages),
        "chats": len({one.chat_id for one in messages} | {one.chat_id for one in turns}),
        "answers": sum(one.state == "sent" for one in turns),
        "failed": sum(one.state == "failed" for one in turns),
        "missed": sum(one.state == "missed" for one in turns),
        "held": sum(one.state == "held" for one in turns),
        "unknown": sum(is_unknown(one) for one in turns),
        "rated_good": sum(any(each.is_good for each in one.ratings.all()) for one in turns),
        "rated_bad": sum(any(not each.is_good for each in one.ratings.all()) for one in turns),
        "memories_added": len(memories),
        "receipts": len(receipts),
        "memories_forgotten": sum(one.swept.get("memories_app_memory", 0) for one in receipts),
        "tokens": tokens,
    }


def is_unknown(turn: Turn) -> bool:
    """Whether a model answered a question for which nothing was recalled."""
    replay, message = TurnReplay.of(turn), turn.message
    if turn.state != "sent" or turn.by_hand or message is None or "!asks" not in message.terms:
        return False
    sources = {entry.get("source") for entry in replay.recalled}
    is_below = bool(replay.recalled and replay.recalled[0].get("nearest"))
    return bool(replay.model) and (is_below or not sources & {"memory", "message"})


def seconds_taken(rows: Rows, start: datetime, end: datetime) -> list[float]:
    """How long the answers took that were asked for from here to there, in order."""
    spans = [
        turn.finished_at - turn.created_at
        for turn in rows.turns
        if turn.state == "sent" and start <= turn.created_at < end and turn.finished_at
    ]
    return sorted(span.total_seconds() for span in spans)


def assert_right(now: datetime | None = None) -> None:
    """The figures of every period and of each of its slots equal the plain count, as they stand,
    after a recount, and after another one."""
    now = now or timezone.now()
    for _ in range(2):
        rows = Rows.read()
        for key in DAYS:
            found = figures_of(period_named(key, now=now))
            for figures in (found.whole, *found.slots):
                _assert_same(rows, figures)
        rollups_recount(now=now, most_seconds=60)


def _assert_same(rows: Rows, figures: Figures) -> None:
    plain = counted(rows, figures.start, figures.end)
    assert {name: getattr(figures, name) for name in plain} == plain
    taken = seconds_taken(rows, figures.start, figures.end)
    for share, told in ((0.5, figures.p50), (0.95, figures.p95)):
        if not taken:
            assert told is None
            continue
        exact = max(taken[ceil(share * len(taken)) - 1], MIN_LENGTH)
        assert told is not None
        assert exact / (ERROR * 1.001) <= told <= exact * ERROR * 1.001
