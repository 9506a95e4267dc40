"""The time of the REST API's hot paths over HTTP, on the real web server.

    .venv/bin/python benchmarks/measure_api.py
    .venv/bin/python benchmarks/measure_api.py --calls 1000 --seconds 20 --without-workers

Starts an installation of its own: gunicorn, the workers and an embedded PostgreSQL that writes
durably. Stores one message in a session, reads a session's newest 20 messages and asks for a
session's context: by one client, and by several clients at once, each in a session of its own.
Prints Markdown. Clients, server, workers and database share the machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx  # noqa: E402

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres  # noqa: E402
from tests.processes.installation import Installation  # noqa: E402
from tests.processes.waiting import wait_until  # noqa: E402

PEOPLE = ("Dana", "Omer", "Ruth", "Yosef", "Miriam", "Eitan", "Noa", "Avi", "Tamar", "Gil")
FIRMS = ("TestCorp", "Bluebird", "Northwind", "Orchard", "Lighthouse", "Quarry", "Harbour")
TOPICS = (
    "the invoice of March",
    "the delivery to the warehouse",
    "the meeting about the new lease",
    "the broken printer on the second floor",
    "the order of forty chairs",
    "the insurance of the van",
)
ENDS = (
    "has to be paid within 30 days",
    "was moved to Thursday at nine",
    "is waiting for a signature",
    "costs 480 a month, and nobody has approved it yet",
    "was sent back because the address was wrong",
)
MEMORIES = 200
SESSION_MESSAGES = 200
UNLIMITED = "10000000"
ENVIRONMENT = {
    "ENABLE_MEMORY_SYSTEM": "true",
    "GODFATHER_PHONE": "15550199999@c.us",
    "DATABASE_URL": "",
    # Calls are counted, and none is refused.
    **{f"API_RATE_{kind}": UNLIMITED for kind in ("READ", "WRITE", "BULK")},
}

Work = Callable[["Client", str], None]


def main() -> None:
    options = arguments()
    with server(workers=not options.without_workers) as (url, secret):
        print(f"{machine()}; workers {'off' if options.without_workers else 'on'}.\n")
        calls: dict[str, Work] = {
            "store one message": store,
            "newest 20 messages": newest,
            "context": context,
        }
        sessions = filled_sessions(url, secret, options.clients)
        many(url, secret, sessions, lambda client, session: newest(client, session), seconds=3)
        print(
            "| call | p50 ms | p95 ms | a second, 1 client | "
            f"p50 ms, {options.clients} clients | p95 ms | a second, {options.clients} clients |"
        )
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for name, work in calls.items():
            many(url, secret, sessions, work, seconds=options.seconds / 4)
            alone = one(url, secret, sessions[0], work, options.calls)
            together = many(url, secret, sessions, work, seconds=options.seconds)
            print(f"| {name} | {alone.cells()} | {together.cells()} |", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=500, help="of each kind, by one client")
    parser.add_argument("--clients", type=int, default=8, help="at once")
    parser.add_argument("--seconds", type=float, default=10, help="of each kind, by all clients")
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
            installation.start_web()
            wait_until(lambda: installation.answer("/healthz") == httpx.codes.OK, "it is served")
            if workers:
                installation.start_workers()
                installation.wait_until_ready()
            yield installation.url, secret
        finally:
            database.release()
            installation.stop()


class Client:
    """One connection that stays open. The standard library's client is the cheapest one."""

    def __init__(self, url: str, secret: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer's JSON. Raises RuntimeError for a refusal."""
        sent = None if body is None else json.dumps(body).encode()
        self._connection.request(method, f"/api/v1/{path}", body=sent, headers=self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
        return json.loads(content)


_numbers = count()


def text() -> str:
    """Return a text of some 20 words that was not there before."""
    number = next(_numbers)
    return (
        f"{PEOPLE[number % len(PEOPLE)]} of {FIRMS[number // 3 % len(FIRMS)]} says that "
        f"{TOPICS[number // 7 % len(TOPICS)]} {ENDS[number // 11 % len(ENDS)]} (number {number})."
    )


def filled_sessions(url: str, secret: str, clients: int) -> list[str]:
    """Return a session for each client, each with messages; and store memories."""
    client = Client(url, secret)
    for _ in range(MEMORIES):
        client.call("POST", "memories/", {"content": text(), "visibility": "public"})
    found = []
    for number in range(clients):
        chat = {"whatsapp_chat": f"1555010{number:04}@c.us"}
        session = client.call("POST", "sessions/", chat)["session_id"]
        said = [
            {"role": "assistant" if place % 2 else "user", "content": text()}
            for place in range(SESSION_MESSAGES)
        ]
        client.call("POST", f"sessions/{session}/messages/", {"messages": said})
        found.append(session)
    return found


def store(client: Client, session: str) -> None:
    said = {"messages": [{"role": "user", "content": text()}]}
    client.call("POST", f"sessions/{session}/messages/", said)


def newest(client: Client, session: str) -> None:
    client.call("GET", f"sessions/{session}/messages/?limit=20")


def context(client: Client, session: str) -> None:
    number = next(_numbers)
    asked = f"{TOPICS[number % len(TOPICS)]} of {FIRMS[number // 5 % len(FIRMS)]}"
    client.call("POST", f"sessions/{session}/context/", {"query": f"What about {asked}?"})


@dataclass(frozen=True)
class Timed:
    """The milliseconds of some calls, and the seconds in which they were made."""

    took: list[float]
    seconds: float

    def cells(self) -> str:
        p95 = sorted(self.took)[int(len(self.took) * 0.95)]
        rate = len(self.took) / self.seconds
        return f"{statistics.median(self.took):.1f} | {p95:.1f} | {rate:.0f}"


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
