"""Fills a database with conversations as a busy business has them after some years: what the
benchmark of the staff's pages is measured on."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO

from bulk_rows import rows_add, without_checks
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from staff_extras import extras_add, world_finish
from staff_texts import COMMON, Text, rows_of
from staff_turns import deliveries_add, turns_add

from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.synchronous_chat import talk
from sessions_app.models import ChatSession, Message
from sessions_app.turns.dependencies import build_turn_dependencies

# The share of all messages that stands in one chat, half of it in one session.
MAX_SIZE = 10
A_SESSION = 30
SUMMARIZED = 43
USUAL_CHAT = "15550188888@c.us"
GODFATHER_CHAT = "15550199999@c.us"
REAL_TURNS = 16
TABLES = (
    "sessions_app_message",
    "sessions_app_turn",
    "sessions_app_turnreplay",
    "sessions_app_inbounddelivery",
    "sessions_app_outboundpart",
    "sessions_app_summarizationmetadata",
    "sessions_app_chatsession",
    "sessions_app_chataddress",
    "memories_app_memory",
    "memories_app_memorytelling",
    "cards_app_memorycard",
    "audit_auditevent",
)
WORK_TABLES_SQL = """
CREATE UNLOGGED TABLE bench_text (number int PRIMARY KEY, content text, terms text[],
    term_count int, fact_key text, likeness text[]);
CREATE UNLOGGED TABLE bench_session (number int PRIMARY KEY, session_id uuid, chat_id uuid,
    began timestamptz, count int, newest boolean);
CREATE UNLOGGED TABLE bench_chat (number int PRIMARY KEY, chat_id uuid, last_at timestamptz);
"""
DROP_SQL = "DROP TABLE bench_text, bench_session, bench_chat"
# What stands at a place of a session: two speakers by turns, and a summary now and then.
SAID_SQL = f"""
(SELECT s.session_id, s.chat_id, n, s.began + n * interval '1 minute' AS at,
        CASE WHEN mod(n, {SUMMARIZED}) = 0 THEN 'summary'
             WHEN mod(n, 2) = 1 THEN 'user' ELSE 'assistant' END AS role,
        abs(hashint8extended(s.number * 1000003::bigint + n, 1)) AS chance
 FROM bench_session s CROSS JOIN LATERAL generate_series(1, s.count) AS n
 ORDER BY at) AS said
