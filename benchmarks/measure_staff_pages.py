"""Measures the staff's pages where there is much to show: run from the project's root.

    python benchmarks/measure_staff_pages.py [--chats 10000] [--messages 1000000]
        [--memories 100000] [--events 250000] [--rounds 20] [--only PATTERN] [--keep DIR]
        [--explain 500]

Fills a database of its own; one of the chats holds a tenth of all messages, the others follow a
long tail. Then it finds every page of the admin, with its filters, orders, searches and further
pages, and asks each of them so many times as a superuser, one after the other, of the web server
that `make run` starts (gunicorn, two processes); those that are fast fewer times. Prints the
milliseconds to the first byte and, at the median, to the last, which come late where a page tells
first what it looks for; and how many queries a page makes, which is told by asking it once in this
process. Last come the pages with the most JavaScript, compressed as the front door sends it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import math
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from own_database import FOLDER, KEEPING, machine, own_database

# isort: split

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, reset_queries
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from staff_extras import READER
from staff_pages import Page, pages_by_address, pages_from, script_bytes
from staff_samples import runs_draft, samples_of
from staff_texts import texts_made
from staff_world import Sizes, world_fill, world_sizes

BOUND_MS = 300.0
BOUND_SCRIPT_BYTES = 100_000
HEAVIEST = 3
# A page that takes longer than this is asked once more and not again; one that never takes half of
# what it may is asked so many times.
ENOUGH_MS = 10_000.0
FEW = 6
MAX_TEXTS = 60_000
FILLED = FOLDER / "filled.json"


@dataclass(frozen=True)
class Rendered:
    """A page as this process made it; ``slowest``: of its queries, with milliseconds."""

    status: int
    text: str
    queries: int
    ms: float
    slowest: tuple[float, str]


@dataclass(frozen=True)
class Measured:
    page: Page
    queries: int
    median: float
    p95: float
    whole: float
    slowest: tuple[float, str]
    script_bytes: int


def main() -> None:
    arguments = _arguments()
    sizes = Sizes(arguments.chats, arguments.messages, arguments.memories, arguments.events)
    filled = FILLED.exists()
    texts = [] if filled else list(texts_made(min(sizes.messages, MAX_TEXTS)))
    with own_database():
        print(f"{machine()}\n", flush=True)
        if not filled:
            print("Filling", flush=True)
            world_fill(sizes, texts)
            FILLED.write_text(json.dumps(vars(arguments), default=str))
        texts.clear()
        print(f"{world_sizes()}\n", flush=True)
        pages, skipped = pages_rendered(re.compile(arguments.only))
        with server() as port:
            measured = [measure(port, *each, arguments.rounds) for each in told(pages)]
        report(measured, skipped, arguments.explain)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, parents=[KEEPING], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chats", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=250_000, help="of the audit log")
    parser.add_argument("--rounds", type=int, default=20, help="the first one doesn't count")
    parser.add_argument(
        "--only",
        default="",
        metavar="PATTERN",
        help="of pages' names, and of those that lead to them",
    )
    parser.add_argument(
        "--explain", type=float, metavar="MS", help="plans of what pages slower than this ask"
    )
    return parser.parse_args()


def _session() -> Client:
    """Of a superuser who is logged in."""
    user = User.objects.get(username=READER)
    client = Client(raise_request_exception=False, SERVER_NAME="127.0.0.1")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def pages_rendered(only: re.Pattern[str]) -> tuple[list[tuple[Page, Rendered]], list[str]]:
    """Every page that answers with a page, each once; and what does not, with the reason."""
    logging.getLogger("django.request").setLevel(logging.CRITICAL)
    client = _session()
    runs_draft(READER)
    found: dict[str, tuple[Page, Rendered]] = {}
    skipped: list[str] = []
    seen: set[str] = set()
    day = timezone.localdate().isoformat()
    samples = lru_cache(samples_of)
    queue = list(pages_by_address(samples))
    seen |= {f"admin:{page.name.split()[0]}" for page in queue}
    known: set[str] = set()
    while queue:
        page = queue.pop(0)
        if page.address in known or not only.search(page.name):
            continue
        known.add(page.address)
        print(f"\r{len(known)} found: {page.name[:70]:70}", end="", file=sys.stderr)
        made = render(client, page)
        if made.status != 200 or not made.text:
            skipped.append(f"{made.status if made.status != 200 else 'no page'} {page.name}")
            continue
        queue.extend(pages_from(page, made.text, seen, day))
        found[page.address] = (page, made)
    return list(found.values()), skipped


def told(pages: list[tuple[Page, Rendered]]) -> Iterator[tuple[Page, Rendered]]:
    """Says how far it is where somebody looks at it."""
    for number, each in enumerate(pages, 1):
        print(f"\r{number} of {len(pages)}: {each[0].name[:70]:70}", end="", file=sys.stderr)
        yield each
    print(file=sys.stderr)


def render(client: Client, page: Page) -> Rendered:
    # Django's log holds 9,000 queries; those of a page that came after them would count as none.
    reset_queries()
    started = time.perf_counter()
    with CaptureQueriesContext(connection) as queries:
        answer: Any = client.get(page.address)
        is_page = "html" in answer.headers.get("Content-Type", "")
        text = answer.getvalue().decode() if is_page else ""
    ms = (time.perf_counter() - started) * 1000
    times = [(float(query["time"]) * 1000, query["sql"]) for query in queries]
    return Rendered(answer.status_code, text, len(queries), ms, max(times, default=(0.0, "")))


@contextmanager
def server() -> Iterator[int]:
    """The web server as `make run` has it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = (
        f"-m gunicorn memoryproject.wsgi --bind 127.0.0.1:{port} --workers 2 --threads 8 "
        "--worker-class gthread --timeout 300 --no-control-socket --preload --log-level error"
    )
    process = subprocess.Popen([sys.executable, *command.split()], cwd=settings.BASE_DIR)
    try:
        _wait(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait(port: int) -> None:
    for _ in range(240):
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=5).request("GET", "/healthz")
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise TimeoutError("The server did not come up.")


