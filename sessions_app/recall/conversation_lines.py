"""The messages of a chat that may be recalled, as lines of a conversation in their order.

An answer stands with its question, whatever was said in between: it has the question's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any, TypeAlias
from uuid import UUID
from weakref import WeakKeyDictionary
from zoneinfo import ZoneInfo

import numpy as np
from django.conf import settings
from django.db.models import (
    Aggregate,
    BigIntegerField,
    BinaryField,
    Func,
    QuerySet,
    UUIDField,
    Value,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from memories_app.ranking.facade import Columns
from memoryproject.foundation.compiled_sql import Given
from memoryproject.foundation.retrieval.message_features import (
    ends_as_question,
    speaker_hashes,
    speaker_named,
    tells_time,
)
from memoryproject.foundation.retrieval.subqueries import unquoted
from memoryproject.foundation.retrieval.text_index import Mask, Rows, Segment, TextIndex, ranges
from sessions_app.models import Message
from sessions_app.models.messages import Role
from sessions_app.recall.hits import LeftOut

# A longer silence begins a new run of messages.
SILENCE = timedelta(hours=6) // timedelta(microseconds=1)

# Of each span the session's id, and its first and last place.
Spans: TypeAlias = tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]

# Ids by their first halves, 0 for none. said_at: in microseconds since 1970, UTC. text, quoted: the
# hashes of the text and of what it quotes, for comparing lines.
LINE = np.dtype(
    [
        ("session", np.uint64),
        ("place", np.int32),
        ("order_num", np.int32),
        ("answers", np.uint64),
        ("said_at", np.int64),
        ("asks", np.bool_),
        ("tells_time", np.bool_),
        ("speaker", np.int64),
        ("first_name", np.int64),
        ("text", np.int64),
        ("quoted", np.int64),
    ]
)
# No zone is behind UTC by anything but whole quarters of an hour.
_QUARTER = 15 * 60 * 10**6


def _read(rows: Sequence[Sequence[Any]]) -> NDArray[np.void]:
    lines = np.zeros(len(rows), LINE)
    for place, row in enumerate(rows):
        session, line_place, order_num, answers, said_at, content, sender = row
        speaker, first_name = speaker_hashes(sender or speaker_named(content))
        lines[place] = (
            half_of(session),
            line_place,
            order_num,
            0 if answers is None else half_of(answers),
            said_at,
            ends_as_question(content),
            tells_time(content),
            speaker,
            first_name,
            _compared(content),
            _compared(unquoted(content)),
        )
    return lines


def _compared(text: str) -> int:
    return hash(text.strip().casefold())


def half_of(key: bytes) -> int:
    """Return the first half of an id."""
    return int.from_bytes(key[:8], "big")


def _sent(column: str) -> Func:
    return Func(column, function="uuid_send", output_field=BinaryField())


LINES = Columns(
    [
        _sent("session_id"),
        Coalesce("answers__order_num", "order_num"),
        "order_num",
        _sent("answers_id"),
        Func(
            "timestamp",
            template="(extract(epoch FROM %(expressions)s) * 1000000)::bigint",
            output_field=BigIntegerField(),
        ),
        "content",
        KT("metadata__sender_name"),
    ],
    _read,
)


def messages_visible(chat_id: UUID | Given | None) -> QuerySet[Message]:
    """Return the messages of a chat that may be recalled there. No other function decides this."""
    messages = Message.objects.filter(chat_id=chat_id, revoked_at__isnull=True)
    messages = messages.filter(role__in=[Role.USER, Role.ASSISTANT]).exclude(content="")
    # Commands and system texts ("Remembered: …", apologies) are no knowledge.
    return messages.exclude(metadata__has_any_keys=["command", "system_text"])


def messages_held() -> QuerySet[Message]:
    """Return these messages of a chat that is ``Given``."""
    return messages_visible(Given("chat_id", UUIDField()))


@dataclass(frozen=True)
class Around:
    """Lines in the order of the conversation. Lines of one run were said one after the other."""

    rows: Rows
    runs: NDArray[np.int64]


def lines_around(index: TextIndex, rows: Rows, reach: int, *, mask: Mask | None) -> Around:
    """Return these lines and those up to ``reach`` places before and after them.

    mask: the lines that may be returned, all by default.
    """
    if not len(rows):
        return Around(np.empty(0, np.int64), np.empty(0, np.int64))
    spans = _spans(index.columns_of(rows), reach)
    found, owners = [], []
    first = 0
    for segment in index.segments:
        here, owner = _order_of(segment).within(*spans)
        found.append(here + first)
        owners.append(owner)
        first += len(segment)
    lines, span = np.concatenate(found), np.concatenate(owners)
    if mask is not None:
        lines, span = lines[mask[lines]], span[mask[lines]]
    columns = index.columns_of(lines)
    order = np.lexsort((columns["order_num"], columns["answers"] != 0, columns["place"], span))
    lines, span, said_at = lines[order], span[order], columns["said_at"][order]
    silent = np.abs(np.diff(said_at)) > SILENCE
    runs = np.concatenate(([0], np.cumsum((np.diff(span) != 0) | silent))) if len(lines) else span
    return Around(lines, runs)


def _spans(lines: NDArray[np.void], reach: int) -> Spans:
    """Return the spans of sessions that hold everything around these lines, without overlap."""
    lines = lines[np.lexsort((lines["place"], lines["session"]))]
    sessions, places = lines["session"], lines["place"].astype(np.int64)
    apart = (np.diff(sessions) != 0) | (np.diff(places) > 2 * reach + 1)
    starts = np.flatnonzero(np.concatenate(([True], apart)))
    ends = np.append(starts[1:], len(lines)) - 1
    return sessions[starts], places[starts] - reach, places[ends] + reach


class _Order:
    """The lines of a segment by session and place."""

    def __init__(self, lines: NDArray[np.void]) -> None:
        self._sessions, number = np.unique(lines["session"], return_inverse=True)
        spots = _spots(number, lines["place"])
        self._rows = np.argsort(spots)
        self._spots = spots[self._rows]

    def within(
        self, sessions: NDArray[np.uint64], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> tuple[Rows, NDArray[np.int64]]:
        """Return the rows of all spans, and for each row the number of its span."""
        number = np.minimum(np.searchsorted(self._sessions, sessions), len(self._sessions) - 1)
        known = self._sessions[number] == sessions
        starts = np.searchsorted(self._spots, _spots(number, np.maximum(lows, 0)))
        ends = np.searchsorted(self._spots, _spots(number, highs), side="right")
        at, owner = ranges(starts, np.where(known, ends, starts))
        return self._rows[at], owner


def _spots(session: NDArray[Any], place: NDArray[Any]) -> NDArray[np.int64]:
    return session.astype(np.int64) << 32 | place.astype(np.int64)


_orders: WeakKeyDictionary[Segment, _Order] = WeakKeyDictionary()


def _order_of(segment: Segment) -> _Order:
    order = _orders.get(segment)
    if order is None:
        order = _orders[segment] = _Order(segment.columns)
    return order


def adjacent_lines(
    index: TextIndex, rows: Sequence[int], reach: int, *, mask: Mask | None
) -> list[tuple[int | None, int | None]]:
    """Return for each line the ones before and after it in its session.

    None where there is none within ``reach`` places.
    """
    around = lines_around(index, np.array(rows), reach, mask=mask)
    lines = around.rows.tolist()
    columns = index.columns_of(around.rows)
    sessions, places = columns["session"].tolist(), columns["place"].tolist()
    where = {line: at for at, line in enumerate(lines)}

    def beside(at: int, other: int) -> int | None:
        near = (
            0 <= other < len(lines)
            and sessions[other] == sessions[at]
            and abs(places[other] - places[at]) <= reach
        )
        return lines[other] if near else None

    return [
        (beside(where[row], where[row] - 1), beside(where[row], where[row] + 1)) for row in rows
    ]


def answers_to(
    index: TextIndex, rows: Rows, questions: Mask, reach: int, *, mask: Mask | None
) -> Rows:
    """Return which of these lines, by their places, answer the ``questions``, the newest first.

    Imported messages don't say which of them they answer: there it is the line after the question.
    """
    columns = index.columns_of(rows)
    answer = np.isin(columns["answers"], index.keys_of(rows[questions])[:, 0])
    if not (answer & ~questions).any():
        pairs = adjacent_lines(index, rows[questions].tolist(), reach, mask=mask)
        after = [row for _, row in pairs if row is not None]
        answer = np.isin(rows, after) & ~columns["asks"]
    places = np.flatnonzero(answer & ~questions)
    newest: Rows = places[np.argsort(-columns["said_at"][places], kind="stable")]
    return newest


def business_now() -> datetime:
    """Return the time in the zone of the business: people there say "yesterday"."""
    return datetime.now(ZoneInfo(settings.BUSINESS_TIME_ZONE))


def days_of(
    said_at: NDArray[np.int64], zone: tzinfo
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct days, as ordinals of dates there, and for each line that of its day."""
    quarters, quarter = np.unique(said_at // _QUARTER, return_inverse=True)
    seconds = (quarters * (_QUARTER // 10**6)).tolist()
    dates = [datetime.fromtimestamp(second, zone).toordinal() for second in seconds]
    days, number = np.unique(np.array(dates, np.int64), return_inverse=True)
    return days, number[quarter]


def left_out_mask(index: TextIndex, left_out: LeftOut) -> Mask:
    """Return which lines a prompt doesn't hold."""
    sessions = [half_of(key.bytes) for key in (left_out.session_id, *left_out.later)]
    lows = [left_out.until + 1, *(0 for _ in left_out.later)]
    spans = np.array(sessions, np.uint64), np.array(lows), np.full(len(lows), 2**31 - 1)
    first = half_of(left_out.first_id.bytes)

    def marked(segment: Segment) -> Mask:
        mask: Mask = segment.keys[:, 0] != first
        rows, _ = _order_of(segment).within(*spans)
        mask[rows] = False
        return mask

    return index.marked(marked)


def mask_of(index: TextIndex, texts: QuerySet[Any]) -> Mask:
    """Return which texts of the index are among these, as the database decides."""
    keys = Func("pk", function="uuid_send", output_field=BinaryField())
    together = Aggregate(keys, Value(b""), function="string_agg", output_field=BinaryField())
    sent = texts.order_by().aggregate(keys=together)["keys"] or b""
    mask = np.zeros(len(index), bool)
    mask[index.rows_of(np.frombuffer(sent, ">u8").reshape(-1, 2).astype(np.uint64))] = True
    return mask
