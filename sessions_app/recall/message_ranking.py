"""Read the messages of a chat that may be recalled, and rank them beside their neighbours.

They are lines of a conversation in their order. An answer stands with its question, whatever was
said in between: it has the question's place.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import EmptyResultSet
from django.db.models import Case, CharField, Exists, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, Concat, NullIf

from memories_app import ranking, visibility
from memories_app.models import Memory, ProposalKind, ProposalMemory, ProposalState
from memories_app.store.retract import EXTRACTION
from memoryproject.foundation.retrieval import message_features, query, relevance
from memoryproject.foundation.retrieval.subqueries import QueryPart, best_fit, periods_asked
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.models import GODFATHER, Chat, Message, MessageEmbedding, Role
from sessions_app.models.messages import ASKING, SURVEY
from sessions_app.recall.hits import FactTimes, Hit, LeftOut, Viewer, memory_about

# A longer silence, in seconds, begins a new run of messages.
SILENCE = 6 * 3_600
# Commands and the like may stand between two messages; beyond this distance they are no
# neighbours.
REACH = 6
NEWEST = ("-received_at", "-order_num", "message_id")
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
        return self.sender or message_features.speaker_named(self.content)


# The sources of memories that somebody in the chat has said.
_SAID = ("command", EXTRACTION)
_SENDER = Coalesce(KT("metadata__sender_name"), Value(""), output_field=CharField())
# Commands, system texts ("Remembered: …", apologies), and surveys are no knowledge. What is the
# same in each query is made once: making it takes longer than reading a few rows.
_SPOKEN = Message.objects.filter(revoked_at__isnull=True, role__in=[Role.USER, Role.ASSISTANT])
_NOT_KNOWN = ["command", "system_text", SURVEY]
_VISIBLE = _SPOKEN.exclude(content="").exclude(metadata__has_any_keys=_NOT_KNOWN)


def messages_visible(within: Q) -> QuerySet[Message]:
    """Return those of these messages that may be recalled. No other function decides this."""
    return _VISIBLE.filter(within)


def messages_searched(
    chat_id: UUID, *, where: Q | None = None, left_out: LeftOut | None = None
) -> ranking.Texts:
    """Return the messages of a chat that a recall searches."""
    rows = messages_visible(Q(chat_id=chat_id))
    if where:
        rows = rows.filter(where)
    if left_out is not None:
        rows = rows.exclude(session_id=left_out.session_id, order_num__gt=left_out.until)
        rows = rows.exclude(session_id__in=left_out.later).exclude(pk=left_out.first_id)
    return ranking.Texts(rows, NEWEST, MessageEmbedding, "message")


def lines_around(
    texts: ranking.Texts,
    seeds: Sequence[UUID],
    forms: Sequence[str],
    vectors: Sequence[ranking.Vector | None],
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
        _SENDER,
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
        f" left(line.content, {COMPARED}), {ranking.held_terms('line.terms')}{distances}"
        f" FROM around JOIN ({scope}) AS line ({names}) USING (session_id, order_num)"
        f" LEFT JOIN {MessageEmbedding._meta.db_table} near"
        " ON near.message_id = line.id AND near.model = %s"
    )
    literals = [ranking.vector_literal(vector) for vector in known]
    given = [list(seeds), list(forms), *literals, *params, model]
    found = ranking.fetch_by_ids(rows.db, statement, given)
    return _in_order([Line(*(*row[:10], _cosines(row[10:], vectors))) for row in found])


def _cosines(
    found: Sequence[float | None], vectors: Sequence[ranking.Vector | None]
) -> list[float | None]:
    """Return a cosine for each vector, of what was found for those that are known.

    A vector of zeros has none: the database gives NaN, the one value unlike itself.
    """
    values = iter(found)
    cosines = [None if vector is None else next(values) for vector in vectors]
    return [None if c is None or c != c else round(c, 6) for c in cosines]


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


# Rank the lines against a question.

# Limit of lines that are ranked with their context.
SEEDS = 40
# Limit of seeds that are the same text.
MAX_SAME_SEEDS = 4


@dataclass(frozen=True)
class RankedLines:
    """Lines in the order of the conversation, with the score of each."""

    lines: Sequence[Line]
    scores: relevance.Floats


def topics_of(parts: Sequence[QueryPart], sample: ranking.Sample | None) -> list[str]:
    """Return the text of each part without the words that occur everywhere in the conversation."""
    if sample is None:
        return [part.text for part in parts]
    known = [_without_repetitions(part, sample) for part in parts]
    return [
        query.text_without(
            part.text,
            message_features.everyday_words(
                part.terms, relevance.frequencies(part.terms, terms), len(terms)
            ),
        )
        for part, terms in zip(parts, known, strict=True)
    ]


def _without_repetitions(part: QueryPart, sample: ranking.Sample) -> list[Collection[str]]:
    """Return the terms of the sampled lines that don't only ask the same.

    A question that is asked again and again doesn't make its words frequent.
    """
    telling = [term for term in part.terms if query.is_informative(term)]

    def repeats(terms: Collection[str]) -> bool:
        held = sum(not set(terms).isdisjoint(term.forms) for term in telling)
        return ASKING in terms and held >= message_features.SAME_QUESTION * max(len(telling), 1)

    return [terms for terms in sample.terms if not repeats(terms)]


def rank_messages(
    question: ranking.Question,
    texts: ranking.Texts,
    sample: ranking.Sample,
    candidates: ranking.Candidates,
    now: datetime,
) -> RankedLines:
    """Return the lines that may answer the question, and those around them, with their scores.

    now: in the time zone whose days the question names.
    """
    seeds = _seeds(*ranking.rank_sets(question, [candidates]))
    forms = [ASKING, *(form for term in question.terms for form in term.forms)]
    lines = lines_around(texts, seeds, forms, question.vectors, model=question.model)
    best = np.zeros(len(lines))
    if not lines:
        return RankedLines(lines, best)
    curve = question.calibration
    segments = np.array(runs_of(lines))
    speakers = [line.speaker for line in lines]
    voices = [line.speaker or line.role for line in lines]
    statements = message_features.statements_of([line.content for line in lines], voices)
    for place, part in enumerate(question.parts):
        words = relevance.weigh_words(part.terms, _without_repetitions(part, sample))
        cosines = np.array([line.cosines[place] for line in lines], float)
        features = message_features.features_of(
            part.text,
            words,
            message_features.Lines(
                held=words.held_by([line.terms for line in lines]),
                topics=curve.slope * (cosines - curve.midpoint),
                segments=segments,
                speakers=speakers,
                period_fits=_period_fits(part.text, lines, now),
                statements=statements,
            ),
        )
        own = message_features.chances(features, compared=~np.isnan(cosines))
        worth = relevance.PART_WORTH if place else 1.0
        best = np.maximum(best, worth * words.substance * own)
    return RankedLines(lines, best)


def _seeds(candidates: ranking.Candidates, scores: relevance.Floats) -> list[UUID]:
    """Return the best candidates, few of those that are one text, said again and again."""
    # The newest of equal ones: its answer is the one that holds.
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    same: dict[str, int] = {}
    seeds: list[UUID] = []
    for row in order:
        key = candidates.contents[row].casefold().rstrip(" .!?")
        same[key] = same.get(key, 0) + 1
        if same[key] <= MAX_SAME_SEEDS:
            seeds.append(candidates.ids[row])
        if len(seeds) == SEEDS:
            break
    return seeds


def _period_fits(text: str, lines: Sequence[Line], now: datetime) -> relevance.Floats:
    """Return how well the date of each line fits the periods that the text names."""
    periods = periods_asked(text, today=now.date())
    if not periods:
        return np.zeros(len(lines))
    days = [line.said_at.astimezone(now.tzinfo).date() for line in lines]
    return np.array([best_fit(periods, day) for day in days])


# Read the memories that a recall found, as hits.

# The ids of the newer memories of which staff are asked whether they replace one.
_OPEN = ProposalMemory.objects.filter(
    number=1,
    proposal__kind=ProposalKind.REPLACE,
    proposal__state=ProposalState.OPEN,
    proposal__parts__memory=OuterRef("pk"),
)
_NEWER = _OPEN.exclude(memory=OuterRef("pk")).values_list("memory_id")


def read_memories(
    visible: QuerySet[Memory],
    scores: Mapping[UUID, float],
    near: Mapping[UUID, float],
    *,
    viewer: Viewer,
    as_of: datetime | None,
) -> Iterator[Hit]:
    """Yield these memories in the order of ``scores``, as far as the viewer may see them now.

    ``visible``: those of them that the viewer may see. ``near``: the cosines that are known.
    ``as_of``: in their words of then.
    """
    rows = visible.order_by().values_list(
        "pk",
        "content",
        "created_at",
        "type",
        _client(viewer),
        "chat_id",
        "source",
        "said_at",
        "valid_from",
        "valid_until",
        ArraySubquery(_NEWER),
        "metadata__promise",
    )
    found = {key: rest for key, *rest in rows}
    names = Counter(whose.rpartition("\n")[0] for whose in {rest[3] for rest in found.values()})
    then = {} if as_of is None else visibility.contents_then(list(found), as_of)
    for key, score in scores.items():
        if key not in found:
            continue
        content, created_at, kind, whose, chat, source, *times, newer, promise = found[key]
        client, _, address = whose.rpartition("\n")
        if whose and (not client or names[client] > 1):
            # Two people of one name are told apart by their numbers.
            client = f"{client} {number_shown(address)}".strip()
        about = memory_about(
            kind,
            client=client,
            source=source,
            is_own=chat is not None and chat == viewer.chat_id and not whose,
            times=FactTimes(*times),
            newer=newer,
            promise=promise,
        )
        cosine = near.get(key)
        known = None if cosine is None or cosine != cosine else float(cosine)
        yield Hit("memory", key, then.get(key, content), score, known, created_at, about)


def _client(viewer: Viewer) -> Combinable:
    """Return the name and the address of who said a memory in a group, a line each.

    Else of its chat for the owner: the name that staff gave, or WhatsApp's. For others, and the own
    chat, it is "". What nobody said in a group has an empty name there.
    """
    in_group = Exists(Chat.objects.filter(pk=OuterRef("chat_id"), is_group=True))
    writer = Message.objects.filter(pk=OuterRef("source_message_id"))
    named = Subquery(writer.values_list(Concat(_SENDER, Value("\n"), "sender")))
    chats = Chat.objects.filter(pk=OuterRef("chat_id")).exclude(pk=viewer.chat_id)
    name = Coalesce(NullIf("staff_name", Value("")), "client_name")
    shown: Combinable = Subquery(chats.values_list(Concat(name, Value("\n"), "whatsapp_chat")))
    if viewer.user_role != GODFATHER:
        shown = Case(When(in_group, then=Value("\n")))
    theirs = Coalesce(named, Value("a member\n"))
    by_member = Q(in_group, source__in=_SAID, visibility="chat")
    return Case(When(by_member, then=theirs), default=Coalesce(shown, Value("")))
