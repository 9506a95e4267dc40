"""The time of the REST API's hot paths over HTTP, on the real web server.

    .venv/bin/python benchmarks/measure_api.py
    .venv/bin/python benchmarks/measure_api.py --calls 1000 --seconds 20 --without-workers

Starts an installation of its own: gunicorn, the workers and an embedded PostgreSQL that writes
durably. Stores one message in a session, reads a session's newest 20 messages and asks for a
session's context: by one client, and by several clients at once, each in a session of its own.
Then one client stores messages and memories in batches, and at last all recall memories among
many, and erase some of them. Prints Markdown. Clients, server, workers and database share the
machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
from api_calls import (
    BATCH_CALLS,
    CALLS,
    Batch,
    Client,
    Work,
    erasing,
    fill_memories,
    filled_sessions,
    newest,
    recall,
)

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from tests.processes.installation import Installation
from tests.processes.waiting import wait_until

BATCHES = (100, 500)
UNLIMITED = "10000000"
ENVIRONMENT = {
    "ENABLE_MEMORY_SYSTEM": "true",
    "TURN_DEBOUNCE_SECONDS": "0",
    "GODFATHER_PHONE": "15550199999@c.us",
    "DATABASE_URL": "",
    # Calls are counted, and none is refused.
    **{f"API_RATE_{kind}": UNLIMITED for kind in ("READ", "WRITE", "BULK", "FORGET")},
}

HEAD = (
    "p50 ms | p95 ms | a second, 1 client | "
    "p50 ms, {clients} clients | p95 ms | a second, {clients} clients |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def main() -> None:
    options = arguments()
    with server(workers=not options.without_workers) as (url, secret):
        print(f"{machine()}; workers {'off' if options.without_workers else 'on'}.\n")
        sessions = filled_sessions(url, secret, options.clients)
        measured = Measured(url, secret, sessions, options)
        many(url, secret, sessions, newest, seconds=3)
        print(f"| call | {HEAD.format(clients=options.clients)}")
        for name, work in CALLS.items():
            measured.calls(name, work)
        print("\n| stored | in a batch | p50 ms | p95 ms | texts a second |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for name, batch in BATCH_CALLS.items():
            for size in BATCHES:
                measured.batches(name, batch, size)
        fill_memories(Client(url, secret), options.memories)
        print(f"\n| {options.memories:,} more memories | {HEAD.format(clients=options.clients)}")
        measured.calls("recall", recall)
        measured.calls("erase a memory", erasing(Client(url, secret)))


@dataclass(frozen=True)
class Measured:
    """Measures calls and prints a row of each."""

    url: str
    secret: str
    sessions: list[str]
    options: argparse.Namespace

    def calls(self, name: str, work: Work) -> None:
        url, secret, sessions, options = self.url, self.secret, self.sessions, self.options
        many(url, secret, sessions, work, seconds=options.seconds / 4)
        alone = one(url, secret, sessions[0], work, options.calls)
        together = many(url, secret, sessions, work, seconds=options.seconds)
        print(f"| {name} | {alone.cells()} | {together.cells()} |", flush=True)

    def batches(self, name: str, batch: Batch, size: int) -> None:
        def work(client: Client, session: str) -> None:
            batch(client, session, size)

        one(self.url, self.secret, self.sessions[0], work, 1)
        calls = max(self.options.texts // size, 3)
        alone = one(self.url, self.secret, self.sessions[0], work, calls)
        texts = size * calls / alone.seconds
        print(f"| {name} | {size} | {alone.latency()} | {texts:,.0f} |", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=500, help="of each kind, by one client")
    parser.add_argument("--clients", type=int, default=8, help="at once")
    parser.add_argument("--seconds", type=float, default=10, help="of each kind, by all clients")
    parser.add_argument("--texts", type=int, default=5_000, help="to store in batches of each size")
    parser.add_argument("--memories", type=int, default=10_000, help="among which to recall")
    parser.add_argument("--without-workers", action="store_true", help="only the web server")
    return parser.parse_args()


@contextmanager
def server(*, workers: bool) -> Iterator[tuple[str, str]]:
    """Return the URL of a new installation, and a token."""
    with tempfile.TemporaryDirectory(prefix="measure-api-") as folder:
        installation = Installation(Path(folder), **ENVIRONMENT)
        database = EmbeddedPostgres(installation.data_dir)
        try:
            installation.migrate()
            secret = installation.manage("create_api_token", "bench").strip()
            database.ensure_running()
            installation.start_program("web")
            wait_until(lambda: installation.answer("/healthz") == httpx.codes.OK, "it is served")
            if workers:
                installation.start_workers()
                installation.wait_until_ready()
            yield installation.url, secret
        finally:
            database.release()
            installation.stop()


@dataclass(frozen=True)
class Timed:
    """The milliseconds of some calls, and the seconds in which they were made."""

    took: list[float]
    seconds: float

    def cells(self) -> str:
        return f"{self.latency()} | {len(self.took) / self.seconds:.0f}"

    def latency(self) -> str:
        p95 = sorted(self.took)[int(len(self.took) * 0.95)]
        return f"{statistics.median(self.took):.1f} | {p95:.1f}"


def one(url: str, secret: str, session: str, work: Work, calls: int) -> Timed:
    client = Client(url, secret)
    began = time.perf_counter()
    took = [timed(client, session, work) for _ in range(calls)]
    return Timed(took, time.perf_counter() - began)


def many(url: str, secret: str, sessions: list[str], work: Work, *, seconds: float) -> Timed:
    """Let one client for each session call for so many seconds."""

    def calls(session: str) -> list[float]:
        client = Client(url, secret)
        took = []
        while time.perf_counter() < until:
            took.append(timed(client, session, work))
        return took

    began = time.perf_counter()
    until = began + seconds
    with ThreadPoolExecutor(len(sessions)) as pool:
        took = [each for found in pool.map(calls, sessions) for each in found]
    return Timed(took, time.perf_counter() - began)


def timed(client: Client, session: str, work: Work) -> float:
    began = time.perf_counter()
    work(client, session)
    return (time.perf_counter() - began) * 1000


def machine() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}, clients, server and PostgreSQL on the same machine, load "
        f"{os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
