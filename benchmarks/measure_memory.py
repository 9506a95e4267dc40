"""The memory of a whole installation at rest: everything that `make run` starts, by program.

    .venv/bin/python benchmarks/measure_memory.py
    .venv/bin/python benchmarks/measure_memory.py --once --processes

Starts the launcher in folders of its own; the providers and the model are on loopback. Then it
posts messages and commands, recalls by the API and opens pages of the admin, so that each process
has loaded what it needs, and waits; --once does each of these once. PSS divides a page of memory
among the processes that share it.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx  # noqa: E402
import psutil  # noqa: E402

from benchmarks.running_processes import members  # noqa: E402
from tests.loopback.openai_behaviours import slow  # noqa: E402
from tests.processes.command_server import REPOSITORY  # noqa: E402
from tests.processes.installation import Installation  # noqa: E402
from tests.processes.posting import new_phone  # noqa: E402
from tests.processes.stage import Stage, stage  # noqa: E402
from tests.processes.waiting import wait_until  # noqa: E402

PASSWORD = "a-password-of-benchmarks"
FACT = "The delivery for TestCorp comes on Tuesday."
ASKING = 8
# Long enough that each of the four answering workers takes a message.
MODEL_SECONDS = 1.0
# The schedules run once a minute.
REST_SECONDS = 75.0
STEADY_KB = 1024
PSS = re.compile(r"^Pss:\s+(\d+) kB", re.M)


@dataclass(frozen=True)
class Held:
    """A process and its memory in kB, and the program that it belongs to."""

    program: str
    pid: int
    pss: int


@dataclass(frozen=True)
class Work:
    """The work before a measurement: each chat sends all texts, each page is opened often."""

    chats: int = 12
    texts: tuple[str, ...] = (FACT, "When does it come?", "/help")
    recalls: int = 32
    pages: tuple[str, ...] = ("/admin/", "/admin/sessions_app/chat/")
    times: int = 8


ONCE = Work(chats=1, texts=("When does it come?",), recalls=1, pages=("/admin/",), times=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", action="store_true", help="also print each process")
    parser.add_argument("--once", action="store_true", help="one message, one recall, one page")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    settings = {"EMBEDDER": "wordllama", "ADMIN_PASSWORD": PASSWORD, "WHATSAPP_PROVIDER": "cloud"}
    with stage(run=Installation.launch, **settings) as started:
        warm_up(started, ONCE if options.once else Work())
        held = at_rest(started)
        print(f"{machine()}; load {load:.1f} before the start, {os.getloadavg()[0]:.1f} at the end")
        print_table(held)
        if options.processes:
            print_processes(held)


def warm_up(started: Stage, work: Work) -> None:
    """Let each program do its work, so that it has loaded what it needs."""
    started.openai.next_behaviour = lambda path: slow(MODEL_SECONDS)
    phones = [new_phone() for _ in range(work.chats)]
    for text in work.texts:
        for phone in phones:
            started.post.say(phone, text)
        for phone in phones:
            started.wait_until_over(phone)
    secret = manage(started, "create_api_token", "benchmark")
    with client_of(started) as client, ThreadPoolExecutor(ASKING) as pool:
        client.headers["Authorization"] = f"Bearer {secret}"
        list(pool.map(lambda _: recall(client), range(work.recalls)))
    with client_of(started) as browser, ThreadPoolExecutor(ASKING) as pool:
        log_in(browser)
        for address in work.pages:
            pages = list(pool.map(browser.get, [address] * work.times))
            assert all(page.status_code == httpx.codes.OK for page in pages), address


def manage(started: Stage, *arguments: str) -> str:
    """Run a command of manage.py in a process that is gone when it is measured."""
    command = [sys.executable, "manage.py", *arguments]
    environment = started.installation.environment
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def client_of(started: Stage) -> httpx.Client:
    return httpx.Client(
        base_url=started.installation.url,
        trust_env=False,
        verify=False,
        timeout=120,
        follow_redirects=True,
    )


def recall(client: httpx.Client) -> None:
    body = {"query": "When does the delivery for TestCorp come?", "sources": ["memories"]}
    client.post("/api/v1/memories/recall/", json=body).raise_for_status()


def log_in(browser: httpx.Client) -> None:
    browser.get("/admin/login/")
    form = {
        "username": "admin",
        "password": PASSWORD,
        "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        "next": "/admin/",
    }
    page = browser.post("/admin/login/", data=form)
    assert page.status_code == httpx.codes.OK
    assert "Inbox" in page.text, "the login was refused"


def at_rest(started: Stage) -> list[Held]:
    """Wait until nothing is left to do and the total stays the same; return what is held."""
    time.sleep(REST_SECONDS)
    totals = [0]

    def is_steady() -> bool:
        totals.append(sum(each.pss for each in held_by(started)))
        return len(totals) > 3 and all(
            abs(after - before) < STEADY_KB for before, after in pairwise(totals[-3:])
        )

    wait_until(is_steady, "the memory stays the same", longest_pause=5)
    return held_by(started)


def held_by(started: Stage) -> list[Held]:
    """Return all processes of the installation that still run."""
    found = []
    for program, process in members(started.installation):
        try:
            rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        numbers = PSS.search(rollup)
        found.append(Held(program, process.pid, int(numbers[1]) if numbers else 0))
    return found


def print_table(held: list[Held]) -> None:
    by_program: dict[str, list[Held]] = defaultdict(list)
    for each in held:
        by_program[each.program].append(each)
    print("\n| program | processes | PSS, MB |")
    print("| --- | --- | --- |")
    for program, its in (*by_program.items(), ("total", held)):
        print(f"| {program} | {len(its)} | {sum(each.pss for each in its) / 1024:.0f} |")


def print_processes(held: list[Held]) -> None:
    print()
    for each in held:
        try:
            command = " ".join(psutil.Process(each.pid).cmdline())[-60:]
        except psutil.NoSuchProcess:
            command = ""
        print(f"{each.pss / 1024:6.1f} MB  {each.pid:7}  {each.program:25}  {command}")


def machine() -> str:
    return (
        f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 1024**3:.0f} GB, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
