"""What happens when: each failure is caused once on a server of this script's own.

    make drills
    make drills ARGS="--only stop,kill --sick-minutes 1"

Starts everything as `make run` does, with providers and a model on loopback, and ends only what it
started. Prints a table of what was seen. The full disk needs root, which can mount a small file
system. A clock that jumps is shown by moving all stored times the other way.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


from benchmarks.running_processes import members
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import Places, postmaster_of
from tests.loopback.openai_behaviours import Behaviour, slow
from tests.processes.installation import Installation, family, free_port, kill
from tests.processes.posting import cloud_text, new_phone
from tests.processes.stage import ACCESS_TOKEN, Stage, stage
from tests.processes.test_clock_jumps import jump
from tests.processes.test_disk_full import FULL, Ballast
from tests.processes.waiting import wait_until

PATIENCE_SECONDS = 1_800
DAY = 86_400
STATES = """
SELECT state, count(*) AS number FROM sessions_app_turn JOIN sessions_app_chat chat
ON chat.id = chat_id WHERE split_part(whatsapp_chat, '@', 1) = ANY(%s) GROUP BY 1
"""
AGED = """
UPDATE sessions_app_turn SET asked_at = asked_at - interval '25 hours' FROM sessions_app_chat chat
WHERE chat.id = chat_id AND whatsapp_chat = %s AND state = 'deferred' RETURNING 1
"""


@dataclass
class Asked:
    """Questions of so many chats, one of each, and how many deliveries had to be repeated."""

    live: Stage
    phones: list[str]
    repeated: int = 0

    def answers(self) -> dict[str, list[str]]:
        """Return the answers that each chat got, without apologies."""
        return {
            phone: [text for text in self.live.graph.texts_to(phone) if "answer to" in text]
            for phone in self.phones
        }

    def wait(self) -> str:
        """Wait for the answer of each; return what became of them."""
        began = time.monotonic()
        wait_until(lambda: all(self.answers().values()), "the answers", seconds=PATIENCE_SECONDS)
        took = time.monotonic() - began
        twice = sum(len(texts) > 1 for texts in self.answers().values())
        return f"all {len(self.phones)} answered {took:.0f} s later, {twice} twice"

    def states(self) -> str:
        found = Counter(
            {row["state"]: row["number"] for row in self.live.database.rows(STATES, self.phones)}
        )
        return ", ".join(f"{number} {state}" for state, number in found.most_common())


def ask(live: Stage, number: int) -> Asked:
    """Post a question from each of so many new chats, as a provider: until it is taken."""
    asked = Asked(live, [new_phone() for _ in range(number)])
    for phone in asked.phones:
        payload = cloud_text(phone, f"question of {phone}")
        while not takes(live, payload):
            asked.repeated += 1
            time.sleep(0.2)
    return asked


def takes(live: Stage, payload: dict[str, object]) -> bool:
    try:
        return live.post.cloud(payload).status_code == 200
    except Exception:
        return False


def with_model(live: Stage, seconds: float) -> None:
    live.openai.next_behaviour = lambda path: slow(seconds) if "chat" in path else Behaviour()


def drill_stop(live: Stage) -> Iterator[tuple[str, str]]:
    with_model(live, 30)
    asked = ask(live, 40)
    launcher = live.installation.programs.pop("launcher")
    began = time.monotonic()
    launcher.send_signal(signal.SIGTERM)
    launcher.wait(120)
    took = time.monotonic() - began
    with_model(live, 0.5)
    began = time.monotonic()
    live.installation.launch()
    up = time.monotonic() - began
    yield (
        "stop and start under load, 16 answers being made by a model of 30 s, 24 waiting",
        f"stopped in {took:.1f} s, ready {up:.0f} s after the start; {asked.wait()}",
    )


def drill_kill(live: Stage) -> Iterator[tuple[str, str]]:
    with_model(live, 0.5)
    for name in ("web", "answer", "qcluster", "supervisor", "PostgreSQL"):
        victim = next(process for program, process in members(live.installation) if program == name)
        asked = ask(live, 20)
        kill([victim])
        began = time.monotonic()
        later = ask(live, 20)
        took = time.monotonic() - began
        asked.phones += later.phones
        yield (
            f"`kill -9` of `{name}` between 40 webhooks",
            f"the next 20 taken within {took:.1f} s, {later.repeated} repeated; {asked.wait()}",
        )


def drill_database(live: Stage) -> Iterator[tuple[str, str]]:
    with_model(live, 0.5)
    server = EmbeddedPostgres(live.installation.data_dir)
    before = ask(live, 20)
    postmaster = postmaster_of(Places(live.installation.data_dir))
    assert postmaster is not None
    kill(family(postmaster))
    time.sleep(5)
    payload = cloud_text(new_phone(), "while it is away")
    refused, ready = live.post.cloud(payload).status_code, live.installation.answer("/readyz")
    time.sleep(55)
    server.ensure_running()
    wait_until(lambda: takes(live, payload), "the repeat is taken")
    yield (
        "the database is away for a minute",
        f"webhooks {refused}, `/readyz` {ready}, no program restarted by hand; {before.wait()}",
    )


def drill_model(live: Stage, minutes: float) -> Iterator[tuple[str, str]]:
    live.openai.next_behaviour = type(live.openai).next_behaviour.__get__(live.openai)
    live.openai.is_away = True
    asked = ask(live, 60)
    old = ask(live, 1)
    apologised = [*asked.phones, *old.phones]
    wait_until(
        lambda: all(live.graph.texts_to(phone) for phone in apologised),
        "the apologies",
        seconds=PATIENCE_SECONDS,
    )
    time.sleep(minutes * 60)
    wait_until(lambda: live.database.rows(AGED, f"{old.phones[0]}@c.us"), "it is kept open")
    states = asked.states()
    live.openai.is_away = False
    seen = asked.wait()
    sent = [str(each["to"]) for each in list(live.graph.sent) if "answer to" in str(each)]
    # The first one is that with which the service was tried again.
    trial, *answered = dict.fromkeys(phone for phone in sent if phone in asked.phones)
    expected = [phone for phone in asked.phones if phone != trial]
    shifted = max(abs(answered.index(phone) - place) for place, phone in enumerate(expected))
    wait_until(lambda: "deferred" not in old.states(), "the old one is closed")
    apologies = sum(len(live.graph.texts_to(phone)) - 1 for phone in asked.phones)
    yield (
        f"the model is away for {minutes:g} minutes, 60 chats ask",
        f"{apologies} apologies, {states} meanwhile; {seen}: a trial, then the oldest first, "
        f"at most {shifted} places off; a question that was 25 hours old: {old.states()}",
    )


def drill_provider(live: Stage) -> Iterator[tuple[str, str]]:
    with_model(live, 0.5)
    live.graph.access_token = "renewed"
    asked = ask(live, 20)
    wait_until(lambda: "20 replied" in asked.states(), "the answers are held")
    time.sleep(30)
    live.graph.access_token = ACCESS_TOKEN
    yield "the provider refuses our token for half a minute", f"20 answers held; {asked.wait()}"


def drill_clock(live: Stage) -> Iterator[tuple[str, str]]:
    with_model(live, 5)
    for seconds, way in ((DAY, "forward"), (-DAY, "back")):
        waiting = ask(live, 40)
        jump(live, seconds)
        later = ask(live, 10)
        seen = later.wait()
        wait_until(
            lambda waiting=waiting: not set(waiting.states().split()) & {"pending", "running"},
            "nothing waits",
            seconds=PATIENCE_SECONDS,
        )
        twice = sum(len(texts) > 1 for texts in waiting.answers().values())
        yield (
            f"the clock jumps {way} by a day while 40 questions wait",
            f"those 40: {waiting.states()}, {twice} answered twice; afterwards {seen}",
        )


def drill_second(live: Stage) -> Iterator[tuple[str, str]]:
    with_model(live, 0.5)
    refused = live.installation.launch_in_vain(PORT=str(free_port()))
    said = refused.stderr.strip().splitlines()[-1]
    said = said.replace(str(live.installation.data_dir), "DATA_DIR")
    yield "a second start on the same `DATA_DIR`", f"exit code {refused.returncode}: “{said}”"
    other = live.installation.start_other(sys.executable, "manage.py", "answer")
    try:
        yield "a second `answer` beside the first, 60 questions", ask(live, 60).wait()
    finally:
        other.terminate()
        other.wait(60)


def drill_disk(live: Stage) -> Iterator[tuple[str, str]]:
    """On a small disk of its own, with data, logs and all output on it."""
    ballast = Ballast(live.installation.folder.parent)
    before = ask(live, 5).wait()
    phone = new_phone()
    payload = cloud_text(phone, "question of a full disk")
    # Of more than the space that is left inside of files that are there already.
    (message,) = payload["entry"][0]["changes"][0]["value"]["messages"]
    message["unknown"] = os.urandom(500_000).hex()
    ballast.fill()
    try:
        status = live.post.cloud(payload).status_code
        wait_until(lambda: FULL in live.graph.texts_to(phone), "the person is told")
        ready = live.installation.answer("/readyz")
        time.sleep(30)
    finally:
        ballast.free()
    wait_until(lambda: takes(live, payload), "the repeat is taken")
    again = Asked(live, [phone]).wait()
    alive = live.installation.programs["launcher"].is_running()
    yield (
        "the disk is full for half a minute, with the output of `make run` on it",
        f"webhooks {status}, `/readyz` {ready}, the person is told; "
        f"{'nothing ended' if alive else 'the launcher ended'}; then {again} (before: {before})",
    )


@contextmanager
def small_disk() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="disk-") as folder:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256m,mode=755", "tmpfs", folder], check=True
        )
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def own_database(installation: Installation) -> None:
    """Start everything on a PostgreSQL that isn't the launcher's."""
    server = EmbeddedPostgres(installation.data_dir)
    server.ensure_running()
    address = f"postgresql://{server.user}:{server.password}@/{server.database}"
    installation.environment["DATABASE_URL"] = f"{address}?host={server.host}"
    installation.launch()


def drills(options: argparse.Namespace) -> dict[str, Callable[[Stage], Iterator[tuple[str, str]]]]:
    return {
        "stop": drill_stop,
        "kill": drill_kill,
        "second": drill_second,
        "provider": drill_provider,
        "clock": drill_clock,
        "model": lambda live: drill_model(live, options.sick_minutes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="some of them, separated by commas")
    parser.add_argument("--sick-minutes", type=float, default=10)
    options = parser.parse_args()
    wanted = set(filter(None, options.only.split(",")))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| what happens | what was seen |\n| --- | --- |", flush=True)

    def play(name: str, drill: Callable[[Stage], Iterator[tuple[str, str]]], live: Stage) -> None:
        if not wanted or name in wanted:
            for what, seen in drill(live):
                print(f"| {what} | {seen} |", flush=True)

    unlimited = {"CLIENT_MESSAGES_PER_HOUR": "0", "EMBEDDER": "wordllama"}
    if not wanted or wanted - {"database", "disk"}:
        with stage(run=Installation.launch, **unlimited) as live:
            for name, drill in drills(options).items():
                play(name, drill, live)
    if not wanted or "database" in wanted:
        with stage(run=own_database, **unlimited) as live:
            play("database", drill_database, live)
    if os.geteuid() == 0 and (not wanted or "disk" in wanted):
        with small_disk() as folder, stage(run=Installation.launch, parent=folder) as live:
            play("disk", drill_disk, live)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
