"""The space that messages take, and what one more costs when the tables are large.

    .venv/bin/python benchmarks/measure_growth.py [--messages 300000]

Fills a database of its own with years of generated messages. Prints the size of each large table
for a message, how long it takes to store one more, and how long a scrape of /metrics takes.
"""

from __future__ import annotations

import argparse
import statistics
import time

from own_database import KEEPING, machine, own_database  # isort: skip it sets Django up

from django.db import connection
from django.test import Client
from staff_texts import texts_made
from staff_world import Sizes, world_fill

from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.receive import events_receive
from tests.world import message_from

STORED = 300
SCRAPES = 20
MAX_TEXTS = 20_000
CHATS_PER_MESSAGES = 100
LARGE = """
SELECT relname, pg_table_size(relid), pg_indexes_size(relid)
FROM pg_stat_user_tables
WHERE relname NOT LIKE 'bench%%' AND pg_total_relation_size(relid) > %s
ORDER BY pg_total_relation_size(relid) DESC
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], parents=[KEEPING])
    parser.add_argument("--messages", type=int, default=300_000)
    options = parser.parse_args()
    with own_database():
        print(machine())
        sizes = Sizes(
            chats=max(50, options.messages // CHATS_PER_MESSAGES),
            messages=options.messages,
            memories=options.messages // 10,
            events=options.messages // 4,
        )
        world_fill(sizes, list(texts_made(min(options.messages, MAX_TEXTS))))
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        print_sizes(options.messages)
        print_times()
        print_scrapes()


def print_scrapes() -> None:
    """Print how long Prometheus waits: for the first answer of a process, and for later ones."""
    client, took = Client(), []
    for _ in range(SCRAPES):
        began = time.perf_counter()
        assert client.get("/metrics", headers={"host": "localhost"}).status_code == 200
        took.append((time.perf_counter() - began) * 1000)
    first, *later = took
    print(f"/metrics: first {first:.0f} ms, then median {statistics.median(later):.0f} ms")


def print_sizes(messages: int) -> None:
    """Print the bytes for each message, by table."""
    with connection.cursor() as cursor:
        cursor.execute(LARGE, [messages * 10])
        rows = cursor.fetchall()
    print("| table | rows' bytes a message | indexes' bytes a message |\n| --- | --- | --- |")
    for name, table, indexes in rows:
        print(f"| {name} | {table // messages} | {indexes // messages} |")
    total = sum(table + indexes for _, table, indexes in rows)
    print(f"{total / messages:.0f} bytes a message, {total / 1024**2:.0f} MB in all")


def print_times() -> None:
    """Print how long it takes to store one more message of a chat, known or new."""
    rules = build_intake_rules()
    took = []
    for number in range(STORED):
        event = message_from(f"1555{number % 100:07}@c.us", f"one more, number {number}")
        began = time.perf_counter()
        events_receive(received=[event], rules=rules, enqueue=lambda _: None)
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    print(
        f"storing one message: median {statistics.median(took):.1f} ms, "
        f"p95 {took[int(STORED * 0.95)]:.1f} ms"
    )


if __name__ == "__main__":
    main()
