"""The space that messages take, and what everything costs when the tables are large.

    .venv/bin/python benchmarks/measure_growth.py [--messages 300000] [--chats 3000]
        [--memories 30000] [--keep DIR]

Fills a database of its own with years of generated messages. Prints the size of each large table
for a message; how long it takes to store one more, to recall, to scrape /metrics, and to make a
page of staff's; and how long a backup, an export, and making and dropping a month's partitions
take.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from io import StringIO

from own_database import FOLDER, KEEPING, machine, own_database  # isort: skip it sets Django up

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from staff_extras import READER
from staff_texts import COMMON, texts_made
from staff_world import GODFATHER_CHAT, Sizes, world_fill

from sessions_app.embedding.facade import embedder
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.receive import events_receive
from sessions_app.models import Chat
from sessions_app.partitions import partitions_tend
from sessions_app.presentation.links import contact_address, conversation_address
from sessions_app.recall.facade import Viewer, recall
from tests.world import message_from

STORED = 300
ROUNDS = 20
SCRAPES = 20
MAX_TEXTS = 20_000
FILLED = FOLDER / "filled.json"
LARGE = """
SELECT relname, pg_table_size(relid), pg_indexes_size(relid)
FROM pg_stat_user_tables
WHERE relname NOT LIKE 'bench%%' AND pg_total_relation_size(relid) > %s
ORDER BY pg_total_relation_size(relid) DESC
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], parents=[KEEPING])
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--chats", type=int, default=3_000)
    parser.add_argument("--memories", type=int, default=30_000)
    options = parser.parse_args()
    with own_database():
        print(machine())
        if not FILLED.exists():
            sizes = Sizes(options.chats, options.messages, options.memories, options.messages // 4)
            world_fill(sizes, list(texts_made(min(options.messages, MAX_TEXTS))))
            FILLED.write_text("{}")
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        print_sizes(options.messages)
        print_times()
        print_scrapes()
        print_recalls()
        print_pages()
        print_whole()


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

    def store(number: int) -> None:
        event = message_from(f"1555{number % 100:07}@c.us", f"one more, number {number}")
        events_receive(received=[event], rules=rules, enqueue=lambda _: None)

    print_taken("storing one message", store, STORED)


def print_recalls() -> None:
    """Print how long a recall takes; each of the clients is asked once."""
    model = embedder()
    chats = list(Chat.objects.filter(is_group=False).order_by("-activity__last_at")[:ROUNDS])

    def ask(number: int, chat: Chat, role: str) -> None:
        question = f"when is the {COMMON} of week {number} due?"
        recall(query=question, viewer=Viewer(role, chat.pk), embedder=model)

    print_taken("recall of a client", lambda number: ask(number, chats[number], "client"))
    owner = Chat.objects.get(whatsapp_chat=GODFATHER_CHAT)
    print_taken("recall of the owner", lambda number: ask(number, owner, "godfather"))


def print_pages() -> None:
    """Print how long it takes this process to make pages of staff's, the late parts included."""
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.get(username=READER))
    chat = Chat.objects.order_by("-activity__last_at").first()
    assert chat is not None
    inbox = "/admin/sessions_app/chat/"
    pages = {
        "/metrics": "/metrics",
        "dashboard": "/admin/",
        "inbox": inbox,
        "inbox, words searched": f"{inbox}?q=invoice+delivery",
        "search over everything": "/admin/search/?words=invoice",
        "a conversation": conversation_address(chat.pk),
        "a contact": contact_address(chat.pk),
        "memories": "/admin/memories_app/memory/",
        "answers": "/admin/sessions_app/turn/",
    }
    for name, address in pages.items():

        def show(_: int, address: str = address) -> None:
            answer = client.get(address)
            assert answer.status_code == 200, (address, answer.status_code)
            b"".join(answer)

        print_taken(name, show)


def print_whole() -> None:
    """Print how long it takes to export, to back up, and to make and drop partitions."""
    now = timezone.now()
    kept = {"deliveries_kept": timedelta(days=30), "replays_kept": timedelta(days=1)}
    # Without the months that are there, so that all of them are new.
    later = now + timedelta(days=400)
    print_once("making 6 partitions", lambda: partitions_tend(now=later, **kept))
    target = FOLDER / "export.ndjson"
    export = partial(call_command, "memories_export", out=target, stdout=StringIO())
    print_once("exporting the memories", export)
    archive = FOLDER / "backup.tar"
    archive.unlink(missing_ok=True)
    print_once("backup", lambda: call_command("backup", str(archive), stdout=StringIO()))
    print(f"    {archive.stat().st_size / 1024**2:.0f} MB")


def print_taken(name: str, do: Callable[[int], object], rounds: int = ROUNDS) -> None:
    took = []
    for number in range(rounds):
        began = time.perf_counter()
        do(number)
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    median, p95 = statistics.median(took), took[int(rounds * 0.95)]
    print(f"{name}: median {median:.1f} ms, p95 {p95:.1f} ms", flush=True)


def print_once(name: str, do: Callable[[], object]) -> None:
    began = time.perf_counter()
    do()
    print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