JOIN bench_text t ON t.number = mod(said.chance, %s)
"""
REVOKED = "(mod(chance, 331) = 0 AND role = 'user')"
EDITED = "(mod(chance, 251) = 0 AND role = 'user' AND mod(chance, 331) <> 0)"
ANSWERS = f"(role = 'assistant' AND mod(n - 1, {SUMMARIZED}) <> 0)"
KINDS = "array['image','image','image','audio','audio','document','location','sticker']"


@dataclass(frozen=True)
class Sizes:
    """How many of each."""

    chats: int
    messages: int
    memories: int
    events: int


@dataclass(frozen=True)
class Span:
    """A session: of which chat, since when, and how many messages."""

    chat: int
    began: datetime
    count: int
    newest: bool


def world_fill(sizes: Sizes, texts: Sequence[Text]) -> None:
    """All of it; prints how long each part took. Begins with an empty, migrated database."""
    call_command("createcachetable", verbosity=0)
    call_command("install_schedules", stdout=StringIO())
    call_command("memories_reembed", init=True, stdout=StringIO())
    timed("real turns", real_turns)
    with connection.cursor() as cursor:
        cursor.execute(WORK_TABLES_SQL)
        with cursor.copy("COPY bench_text FROM STDIN") as copy:
            for row in rows_of(texts):
                copy.write_row(row)
    with without_checks(TABLES):
        timed("chats and sessions", lambda: chats_add(sizes))
        timed("messages", lambda: messages_add(len(texts)))
        timed("summaries", summaries_add)
        timed("turns", turns_add)
        timed("deliveries", deliveries_add)
        for name, work in extras_add(sizes.memories, sizes.events, len(texts)):
            timed(name, work)
        started = time.perf_counter()
    print(f"    {'indexes':24} {time.perf_counter() - started:8.1f} s", flush=True)
    with connection.cursor() as cursor:
        cursor.execute(DROP_SQL)
    for name, work in world_finish():
        timed(name, work)


def timed(name: str, work: Callable[[], object]) -> None:
    started = time.perf_counter()
    work()
    print(f"    {name:24} {time.perf_counter() - started:8.1f} s", flush=True)


def real_turns() -> None:
    """Two people talk to the assistant: their turns' records are those of all the others."""
    for chat, lines in ((USUAL_CHAT, REAL_TURNS), (GODFATHER_CHAT, REAL_TURNS // 2)):
        for number in range(lines):
            text = f"when is the {COMMON} of week {number} due?"
            if number % 4 == 0:
                text = f"/remember the {COMMON} of week {number} is due on day {number}"
            talk(
                whatsapp_chat=chat,
                content=text,
                dependencies=build_turn_dependencies(),
                rules=build_intake_rules(),
                now=timezone.now(),
            )


def chats_add(sizes: Sizes) -> None:
    """People and groups, and their sessions."""
    chance = random.Random(11)
    ids = [uuid.UUID(int=chance.getrandbits(128), version=4) for _ in range(sizes.chats)]
    spans = [span for number in range(sizes.chats) for span in _spans(number, sizes, chance)]
    last = {span.chat: span.began + timedelta(minutes=span.count) for span in spans if span.newest}
    with connection.cursor() as cursor:
        with cursor.copy("COPY bench_chat FROM STDIN") as copy:
            for number, chat_id in enumerate(ids):
                copy.write_row((number, chat_id, last[number]))
        with cursor.copy("COPY bench_session FROM STDIN") as copy:
            for number, span in enumerate(spans):
                key = uuid.UUID(int=chance.getrandbits(128), version=4)
                copy.write_row((number, key, ids[span.chat], span.began, span.count, span.newest))
        cursor.execute("ANALYZE bench_chat, bench_session, bench_text")
    rows_add("Chat", "bench_chat", CHAT_VALUES)
    rows_add("ChatAddress", "sessions_app_chat WHERE provider <> 'console'", ADDRESS_VALUES)
    rows_add("ChatSession", "bench_session", SESSION_VALUES)
    # Names of columns of models that not every state of the project has.
    rows_add("ChatActivity", "bench_chat", {"chat_id": "chat_id", "last_at": "last_at"})


ADDRESSED = (
    "(972500000000 + number)::text || CASE WHEN mod(number, 25) = 7 THEN '@g.us' ELSE '@c.us' END"
)
CHAT_VALUES = {
    "id": "chat_id",
    "whatsapp_chat": ADDRESSED,
    "provider": "'cloud'",
    "number_id": "'100000000000001'",
    "is_group": "mod(number, 25) = 7",
    "client_name": (
        "CASE WHEN mod(number, 10) = 3 THEN '' WHEN mod(number, 3) = 1 THEN 'דנה כהן ' || number"
        " ELSE 'Dana Levi ' || number END"
    ),
    "client_phone": "CASE WHEN mod(number, 25) = 7 THEN '' ELSE (972500000000 + number)::text END",
    "language": "CASE WHEN mod(number, 3) = 1 THEN 'he' ELSE 'en' END",
    "memory_enabled": "CASE WHEN mod(number, 200) = 5 THEN false END",
    "created_at": "last_at - interval '400 days'",
    "updated_at": "last_at",
}
ADDRESS_VALUES = {
    "chat_id": "id",
    "provider": "provider",
    "address": "whatsapp_chat",
    "created_at": "created_at",
}
ENDED = "began + count * interval '1 minute'"
SESSION_STATUS = (
    f"CASE WHEN newest AND {ENDED} > now() - interval '1 day' THEN 'active'"
    f" WHEN {ENDED} > now() - interval '31 days' THEN 'expired' ELSE 'archived' END"
)
SESSION_VALUES = {
    "session_id": "session_id",
    "chat_id": "chat_id",
    "status": SESSION_STATUS,
    "created_at": "began",
    "last_active": ENDED,
    "expired_at": (
        f"CASE WHEN newest AND {ENDED} > now() - interval '1 day' THEN NULL"
        f" ELSE {ENDED} + interval '1 day' END"
    ),
    "message_counter": "count",
    "total_tokens": "least(count, 90) * 15",
    "window_start": "greatest(1, count - 90)",
    "summarized_until": f"count / {SUMMARIZED} * {SUMMARIZED}",
}


def _spans(number: int, sizes: Sizes, chance: random.Random) -> Iterator[Span]:
    """The sessions of a chat, the newest first. The first chat is the large one; how much the
    others say falls with their number, and one in five said something today."""
    end = timezone.now() - timedelta(minutes=chance.expovariate(1 / 600))
    if number == 0:
        left, sizes_left = sizes.messages // MAX_SIZE, [sizes.messages // MAX_SIZE // 2]
    else:
        left, sizes_left = _said_by(number, sizes), []
        if chance.random() > 0.2:
            end -= timedelta(days=chance.expovariate(1 / 90))
    newest = True
    while left > 0:
        wished = 1 + int(chance.expovariate(1 / A_SESSION)) * (8 if number == 0 else 1)
        count = min(left, sizes_left.pop() if sizes_left and not newest else wished)
        began = end - timedelta(minutes=count)
        yield Span(number, began, count, newest)
        left -= count
        newest = False
        end = began - timedelta(days=1 + chance.expovariate(1 / 3))


def _said_by(number: int, sizes: Sizes) -> int:
    """How many messages are in a chat: so that all of them are what was asked for."""
    exponent = 0.7
    rest = sizes.messages * (1 - 1 / MAX_SIZE)
    # The sum of (n + 9) ** -exponent over all chats, closely enough.
    total = ((sizes.chats + 9) ** (1 - exponent) - 10 ** (1 - exponent)) / (1 - exponent)
    return max(2, round(rest * (number + 9) ** -exponent / total))


def _id_of(session: str, place: str) -> str:
    """Of a message, so that others can name it without looking it up."""
    return f"md5({session}::text || ' ' || {place})::uuid"


def messages_add(texts: int) -> None:
    """In the order of time, as they came."""
    text = f"CASE WHEN {REVOKED} THEN %s ELSE %s END"
    kind = f"CASE WHEN role = 'user' AND mod(chance, 100) < 8 THEN ({KINDS})[mod(chance, 100) + 1]"
    values = {
        "message_id": _id_of("session_id", "n"),
        "session_id": "session_id",
        "chat_id": "chat_id",
        "order_num": "n",
        "role": "role",
        "kind": f"{kind} ELSE 'text' END",
        "content": text % ("''", "content"),
        "sender": "CASE role WHEN 'user' THEN 'Dana' ELSE '' END",
        "timestamp": "at",
        "received_at": "at + interval '2 seconds'",
        "tokens": "length(content) / 4 + 1",
        "delivery_status": (
            "CASE WHEN role <> 'assistant' THEN '' ELSE (array['read','read','read','read','read',"
            "'delivered','delivered','sent','played','failed'])[mod(chance / 7, 10) + 1] END"
        ),
        "provider": "CASE WHEN role = 'summary' THEN '' ELSE 'cloud' END",
        "number_id": "'100000000000001'",
        "provider_message_id": (
            "CASE WHEN role <> 'summary' THEN 'wamid.' || md5(session_id::text || n) END"
        ),
        "answers_id": f"CASE WHEN {ANSWERS} THEN {_id_of('session_id', '(n - 1)')} END",
        "media": (
            "CASE WHEN role = 'user' AND mod(chance, 100) < 6 THEN jsonb_build_object('id', n,"
            " 'mime_type', 'image/jpeg') ELSE '{}' END"
        ),
        "history": (
            f"CASE WHEN {EDITED} THEN jsonb_build_array(jsonb_build_object('content',"
            " 'before ' || content, 'until', to_char(at, 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')))"
            " ELSE '[]' END"
        ),
        "edited_at": f"CASE WHEN {EDITED} THEN at + interval '1 minute' END",
        "revoked_at": f"CASE WHEN {REVOKED} THEN at + interval '1 minute' END",
        "terms": text % ("'{}'::text[]", "terms"),
        "term_count": text % ("0", "term_count"),
    }
    rows_add("Message", SAID_SQL, values, [texts])


def summaries_add() -> None:
    """Each of the messages since the one before it."""
    first = f"(n / {SUMMARIZED} - 1) * {SUMMARIZED} + 1"
    source = (
        "(SELECT s.session_id, s.began, n FROM bench_session s CROSS JOIN LATERAL"
        f" generate_series({SUMMARIZED}, s.count, {SUMMARIZED}) AS n) AS made"
    )
    values = {
        "session_id": "session_id",
        "number": f"n / {SUMMARIZED}",
        "summary_message_id": _id_of("session_id", "n"),
        "summarized_message_ids": (
            f"(SELECT array_agg({_id_of('session_id', 'place')}) FROM generate_series({first},"
            " n - 1) AS place)"
        ),
        "first_order": first,
        "last_order": "n - 1",
        "range_start": f"began + ({first}) * interval '1 minute'",
        "range_end": "began + n * interval '1 minute'",
        "digest": "'They spoke about the invoice and the delivery of ' || n",
        "skill_id": "'conversation-summary'",
        "is_extractive": "true",
        "created_at": "began + n * interval '1 minute'",
    }
    rows_add("SummarizationMetadata", source, values)


def world_sizes() -> str:
    """What there is, for the first lines."""
    largest = ChatSession.objects.order_by("-message_counter").first()
    longest = largest.message_counter if largest else 0
    return f"{Message.objects.count():,} messages, the longest session has {longest:,}"