def measure(port: int, page: Page, made: Rendered, rounds: int) -> Measured:
    """Ask so many times; the first one, which may find nothing in memory, doesn't count."""
    times = [asked(port, page.address)]
    while len(times) < rounds and (len(times) < 2 or times[0][1] < ENOUGH_MS):
        if len(times) == FEW and max(whole for _, whole in times[1:]) < BOUND_MS / 2:
            break
        times.append(asked(port, page.address))
    counted = sorted(first for first, _ in times[1:] or times)
    p95 = counted[math.ceil(len(counted) * 0.95) - 1]
    whole = statistics.median(whole for _, whole in times[1:] or times)
    median, scripts = statistics.median(counted), script_bytes(made.text)
    return Measured(page, made.queries, median, p95, whole, made.slowest, scripts)


def asked(port: int, address: str) -> tuple[float, float]:
    """Milliseconds to the first byte of the page and to the last. The headers don't count: they
    may go before anything is known."""
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    web.connect()
    started = time.perf_counter()
    web.request("GET", address, headers={"Cookie": _cookie()})
    answer = web.getresponse()
    answer.read(1)
    first = (time.perf_counter() - started) * 1000
    answer.read()
    whole = (time.perf_counter() - started) * 1000
    web.close()
    return first, whole


@lru_cache
def _cookie() -> str:
    return "; ".join(f"{name}={morsel.value}" for name, morsel in _session().cookies.items())


def report(measured: list[Measured], skipped: list[str], explain: float | None) -> None:
    """The table, the slowest first."""
    print(f"{'page':100} {'queries':>8} {'median':>9} {'p95':>9} {'whole':>9}  ms")
    bound_shown = False
    for one in sorted(measured, key=lambda each: -each.p95):
        if one.p95 <= BOUND_MS and not bound_shown:
            print(f"{f' {BOUND_MS:.0f} ms ':-^140}")
            bound_shown = True
        print(
            f"{one.page.name[:100]:100} {one.queries:8} {one.median:9.1f} {one.p95:9.1f} "
            f"{one.whole:9.1f}"
        )
    slow = sum(one.p95 > BOUND_MS for one in measured)
    print(f"\n{len(measured)} pages, {slow} above {BOUND_MS:.0f} ms; not measured:")
    print("    " + "\n    ".join(sorted(set(skipped))))
    heavy = sum(one.script_bytes > BOUND_SCRIPT_BYTES for one in measured)
    print(f"\n{heavy} pages load more than {BOUND_SCRIPT_BYTES // 1000} kB of scripts; the most:")
    for one in sorted(measured, key=lambda each: -each.script_bytes)[:HEAVIEST]:
        print(f"    {one.page.name[:100]:100} {one.script_bytes / 1000:8.1f} kB")
    for one in measured:
        if explain is not None and one.median > explain and one.slowest[1]:
            print(
                f"\n{one.page.name}: {one.median:.0f} ms, of which one query {one.slowest[0]:.0f}"
            )
            print(plan_of(one.slowest[1]))


def plan_of(query: str) -> str:
    with connection.cursor() as cursor:
        try:
            cursor.execute("EXPLAIN (ANALYZE, BUFFERS) " + query)
        except DatabaseError as error:
            return f"{query[:2_000]}\n{error}"
        return f"{query[:2_000]}\n" + "\n".join(line for (line,) in cursor.fetchall())


if __name__ == "__main__":
    main()
