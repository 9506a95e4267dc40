"""The rate of webhooks that this machine sustains, behind the real front door.

    .venv/bin/python benchmarks/load.py
    .venv/bin/python benchmarks/load.py --rates 20,40,80 --seconds 30 --model-seconds 1
    .venv/bin/python benchmarks/load.py --soak 60 --rates 10

Starts a server of its own with its workers, on an embedded PostgreSQL that writes durably; the
providers and the model are on loopback. Load generator, server and database share the machine. For
each rate it posts signed webhooks of both providers at random moments, in chats that have written
before. Then it waits until every accepted message was answered, and counts what is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil

from benchmarks.load_traffic import Outcome, first_posts, percentile, posts, send_at
from benchmarks.running_processes import members
from tests.loopback.openai_behaviours import slow
from tests.processes.installation import Installation
from tests.processes.stage import Stage, stage

TARGET_MS = 50.0
PATIENCE_SECONDS = 1_800
WARM_UP_RATE = 20
OPEN = "SELECT count(*) AS open FROM sessions_app_turn WHERE state IN"
STATES = "('pending', 'running', 'replied', 'sending')"


def main() -> None:
    options = arguments()
    with server(options.model_seconds) as started:
        print(f"{machine()}; model {options.model_seconds:g} s, {options.chats} chats")
        if options.soak:
            soak(started, options)
        else:
            find_the_rate(started, options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", default="10,20,40,60,80,120,160", help="webhooks a second")
    parser.add_argument("--seconds", type=float, default=20, help="how long each rate lasts")
    parser.add_argument("--chats", type=int, default=200, help="how many people write")
    parser.add_argument("--model-seconds", type=float, default=0.5, help="the model's delay")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="one rate for so long")
    options = parser.parse_args()
    options.rates = [float(rate) for rate in options.rates.split(",")]
    return options


@contextmanager
def server(model_seconds: float) -> Iterator[Stage]:
    """Everything that `make run` starts, with a model that takes its time."""
    # A tenth of the chats writes more than a client may.
    unlimited = {"CLIENT_MESSAGES_PER_HOUR": "0", "CLIENT_TOKENS_PER_DAY": "0"}
    with stage(run=Installation.launch, EMBEDDER="wordllama", **unlimited) as started:
        started.openai.next_behaviour = lambda path: slow(model_seconds)
        yield started


def find_the_rate(started: Stage, options: argparse.Namespace) -> None:
    """Raise the rate until the webhooks are no longer fast, and say what the queue does."""
    print("| webhooks/s | done/s | median ms | p95 ms | p99 ms | max ms | refused | of a core |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    traffic = posts(options.chats)
    known = first_posts(options.chats)
    asyncio.run(send_at(started.installation.url, WARM_UP_RATE, PATIENCE_SECONDS, known))
    drain(started)
    sustained = 0.0
    outcomes: list[Outcome] = []
    backlog: list[str] = []
    for rate in options.rates:
        before = busy_seconds(started)
        outcome = asyncio.run(send_at(started.installation.url, rate, options.seconds, traffic))
        outcomes.append(outcome)
        busy = {name: now - before[name] for name, now in busy_seconds(started).items()}
        used = ", ".join(f"{name} {share / options.seconds:.0%}" for name, share in busy.items())
        print(f"{outcome.row()} {used} |", flush=True)
        line = f"{rate:g}/s: {open_turns(started)} open, {drain(started)}"
        spent = sum(busy_seconds(started).values()) - sum(before.values())
        line = f"{line}; {until_sent(started, outcome)}"
        backlog.append(f"{line}; {spent / len(outcome.took) * 1000:.1f} ms of processor a webhook")
        if outcome.percentile(0.95) < TARGET_MS and not outcome.refused:
            sustained = max(sustained, rate)
    print("\nAfter each rate, until every answer was sent:")
    print("\n".join(f"- {line}" for line in backlog))
    report_loss(started, {each for outcome in outcomes for each in outcome.accepted})
    print(f"p95 under {TARGET_MS:g} ms up to {sustained:g} webhooks a second.")


def open_turns(started: Stage) -> int:
    return int(started.database.rows(f"{OPEN} {STATES}")[0]["open"])


def drain(started: Stage) -> str:
    """Wait until no answer is open; return how long it took."""
    waiting, began = open_turns(started), time.monotonic()
    while open_turns(started):
        if time.monotonic() - began > PATIENCE_SECONDS:
            return f"still {open_turns(started)} open after {PATIENCE_SECONDS} s"
        time.sleep(0.5)
    took = time.monotonic() - began
    return f"answered after {took:.0f} s ({waiting / max(took, 0.5):.1f} answers a second)"


def until_sent(started: Stage, outcome: Outcome) -> str:
    """Return how long it took from each webhook until the provider had taken its answer."""
    rows = started.database.rows(
        "SELECT provider_message_id AS id, extract(epoch FROM finished_at)::float8 AS at "
        "FROM sessions_app_turn WHERE state = 'sent'"
    )
    sent = {row["id"]: row["at"] for row in rows}
    times = [(sent[each] - due) * 1000 for each, due in outcome.accepted.items() if each in sent]
    if not times:
        return "none sent"
    return (
        f"from webhook to sent answer {statistics.median(times):.0f} ms (median), "
        f"{percentile(times, 0.95):.0f} ms (p95)"
    )


def report_loss(started: Stage, accepted: set[str]) -> None:
    """Compare the accepted messages with the stored, answered and sent ones."""
    rows = started.database.rows(
        "SELECT provider_message_id AS id, state FROM sessions_app_turn WHERE provider <> 'console'"
    )
    state = {row["id"]: row["state"] for row in rows}
    lost = [each for each in accepted if each not in state]
    unanswered = [each for each in accepted if state.get(each) not in ("sent", "merged")]
    print(
        f"\n{len(accepted)} messages accepted: {len(lost)} lost, {len(unanswered)} not answered, "
        f"{len(rows) - len(state)} answered twice."
    )


def soak(started: Stage, options: argparse.Namespace) -> None:
    """Post at one rate for a long time, and print the memory of each program."""
    (rate,) = options.rates[:1]
    traffic = posts(options.chats)
    accepted: set[str] = set()
    print("| minute | p95 ms | refused | open answers | " + " | ".join(programs(started)) + " |")
    for minute in range(int(options.soak) + 1):
        if minute:
            outcome = asyncio.run(send_at(started.installation.url, rate, 60, traffic))
            accepted.update(outcome.accepted)
            refused, p95 = sum(outcome.refused.values()), f"{outcome.percentile(0.95):.0f}"
        else:
            refused, p95 = 0, "-"
        memory = " | ".join(f"{megabytes(each)} MB" for each in programs(started).values())
        print(f"| {minute} | {p95} | {refused} | {open_turns(started)} | {memory} |", flush=True)
    print(drain(started))
    report_loss(started, accepted)


def programs(started: Stage) -> dict[str, list[psutil.Process]]:
    """Return the processes of each program; all workers are one."""
    found: dict[str, list[psutil.Process]] = defaultdict(list)
    for name, process in members(started.installation):
        found[name.partition(":")[0]].append(process)
    return found


def busy_seconds(started: Stage) -> dict[str, float]:
    """Return the processor time of each program so far, of the processes that still run."""
    return {
        name: sum_of(lambda each: sum(each.cpu_times()[:4]), processes)
        for name, processes in programs(started).items()
    }


def megabytes(processes: list[psutil.Process]) -> int:
    """Return the memory of these processes; shared memory counts once."""
    return int(sum_of(lambda each: each.memory_full_info().pss, processes)) // 1024**2


def sum_of(figure: Callable[[psutil.Process], float], processes: list[psutil.Process]) -> float:
    """Return the sum of a figure of the processes that still run: PostgreSQL's come and go."""
    total = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            total += figure(process)
    return total


def machine() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
