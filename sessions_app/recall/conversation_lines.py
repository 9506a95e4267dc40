"""The messages of a chat that may be recalled, as lines of a conversation in their order.

An answer stands with its question, whatever was said in between: it has the question's place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db.models import Q, QuerySet, TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from memories_app.ranking import Texts, Vector, fetch_by_ids, held_terms, vector_literal
from memoryproject.foundation.retrieval.message_features import speaker_named
from sessions_app.models import Message, MessageEmbedding
from sessions_app.models.messages import Role
from sessions_app.recall.hits import LeftOut

# A longer silence, in seconds, begins a new run of messages.
SILENCE = 6 * 3_600
# Commands and the like may stand between two messages; beyond this distance they are no
# neighbours.
REACH = 6
# Characters of each line that are read: hits are read whole when they are chosen.
COMPARED = 500


@dataclass(frozen=True)
class Line:
    """One message.

    ``terms``: those that were looked for and that it holds. ``cosines``: None without one.
    ``place``: that of its question for an answer, else its own. ``epoch``: when it was sent, in
    seconds since 1970: of many lines that are read, few are shown.
    """

    id: UUID
    session: UUID
    place: int
    order_num: int
    answers: UUID | None
    epoch: float
    sender: str
    role: str
    content: str
    terms: Collection[str]
    cosines: Sequence[float | None]

    @property
    def said_at(self) -> datetime:
        return datetime.fromtimestamp(self.epoch, timezone.utc)

    @property
    def speaker(self) -> str:
        return self.sender or speaker_named(self.content)


def messages_visible(chat_id: UUID | None) -> QuerySet[Message]:
    """Return the messages of a chat that may be recalled there. No other function decides this."""
    messages = Message.objects.filter(chat_id=chat_id, revoked_at__isnull=True)
    messages = messages.filter(role__in=[Role.USER, Role.ASSISTANT]).exclude(content="")
    # Commands and system texts ("Remembered: …", apologies) are no knowledge.
    return messages.exclude(metadata__has_any_keys=["command", "system_text"])


def messages_searched(
    chat_id: UUID, *, where: Q | None = None, left_out: LeftOut | None = None
) -> Texts:
    """Return the messages of a chat that a recall searches."""
    rows = messages_visible(chat_id)
    if where:
        rows = rows.filter(where)
    if left_out is not None:
        rows = rows.exclude(session_id=left_out.session_id, order_num__gt=left_out.until)
        rows = rows.exclude(session_id__in=list(left_out.later)).exclude(pk=left_out.first_id)
    newest = ("-received_at", "-order_num", "message_id")
    return Texts(rows, newest, MessageEmbedding, "message")


def lines_around(
    texts: Texts,
    seeds: Sequence[UUID],
    forms: Sequence[str],
    vectors: Sequence[Vector | None],
    *,
    model: str,
) -> list[Line]:
    """Read these messages and those up to ``REACH`` places before and after, in their order.

    forms: the index terms that are looked for: those of the question, and ``ASKING``.
    """
    known = [vector for vector in vectors if vector is not None]
    rows = texts.rows.order_by().values_list(
        "pk",
        "session_id",
        Coalesce("answers__order_num", "order_num"),
        "order_num",
        "answers_id",
        "timestamp",
        Coalesce(KT("metadata__sender_name"), Value("", TextField())),
        "role",
        "content",
        "terms",
    )
    try:
        scope, params = rows.query.get_compiler(rows.db).as_sql()
    except EmptyResultSet:
        return []
    names = "id, session_id, place, order_num, answers, said_at, sender, role, content, terms"
    distances = "".join(", 1 - (near.vector <=> %s::vector)" for _ in known)
    statement = (
        "WITH around AS MATERIALIZED (SELECT DISTINCT seed.session_id,"
        f" generate_series(seed.order_num - {REACH}, seed.order_num + {REACH}) AS order_num"
        f" FROM {Message._meta.db_table} seed WHERE seed.message_id = ANY(%s))"
        " SELECT line.id, line.session_id, line.place, line.order_num, line.answers,"
        " extract(epoch FROM line.said_at)::float8, line.sender, line.role,"
        f" left(line.content, {COMPARED}), {held_terms('line.terms')}{distances}"
        f" FROM around JOIN ({scope}) AS line ({names}) USING (session_id, order_num)"
        f" LEFT JOIN {MessageEmbedding._meta.db_table} near"
        " ON near.message_id = line.id AND near.model = %s"
    )
    literals = [vector_literal(vector) for vector in known]
    given = [list(seeds), list(forms), *literals, *params, model]
    found = fetch_by_ids(rows.db, statement, given)
    return _in_order([Line(*(*row[:10], _cosines(row[10:], vectors))) for row in found])


def _cosines(found: Sequence[float | None], vectors: Sequence[Vector | None]) -> list[float | None]:
    """Return a cosine for each vector, of what was found for those that are known."""
    values = iter(found)
    cosines = [None if vector is None else next(values) for vector in vectors]
    return [None if cosine is None else round(cosine, 6) for cosine in cosines]


def _in_order(lines: Sequence[Line]) -> list[Line]:
    begins: dict[UUID, float] = {}
    for line in lines:
        begins[line.session] = min(line.epoch, begins.get(line.session, line.epoch))
    # A session begins after those before it. Numbers are compared faster than ids.
    sessions = sorted(begins, key=lambda session: (begins[session], session))
    places = {session: number for number, session in enumerate(sessions)}
    return sorted(
        lines,
        key=lambda line: (
            places[line.session],
            line.place,
            line.answers is not None,
            line.order_num,
        ),
    )


def runs_of(lines: Sequence[Line]) -> list[int]:
    """Return for each line the number of its run: of one session, without a long silence."""
    runs: list[int] = []
    for number, line in enumerate(lines):
        before = lines[number - 1] if number else None
        new = before is None or (
            before.session != line.session
            or line.place - before.place > REACH
            or abs(line.epoch - before.epoch) > SILENCE
        )
        runs.append((runs[-1] if runs else 0) + new)
    return runs


def adjacent(lines: Sequence[Line], number: int) -> tuple[Line | None, Line | None]:
    """Return the lines before and after one in its session; None where there is none near."""

    def beside(other: int) -> Line | None:
        if not 0 <= other < len(lines):
            return None
        line, own = lines[other], lines[number]
        near = line.session == own.session and abs(line.place - own.place) <= REACH
        return line if near else None

    return beside(number - 1), beside(number + 1)


def business_now() -> datetime:
    """Return the time in the zone of the business: people there say "yesterday"."""
    return datetime.now(ZoneInfo(settings.BUSINESS_TIME_ZONE))
