"""Measures the dashboard over many messages: run from the project's root.

    python benchmarks/measure_dashboard.py [--messages 1000000]

Stores that many messages, with half as many turns and a tenth as many memories, over the last
thirty days in 10,000 chats (fewer for fewer messages), in a database of its own, in a temporary
folder. Prints how long the first count of all of it takes and a recount of the newest quarter of
an hour, and the time to the first byte of the page and of its fragment for each period, with the
database's part in it: before anything was counted, after, and with a busy hour not yet counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

from own_database import machine, own_database

# isort: split

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.models import AutoField, Model
from django.test import Client
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.admin_kit.list_filters import DAYS, period_named
from memoryproject.staff_site.dashboard.figures import figures_of
from memoryproject.staff_site.dashboard.rollups import rollups_recount
from memoryproject.staff_site.models import Mark
from sessions_app.models import Chat, ChatSession, Message, Turn, TurnReplay

ROUNDS = 20
FRAGMENT = "/admin/dashboard/figures/"

# Evenly spread over time and chats: then the most chats are active in each quarter of an hour.
PLACES = """
CREATE TEMP TABLE place AS
SELECT row_number() OVER () AS n, session_id, chat_id FROM sessions_app_chatsession
"""
SAID = """
CREATE TEMP TABLE said AS
SELECT turn AS n, session_id, chat_id, gen_random_uuid() AS asked_id,
    gen_random_uuid() AS reply_id, now() - random() * interval '30 days' AS at
FROM generate_series(1, %s) AS turn
JOIN place ON place.n = 1 + mod(turn::bigint * 7919 + turn / 13, %s)
"""
CHAT = {
    "id": "gen_random_uuid()",
    "whatsapp_chat": "15550000000 + n || '@c.us'",
    "provider": "'cloud'",
    "created_at": "now() - interval '30 days'",
    "updated_at": "now()",
}
SESSION = {
    "session_id": "gen_random_uuid()",
    "chat_id": "id",
    "created_at": "created_at",
    "last_active": "updated_at",
}
QUESTION = {
    "message_id": "asked_id",
    "session_id": "session_id",
    "chat_id": "chat_id",
    "order_num": "n * 2 - 1",
    "role": "'user'",
    "content": "'question ' || n",
    "timestamp": "at",
    "received_at": "at",
    "tokens": "5",
}
ANSWER = {
    **QUESTION,
    "message_id": "reply_id",
    "order_num": "n * 2",
    "role": "'assistant'",
    "content": "'answer ' || n",
    "received_at": "at + interval '3 seconds'",
}
TURN = {
    "turn_id": "gen_random_uuid()",
    "chat_id": "chat_id",
    "session_id": "session_id",
    "message_id": "asked_id",
    "reply_id": "reply_id",
    "provider": "'cloud'",
    "asked_at": "at",
    "created_at": "at",
    "finished_at": "at + interval '1 second' * exp(3 * random())",
    "state": "CASE WHEN mod(n, 50) = 0 THEN 'failed' WHEN mod(n, 70) = 0 THEN 'missed'"
    " ELSE 'sent' END",
}
REPLAY = {
    "turn_id": "id",
    "model": "CASE WHEN mod(id, 3) = 0 THEN 'gpt-4o' ELSE 'gpt-4o-mini' END",
    "prompt_tokens": "800 + mod(id, 400)",
    "completion_tokens": "100",
}
MEMORY = {
    "memory_id": "gen_random_uuid()",
    "content": "'memory ' || n",
    "content_hash": "n",
    "fact_key": "n",
    "visibility": "'owner'",
    "last_told_at": "at",
    "created_at": "at",
    "updated_at": "at",
}
BUSY_HOUR = """
UPDATE sessions_app_turn SET finished_at = finished_at + interval '1 millisecond'
WHERE created_at >= now() - interval '1 hour'
"""


def fill(model: type[Model], values: dict[str, str], source: str) -> None:
    """Make a row of each of ``source``: the columns as ``values`` say in SQL, the others as the
    model has them."""
    columns, defaults = dict(values), []
    for field in model._meta.local_concrete_fields:
        known = field.column in columns or field.null or field.generated
        if known or isinstance(field, AutoField):
            continue
        columns[str(field.column)] = "%s"
        defaults.append(field.get_db_prep_save(field.get_default(), connection))
    names = ", ".join(f'"{name}"' for name in columns)
    statement = "INSERT INTO {} ({}) SELECT {} FROM {}"
    with connection.cursor() as cursor:
        cursor.execute(
            statement.format(model._meta.db_table, names, ", ".join(columns.values()), source),
            defaults,
        )


def store(messages: int) -> None:
    """The rows, and statistics as autovacuum makes them in a server that has run for a while."""
    turns, chats = messages // 2, max(10, min(10_000, messages // 20))
    fill(Chat, CHAT, f"generate_series(1, {chats}) AS n")
    fill(ChatSession, SESSION, Chat._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(PLACES)
        cursor.execute(SAID, [turns, chats])
    in_order = "(SELECT * FROM said ORDER BY at) AS said"
    fill(Message, QUESTION, in_order)
    fill(Message, ANSWER, in_order)
    fill(Turn, TURN, in_order)
    fill(TurnReplay, REPLAY, Turn._meta.db_table)
    fill(Memory, MEMORY, f"{in_order} WHERE mod(n, 5) = 0")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def recount() -> None:
    rollups_recount(now=timezone.now(), most_seconds=3_600)


def timed(call: Callable[[], object]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1_000


def shares(call: Callable[[], object]) -> str:
    """Median and 95th percentile of ROUNDS calls."""
    taken = sorted(timed(call) for _ in range(ROUNDS))
    return f"p50 {taken[ROUNDS // 2]:5.0f} ms, p95 {taken[ROUNDS * 95 // 100]:5.0f} ms"


def pages(client: Client) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the functions to measure, with their names."""
    for key in DAYS:
        period = period_named(key, now=timezone.now())
        yield f"database, period={key}", lambda period=period: figures_of(period)
        yield f"page, period={key}", lambda key=key: client.get("/admin/", {"period": key})
        yield f"fragment, period={key}", lambda key=key: client.get(FRAGMENT, {"period": key})


def measure(client: Client, title: str) -> None:
    print(f"{title}:")
    for name, call in pages(client):
        call()
        print(f"  {name:22} {shares(call)}", flush=True)


def main() -> None:
    """Stores, counts and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    options = parser.parse_args()
    settings.ALLOWED_HOSTS = ["testserver"]
    with own_database():
        print(machine())
        call_command("createcachetable", verbosity=0)
        store(options.messages)
        client = Client()
        client.force_login(get_user_model()._default_manager.create_superuser("staff"))
        print(f"{options.messages:,} messages, {Mark.objects.count():,} marks")
        measure(client, "before the first count")
        print(f"the first count: {timed(recount):,.0f} ms")
        measure(client, "counted")
        with connection.cursor() as cursor:
            cursor.execute(BUSY_HOUR)
        measure(client, f"with {Mark.objects.count():,} marks of the last hour")
        print(f"recount of that hour: {timed(recount):,.0f} ms")


if __name__ == "__main__":
    main()
